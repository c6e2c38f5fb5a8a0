#include "machine_rig.hpp"

namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

TEST(WorkerClaims, AsksForAsManyAsItHasFreeSlots) {
    MachineRig rig(small_config(3));
    rig.fire(event::Start{});
    const auto [tag, claim] = rig.next<Claim>();
    EXPECT_EQ(claim.spec.limit, 3U);
    EXPECT_EQ(claim.spec.kinds, (std::vector<std::string>{"exec", "mail"}));
    rig.reply_queue(tag, QueueReply{Claimed{{{ready_job("a")}}, true, {}, false}});
    EXPECT_EQ(rig.next<Claim>().second.spec.limit, 2U);
}

TEST(WorkerClaims, BeginsWhatItGotInOneBatch) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.log.clear();
    rig.deliver({ready_job("a"), ready_job("b")});
    EXPECT_EQ(rig.waiting<Begin>(), 2U);
    EXPECT_EQ(rig.waiting<Claim>(), 0U) << "no slot is free";
}

TEST(WorkerClaims, ASlotIsFreeOnlyWhenTheEndIsDurable) {
    MachineRig rig(small_config(1));
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::ChangeSeen{});
    rig.end(run, Outcome::Kind::kSuccess);
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
}

TEST(WorkerClaims, AnIdleWorkerLooksOnceASecond) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({});
    int looks = 0;
    for (int i = 0; i < 100; ++i) {
        rig.advance(100ms);
        while (rig.waiting<Claim>() > 0) {
            rig.deliver({});
            ++looks;
        }
    }
    EXPECT_GE(looks, 9);
    EXPECT_LE(looks, 11);
}

TEST(WorkerClaims, LooksWhenTheNextJobIsDue) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.reply_queue(rig.next<Claim>().first, QueueReply{Claimed{{}, false, 300ms, false}});
    rig.advance(299ms);
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    rig.advance(1ms);
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
}

TEST(WorkerClaims, AChangeIsLookedAtAtOnceButNotInASpin) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({});
    rig.advance(10ms);
    rig.fire(event::ChangeSeen{});
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
    rig.fire(event::ChangeSeen{});
    rig.deliver({});
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    rig.advance(5ms);
    EXPECT_EQ(rig.waiting<Claim>(), 1U) << "the change during the look is not forgotten";
}

TEST(WorkerClaims, BacksOffWhileTheQueueFails) {
    MachineRig rig;
    rig.fire(event::Start{});
    int asked = 0;
    for (int i = 0; i < 600; ++i) {
        rig.fire(event::ChangeSeen{});
        if (rig.waiting<Claim>() > 0) {
            rig.reply_queue(rig.next<Claim>().first, store_down());
            ++asked;
        }
        rig.advance(50ms);
    }
    EXPECT_LE(asked, 50);
    EXPECT_GE(asked, 25);
}

TEST(WorkerClaims, KeepsClaimsAtHandWhileRunsAreShort) {
    WorkerConfig config = small_config(1);
    config.prefetch = 4;
    MachineRig rig(config);
    rig.fire(event::Start{});
    for (int i = 0; i < 40; ++i) {
        rig.deliver({ready_job("j" + std::to_string(i))}, true);
        rig.begin_next();
        rig.advance(1ms);
        rig.end(rig.all<action::StartHandler>().back().run, Outcome::Kind::kSuccess);
        rig.settle_next(settled_as(JobState::kSucceeded));
    }
    EXPECT_EQ(rig.next<Claim>().second.spec.limit, 4U) << "one runs, four wait";
}

TEST(WorkerClaims, GivesBackWhatItKeepsFromOthers) {
    WorkerConfig config = small_config(1);
    MachineRig rig(config);
    rig.fire(event::Start{});
    rig.deliver({ready_job("a"), ready_job("b")});
    rig.begin_next();
    EXPECT_EQ(rig.status().claimed, 1U);
    rig.advance(600ms);
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "b");
    EXPECT_EQ(rig.status().claimed, 0U);
}

TEST(WorkerClaims, AKindWithoutAHandlerGoesBackWithADelay) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a", "other")});
    const auto [tag, back] = rig.next<Return>();
    EXPECT_NE(tag, 0U);
    EXPECT_GE(back.delay.value_or(0ms), 1s);
}

// ---- suspects (G7)

JobRow suspect(std::string id) {
    JobRow row = ready_job(std::move(id));
    row.suspect = true;
    return row;
}

TEST(WorkerSuspects, RunAloneAndHoldUpNobodyElse) {
    MachineRig rig(small_config(4));
    const RunId first = rig.run_one(ready_job("busy"));
    rig.advance(1s);
    rig.deliver({ready_job("a"), suspect("s"), ready_job("b"), suspect("t")});
    EXPECT_EQ(rig.waiting<Begin>(), 0U) << "something else runs";
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "a");
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "b");
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "t");
    EXPECT_EQ(rig.waiting<Claim>(), 0U);

    rig.end(first, Outcome::Kind::kSuccess);
    EXPECT_EQ(rig.waiting<Begin>(), 0U) << "its end is not durable yet";
    rig.settle_next(settled_as(JobState::kSucceeded));
    const auto [tag, begin] = rig.next<Begin>();
    EXPECT_EQ(begin.run.job_id, "s");
    EXPECT_EQ(rig.waiting<Claim>(), 0U) << "nothing joins it";

    Started started;
    started.epoch = 2;
    rig.reply_store(tag, StoreReply{BeginReply{started}});
    rig.fire(event::ChangeSeen{});
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    rig.end(rig.all<action::StartHandler>().back().run, Outcome::Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.waiting<Claim>(), 1U) << "and it goes on";
}

TEST(WorkerSuspects, AParkedSuspectLetsTheOthersGoOn) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({suspect("s")});
    rig.reply_store(rig.next<Begin>().first,
                    StoreReply{BeginReply{Parked{WaitFor::kLock, "l", {}}}});
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
}

TEST(WorkerSuspects, KeepTheirClaimWhileTheyWait) {
    MachineRig rig(small_config(2));
    rig.run_one(ready_job("busy"));
    rig.advance(1s);
    rig.deliver({suspect("s")});
    rig.advance_renewing(60s);
    EXPECT_EQ(rig.status().claimed, 1U);
    EXPECT_EQ(rig.waiting<Return>(), 0U);
}

// ---- drain

TEST(WorkerDrain, EndsWhenTheStoreSaysThatNothingIsLeft) {
    WorkerConfig config = small_config();
    config.drain = true;
    MachineRig rig(config);
    rig.fire(event::Start{});
    const auto [tag, claim] = rig.next<Claim>();
    EXPECT_TRUE(claim.draining);
    rig.reply_queue(tag, QueueReply{Claimed{{}, false, {}, true}});
    EXPECT_TRUE(rig.only<action::Exit>().drained);
    EXPECT_EQ(rig.only<action::Exit>().unsettled, 0U);
}

TEST(WorkerDrain, WaitsForRetriesAndForOtherWorkers) {
    WorkerConfig config = small_config();
    config.drain = true;
    MachineRig rig(config);
    rig.fire(event::Start{});
    rig.deliver({});
    rig.advance(5s);
    EXPECT_FALSE(rig.exited());
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
}

TEST(WorkerDrain, ASuspectDoesNotBlockIt) {
    WorkerConfig config = small_config();
    config.drain = true;
    MachineRig rig(config);
    rig.fire(event::Start{});
    rig.deliver({suspect("s"), ready_job("a")});
    rig.begin_next();
    rig.reply_queue(rig.next<Return>().first, QueueReply{Done{}});
    rig.end(rig.only<action::StartHandler>().run, Outcome::Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    rig.deliver({ready_job("a")});
    rig.begin_next();
    rig.end(rig.all<action::StartHandler>().back().run, Outcome::Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    rig.reply_queue(rig.next<Claim>().first, QueueReply{Claimed{{}, false, {}, true}});
    EXPECT_TRUE(rig.exited());
}

// ---- claims that begin

WorkerConfig claims_begin() {
    WorkerConfig config = small_config(2);
    config.queue.begins = true;
    return config;
}

Delivery begun_job(const std::string& id, std::uint64_t epoch = 1) {
    Delivery delivery{ready_job(id)};
    delivery.row.begun = false;
    Started started;
    started.epoch = epoch;
    started.attempt = 1;
    delivery.begun = started;
    return delivery;
}

TEST(WorkerClaimsThatBegin, AskForItAndStartTheHandlerWithoutAnotherCommand) {
    MachineRig rig(claims_begin());
    rig.fire(event::Start{});
    const auto [tag, claim] = rig.next<Claim>();
    EXPECT_EQ(claim.begin.size(), claim.spec.kinds.size());
    EXPECT_FALSE(claim.repeat);
    rig.reply_queue(tag,
                    QueueReply{Claimed{{begun_job("a", 7), {ready_job("b")}}, true, {}, false}});
    const auto started = rig.only<action::StartHandler>();
    EXPECT_EQ(started.ref.job_id, "a");
    EXPECT_EQ(started.ref.epoch, 7U);
    EXPECT_EQ(rig.next<Begin>().second.run.job_id, "b") << "this one's claim did not begin it";
    EXPECT_EQ(rig.waiting<Begin>(), 0U);
}

TEST(WorkerClaimsThatBegin, AreAskedForOnlyOfQueuesThatCan) {
    MachineRig rig;
    rig.fire(event::Start{});
    EXPECT_TRUE(rig.next<Claim>().second.begin.empty());
}

TEST(WorkerClaimsThatBegin, WhatTheStoreHeldBackStartsNoHandler) {
    MachineRig rig(claims_begin());
    rig.fire(event::Start{});
    Delivery parked{ready_job("a")};
    parked.begun = Parked{WaitFor::kKey, "k", std::nullopt};
    rig.reply_queue(rig.next<Claim>().first, QueueReply{Claimed{{parked}, true, {}, false}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    EXPECT_EQ(rig.only<action::RunClosed>().ref.job_id, "a");
}

TEST(WorkerClaimsThatBegin, AreRepeatedWhenTheAnswerWasLost) {
    MachineRig rig(claims_begin());
    rig.fire(event::Start{});
    rig.reply_queue(rig.next<Claim>().first,
                    QueueReply{Claimed{{begun_job("a")}, true, {}, false}});
    rig.reply_queue(rig.next<Claim>().first, lost_reply());
    rig.advance(2s);
    const auto [tag, again] = rig.next<Claim>();
    EXPECT_TRUE(again.repeat);
    EXPECT_EQ(again.known, (std::vector<std::pair<std::string, std::uint64_t>>{{"a", 1}}));
    EXPECT_EQ(rig.waiting<Claim>(), 0U) << "nothing new is claimed before that is answered";
    rig.reply_queue(tag, QueueReply{Claimed{{begun_job("b")}, true, {}, false}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 2U);
}

TEST(WorkerClaimsThatBegin, AreNotRepeatedWhenTheyWereRefused) {
    MachineRig rig(claims_begin());
    rig.fire(event::Start{});
    Error refused = lost_reply();
    refused.applied = Applied::kNo;
    rig.reply_queue(rig.next<Claim>().first, refused);
    rig.advance(2s);
    EXPECT_FALSE(rig.next<Claim>().second.repeat);
}

TEST(WorkerClaimsThatBegin, ALostOneIsFoundOutBeforeTheWorkerLeaves) {
    MachineRig rig(claims_begin());
    rig.fire(event::Start{});
    rig.reply_queue(rig.next<Claim>().first, lost_reply());
    rig.fire(event::StopRequested{});
    EXPECT_FALSE(rig.exited());
    rig.advance(2s);
    const auto [tag, again] = rig.next<Claim>();
    ASSERT_TRUE(again.repeat);
    rig.reply_queue(tag, QueueReply{Claimed{{begun_job("a")}, true, {}, false}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    const auto handed_back = rig.next<Settle>().second;
    EXPECT_EQ(handed_back.outcome.kind, Outcome::Kind::kInterrupted);
    EXPECT_TRUE(handed_back.outcome.nothing_applied);
}

}  // namespace
}  // namespace sekali::engine
