#include "machine_rig.hpp"

namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

using Kind = Outcome::Kind;

// ---- begin

TEST(WorkerBegin, TheHandlerGetsItsPayloadAndTheGuardOfItsWrites) {
    MachineRig rig;
    JobRow row = ready_job("a");
    row.job.payload = "{\"cents\":5}";
    row.job.lock_key = "order:1";
    row.deliveries = 7;
    rig.fire(event::Start{});
    rig.deliver({row});
    const auto [tag, begin] = rig.next<Begin>();
    EXPECT_TRUE(begin.job.payload.empty()) << "the store has it";
    EXPECT_FALSE(begin.lock_token.empty());
    Started started;
    started.epoch = 4;
    started.fence = 9;
    rig.reply_store(tag, StoreReply{BeginReply{started}});
    const auto start = rig.only<action::StartHandler>();
    EXPECT_EQ(start.delivery.row.job.payload, "{\"cents\":5}");
    EXPECT_EQ(start.ref.epoch, 4U);
    EXPECT_EQ(start.ref.fence, 9U);
    EXPECT_EQ(start.ref.delivery, 7U);
    EXPECT_EQ(start.ref.lock_key, "order:1");
    EXPECT_EQ(start.deadline, rig.now + 5min);
}

TEST(WorkerBegin, NothingStartsWithoutADurableBegin) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    for (int i = 0; i < 5; ++i) {
        rig.reply_store(rig.next<Begin>().first, store_down());
        rig.advance(1s);
    }
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    rig.begin_next();
    EXPECT_EQ(rig.count<action::StartHandler>(), 1U);
}

TEST(WorkerBegin, IsGivenBackWhenItFailsForAWholeLease) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    for (int i = 0; i < 40 && rig.waiting<Return>() == 0; ++i) {
        if (rig.waiting<Begin>() > 0) rig.reply_store(rig.next<Begin>().first, store_down());
        rig.advance(500ms);
    }
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "a");
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    EXPECT_EQ(rig.status().claimed, 0U);
}

TEST(WorkerBegin, ALostReplyIsAskedForUntilItIsKnown) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    const auto first = rig.next<Begin>();
    rig.reply_store(first.first, lost_reply());
    for (int i = 0; i < 60; ++i) {
        rig.advance(1s);
        if (rig.waiting<Begin>() > 0) rig.reply_store(rig.next<Begin>().first, store_down());
    }
    EXPECT_EQ(rig.waiting<Return>(), 0U) << "the store may think that it runs";
    rig.advance(1s);
    const auto again = rig.next<Begin>();
    EXPECT_EQ(again.second.lock_token, first.second.lock_token);
    Started started;
    started.epoch = 1;
    rig.reply_store(again.first, StoreReply{BeginReply{started}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U) << "its lease is over";
    const auto settle = rig.next<Settle>().second;
    EXPECT_EQ(settle.outcome.kind, Kind::kInterrupted);
    EXPECT_TRUE(settle.outcome.nothing_applied);
}

TEST(WorkerBegin, ARepeatThatFindsItsLockGoneStartsNothing) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    rig.reply_store(rig.next<Begin>().first, lost_reply());
    rig.advance(1s);
    Started started;
    started.epoch = 1;
    started.lock_lost = true;
    rig.reply_store(rig.next<Begin>().first, StoreReply{BeginReply{started}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    const auto settle = rig.next<Settle>().second;
    EXPECT_EQ(settle.outcome.reason, "lock_lost");
    EXPECT_TRUE(settle.outcome.nothing_applied);
}

TEST(WorkerBegin, ParkedEndedHeldAndGoneStartNothingAndFreeTheSlot) {
    const std::vector<BeginReply> replies{Parked{WaitFor::kKey, "k", {}},
                                          Ended{JobState::kDuplicate, {}, {}}, HeldBack{}, Gone{}};
    for (const BeginReply& reply : replies) {
        MachineRig rig(small_config(1));
        rig.fire(event::Start{});
        rig.deliver({ready_job("a")});
        rig.reply_store(rig.next<Begin>().first, StoreReply{reply});
        EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
        EXPECT_TRUE(rig.only<action::RunClosed>().refused.has_value());
        EXPECT_EQ(rig.waiting<Claim>(), 1U);
    }
}

TEST(WorkerBegin, MayTakeOverOnlyAfterALeaseOfAnswers) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    EXPECT_FALSE(rig.next<Begin>().second.may_take_over);
    for (int second = 0; second < 16; ++second) {
        rig.advance(1s);
        rig.deliver({});
    }
    rig.advance(1s);
    rig.deliver({ready_job("b")});
    EXPECT_TRUE(rig.next<Begin>().second.may_take_over);
}

TEST(WorkerBegin, AWorkerThatWasStoppedTakesNothingOver) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.advance(20s);
    rig.now += 60s;
    rig.fire(event::Tick{});
    rig.open.clear();
    rig.upkeep_works = false;
    rig.advance(2s);
    EXPECT_FALSE(rig.next<Recover>().second.may_take_over);
}

TEST(WorkerBegin, AClaimWhoseAnswerCameTooLateIsNotBegun) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.advance(14s);
    rig.deliver({ready_job("a")});
    EXPECT_EQ(rig.waiting<Begin>(), 0U);
    EXPECT_EQ(rig.waiting<Return>(), 1U);
}

// ---- probe

TEST(WorkerProbe, IsAskedBeforeTheHandlerAndItsAnswerDecides) {
    WorkerConfig config = small_config();
    config.kinds["mail"].policy.whole_answer = true;
    MachineRig rig(config);
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    Started started;
    started.epoch = 2;
    started.probe_first = true;
    rig.reply_store(rig.next<Begin>().first, StoreReply{BeginReply{started}});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    const RunId run = rig.only<action::AskProbe>().run;
    rig.fire(event::ProbeEnded{run, Answer::Kind::kDidNot, {}});
    const auto [tag, answer] = rig.next<Answer>();
    EXPECT_EQ(answer.kind, Answer::Kind::kDidNot);
    EXPECT_TRUE(answer.resolves_job);
    rig.reply_store(tag, lost_reply());
    rig.advance(1s);
    rig.reply_store(rig.next<Answer>().first, StoreReply{Done{}});
    EXPECT_EQ(rig.only<action::StartHandler>().delivery.row.job.payload, "{}");
}

TEST(WorkerProbe, AnAnswerThatEndsTheJobStartsNoHandler) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    Started started;
    started.epoch = 2;
    started.probe_first = true;
    rig.reply_store(rig.next<Begin>().first, StoreReply{BeginReply{started}});
    rig.fire(event::ProbeEnded{rig.only<action::AskProbe>().run, Answer::Kind::kHappened, "7"});
    rig.reply_store(rig.next<Answer>().first, StoreReply{settled_as(JobState::kSucceeded)});
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    EXPECT_EQ(rig.only<action::RunClosed>().attempt, 0U);
}

// ---- settle and commit

TEST(WorkerSettle, IsRepeatedUntilTheStoreAnswers) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.end(run, Kind::kSuccess);
    for (int i = 0; i < 100; ++i) {
        if (rig.waiting<Settle>() > 0) rig.reply_store(rig.next<Settle>().first, lost_reply());
        rig.advance(1s);
    }
    EXPECT_EQ(rig.waiting<Settle>(), 1U);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.only<action::RunClosed>().run, run);
}

TEST(WorkerCommit, HoldsTheHandlerUntilTheStoreHasAnswered) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::CommitRequested{run, [](Transaction&) { return Result<void>{}; }, "42"});
    EXPECT_EQ(rig.count<action::CompleteCommit>(), 0U);
    const auto [tag, settle] = rig.next<Settle>();
    EXPECT_EQ(settle.outcome.kind, Kind::kSuccess);
    EXPECT_EQ(settle.outcome.result, "42");
    EXPECT_TRUE(static_cast<bool>(settle.effects));
    rig.reply_store(tag, lost_reply());
    rig.advance(1s);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.only<action::CompleteCommit>().settled.kind, Settled::Kind::kApplied);
    EXPECT_EQ(rig.count<action::RunClosed>(), 0U) << "the handler has not returned";
    rig.end(run, Kind::kRetry);
    EXPECT_EQ(rig.waiting<Settle>(), 0U) << "its success is final";
    EXPECT_EQ(rig.only<action::RunClosed>().settled->state, JobState::kSucceeded);
}

TEST(WorkerCommit, FailedEffectsLeaveTheRunOpen) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::CommitRequested{run, {}, {}});
    Settled failed;
    failed.kind = Settled::Kind::kEffectsFailed;
    rig.settle_next(failed);
    EXPECT_EQ(rig.only<action::CompleteCommit>().settled.kind, Settled::Kind::kEffectsFailed);
    rig.end(run, Kind::kRetry);
    EXPECT_EQ(rig.next<Settle>().second.outcome.kind, Kind::kRetry);
}

TEST(WorkerCommit, ARefusedOneIsNotSettledAgain) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::CommitRequested{run, {}, {}});
    Settled refused;
    refused.kind = Settled::Kind::kSuperseded;
    rig.settle_next(refused);
    rig.end(run, Kind::kInterrupted);
    EXPECT_EQ(rig.waiting<Settle>(), 0U);
    EXPECT_EQ(rig.count<action::RunClosed>(), 1U);
}

TEST(WorkerCommit, OfARunThatIsOverIsRefusedAtOnce) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.fire(event::CommitRequested{99, {}, {}});
    EXPECT_EQ(rig.only<action::CompleteCommit>().settled.kind, Settled::Kind::kSuperseded);
}

TEST(WorkerCommit, ATimeoutDoesNotCutOffWhatWaitsForTheStore) {
    WorkerConfig config = small_config();
    config.kinds["mail"].policy.timeout = 1s;
    config.kinds["mail"].policy.grace = 1s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::CommitRequested{run, {}, {}});
    rig.advance_renewing(20s);
    EXPECT_EQ(rig.count<action::Recycle>(), 0U);
    EXPECT_EQ(rig.count<action::AskStop>(), 0U);
}

TEST(WorkerCommit, ChecksTheFencesOfTheHandlersOwnLocksAndReleasesThem) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::LockTaken{run, "stock", "t1", 12, 15s, rig.now});
    rig.advance_renewing(6s);
    const auto [renew_tag, renewal] = rig.next<LockRenew>();
    EXPECT_EQ(renewal.token, "t1");
    LockReply kept;
    kept.kind = LockReply::Kind::kAcquired;
    rig.reply_lock(renew_tag, kept);
    rig.fire(event::CommitRequested{run, {}, {}});
    const auto [tag, settle] = rig.next<Settle>();
    ASSERT_EQ(settle.extra_locks.size(), 1U);
    EXPECT_EQ(settle.extra_locks.front().fence, 12U);
    rig.reply_store(tag, StoreReply{settled_as(JobState::kSucceeded)});
    EXPECT_EQ(rig.next<LockRelease>().second.token, "t1");
}

// ---- timeout

TEST(WorkerTimeout, AsksThenKillsAndCountsIt) {
    WorkerConfig config = small_config();
    config.kinds["exec"].policy.timeout = 10s;
    config.kinds["exec"].policy.grace = 3s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a", "exec"));
    rig.advance_renewing(10s);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kTimeout);
    rig.advance_renewing(2900ms);
    EXPECT_EQ(rig.count<action::KillRun>(), 0U);
    rig.advance_renewing(100ms);
    EXPECT_EQ(rig.only<action::KillRun>().run, run);
    rig.end(run, Kind::kInterrupted);
    const auto settle = rig.next<Settle>().second;
    EXPECT_EQ(settle.outcome.kind, Kind::kTimeout);
    EXPECT_TRUE(settle.outcome.process_gone);
    EXPECT_EQ(rig.count<action::Recycle>(), 0U);
}

TEST(WorkerTimeout, AnAnswerInTheGraceIsTheAnswer) {
    WorkerConfig config = small_config();
    config.kinds["mail"].policy.timeout = 10s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a"));
    rig.advance_renewing(11s);
    rig.end(run, Kind::kSuccess);
    EXPECT_EQ(rig.next<Settle>().second.outcome.kind, Kind::kSuccess);
}

TEST(WorkerTimeout, AThreadThatWillNotEndRecyclesTheProcess) {
    WorkerConfig config = small_config();
    config.kinds["mail"].policy.timeout = 10s;
    config.kinds["mail"].policy.grace = 5s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a"));
    rig.advance(1s);
    rig.deliver({ready_job("b")});
    rig.begin_next();
    const RunId other = rig.all<action::StartHandler>().back().run;
    rig.advance_renewing(9s);
    rig.end(other, Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    rig.deliver({ready_job("c")});
    rig.begin_next();
    const RunId last = rig.all<action::StartHandler>().back().run;
    rig.advance_renewing(5s);

    EXPECT_EQ(rig.only<action::Recycle>().run, run);
    EXPECT_EQ(rig.only<action::Recycle>().reason, "timed out, still running");
    EXPECT_EQ(rig.waiting<Settle>(), 0U) << "a second run could start beside it";
    rig.fire(event::ChangeSeen{});
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    rig.advance_renewing(2s);
    rig.end(last, Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));

    const auto [tag, settle] = rig.next<Settle>();
    EXPECT_EQ(settle.outcome.kind, Kind::kTimeout);
    EXPECT_FALSE(settle.outcome.process_gone);
    rig.reply_store(tag, StoreReply{settled_as(JobState::kScheduled)});
    EXPECT_TRUE(rig.only<action::Exit>().recycle);
}

TEST(WorkerTimeout, AStuckHandlerThatWakesUpMayStillCommit) {
    WorkerConfig config = small_config(2);
    config.kinds["mail"].policy.timeout = 1s;
    config.kinds["mail"].policy.grace = 1s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a"));
    rig.advance(500ms);
    rig.fire(event::ChangeSeen{});
    rig.deliver({ready_job("b", "exec")});
    rig.begin_next();
    rig.advance_renewing(3s);
    EXPECT_EQ(rig.status().stuck, 1U);
    rig.fire(event::CommitRequested{run, {}, {}});
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.only<action::CompleteCommit>().settled.kind, Settled::Kind::kApplied);
}

}  // namespace
}  // namespace sekali::engine
