#include "machine_rig.hpp"

namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

using Kind = Outcome::Kind;

TEST(WorkerLeases, AreRenewedEveryThird) {
    MachineRig rig;
    rig.run_one(ready_job("a"));
    std::vector<Millis> at;
    const LocalTime start = rig.now;
    for (int i = 0; i < 160; ++i) {
        rig.advance(100ms);
        while (rig.waiting<Renew>() > 0) {
            const auto [tag, renewal] = rig.next<Renew>();
            if (!renewal.look) at.push_back(rig.now - start);
            rig.reply_store(tag, StoreReply{Renewed{true, true, false}});
        }
    }
    EXPECT_EQ(at, (std::vector<Millis>{5s, 10s, 15s}));
}

TEST(WorkerLeases, ALookForACancelMovesNoLease) {
    MachineRig rig;
    rig.run_one(ready_job("a"));
    rig.advance(1s);
    const auto [tag, look] = rig.next<Renew>();
    EXPECT_TRUE(look.look);
    rig.reply_store(tag, StoreReply{Renewed{true, true, true}});
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kCancel);
}

TEST(WorkerLeases, TheStopTokenFiresBeforeTheLeaseCanBeOver) {
    MachineRig rig;
    const LocalTime claimed = rig.now;
    rig.run_one(ready_job("a"));
    while (rig.count<action::AskStop>() == 0 && rig.now < claimed + 60s) {
        rig.advance(100ms);
        while (rig.waiting<Renew>() > 0)
            rig.reply_store(rig.next<Renew>().first, store_down());
    }
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLeaseLost);
    EXPECT_LT(rig.now, claimed + 15s);
    const auto sent = rig.count<action::SubmitStore>();
    rig.upkeep_works = false;
    rig.advance(1ms);
    EXPECT_LE(rig.count<action::SubmitStore>(), sent + 2);
    rig.open.clear();
    rig.advance(20s);
    EXPECT_EQ(rig.waiting<Renew>(), 0U) << "none is renewed any more";
}

TEST(WorkerLeases, SilenceCountsLikeAFailure) {
    MachineRig rig;
    rig.run_one(ready_job("a"));
    rig.advance(14s);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLeaseLost);
}

TEST(WorkerLeases, ARenewalThatIsRefusedStopsTheRunAtOnce) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.advance(1s);
    rig.renew_next(false);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLeaseLost);
    rig.end(run, Kind::kRetry);
    const auto settle = rig.next<Settle>().second;
    EXPECT_EQ(settle.outcome.kind, Kind::kInterrupted) << "no attempt is used up";
    EXPECT_EQ(settle.outcome.reason, "lease_lost");
}

TEST(WorkerLeases, ALostLockIsToldApart) {
    MachineRig rig;
    JobRow row = ready_job("a");
    row.job.lock_key = "l";
    rig.run_one(row);
    rig.advance(1s);
    rig.renew_next(true, false);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLockLost);
}

TEST(WorkerLeases, MaxHoldEndsTheLock) {
    WorkerConfig config = small_config();
    config.kinds["mail"].max_hold = 20s;
    MachineRig rig(config);
    JobRow row = ready_job("a");
    row.job.lock_key = "l";
    rig.run_one(row);
    rig.advance_renewing(19s);
    EXPECT_EQ(rig.count<action::AskStop>(), 0U);
    rig.advance_renewing(1100ms);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLockLost);
}

TEST(WorkerLeases, AreKeptWhileTheEndIsNotDurable) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.end(run, Kind::kSuccess);
    rig.advance(6s);
    EXPECT_GE(rig.waiting<Renew>(), 1U);
}

TEST(WorkerLeases, AnOldRenewalOfTheBareClaimSaysNothingAboutTheRun) {
    MachineRig rig(small_config(1));
    JobRow busy = ready_job("busy");
    const RunId first = rig.run_one(busy);
    rig.end(first, Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    rig.deliver({ready_job("a")});
    rig.begin_next(3);
    rig.advance(14s);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLeaseLost);
}

TEST(WorkerLeases, ACancelIsAskedForThenForced) {
    WorkerConfig config = small_config();
    config.kinds["exec"].policy.grace = 2s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a", "exec"));
    rig.advance(1s);
    rig.renew_next(true, true, true);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kCancel);
    rig.advance_renewing(2s);
    EXPECT_EQ(rig.only<action::KillRun>().run, run);
    rig.end(run, Kind::kInterrupted);
    EXPECT_EQ(rig.next<Settle>().second.outcome.reason, "cancel");
}

TEST(WorkerLeases, ACommitThatComesFirstWinsOverACancel) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.advance(1s);
    rig.fire(event::CommitRequested{run, {}, {}});
    rig.renew_next(true, true, true);
    EXPECT_EQ(rig.count<action::AskStop>(), 0U);
    rig.settle_next(settled_as(JobState::kSucceeded));
    rig.end(run, Kind::kSuccess);
    EXPECT_EQ(rig.only<action::RunClosed>().settled->state, JobState::kSucceeded);
}

TEST(WorkerLeases, TheWorkerItselfBeatsEveryThird) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.advance(16s);
    std::size_t beats = 0;
    for (const auto& submit : rig.all<action::SubmitStore>()) {
        if (const auto* beat = std::get_if<Heartbeat>(&submit.command)) {
            ++beats;
            EXPECT_EQ(beat->lease, 15s);
            EXPECT_FALSE(beat->leave);
        }
    }
    EXPECT_EQ(beats, 4U);
}

TEST(WorkerRecovery, PassesOnceASecondAndContinuesAFullOneAtOnce) {
    MachineRig rig;
    rig.upkeep_works = false;
    rig.fire(event::Start{});
    auto [tag, recover] = rig.next<Recover>();
    EXPECT_EQ(recover.after_seq, 0);
    rig.reply_store(tag, StoreReply{Recovered{200, 77}});
    const auto [second, next] = rig.next<Recover>();
    EXPECT_EQ(next.after_seq, 77);
    rig.reply_store(second, StoreReply{Recovered{3, 0}});
    EXPECT_EQ(rig.waiting<Recover>(), 0U);
    rig.advance(999ms);
    EXPECT_EQ(rig.waiting<Recover>(), 0U);
    rig.advance(1ms);
    EXPECT_EQ(rig.waiting<Recover>(), 1U);
}

TEST(WorkerRecovery, ADownStoreIsNotHammered) {
    MachineRig rig;
    rig.upkeep_works = false;
    rig.fire(event::Start{});
    std::size_t sent = 0;
    for (int i = 0; i < 3000; ++i) {
        rig.advance(10ms);
        while (!rig.open.empty()) {
            ++sent;
            if (rig.waiting<Recover>() > 0)
                rig.reply_store(rig.next<Recover>().first, store_down());
            if (rig.waiting<Heartbeat>() > 0) {
                rig.reply_store(rig.next<Heartbeat>().first, store_down());
            }
            if (rig.waiting<Claim>() > 0) rig.reply_queue(rig.next<Claim>().first, store_down());
        }
    }
    EXPECT_LT(sent, 200U);
}

}  // namespace
}  // namespace sekali::engine
