#include "machine_rig.hpp"

// Pairings where queue, store and locks are not one database.
namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

using Kind = Outcome::Kind;

WorkerConfig with_outside_locks() {
    WorkerConfig config = small_config();
    config.locks_in_store = false;
    return config;
}

JobRow locked_job(std::string id) {
    JobRow row = ready_job(std::move(id));
    row.job.lock_key = "order:1";
    return row;
}

LockReply lock_reply(LockReply::Kind kind) {
    LockReply reply;
    reply.kind = kind;
    return reply;
}

TEST(OutsideLocks, AreTakenBeforeTheBeginAndReleasedAfterTheEnd) {
    MachineRig rig(with_outside_locks());
    rig.fire(event::Start{});
    rig.deliver({locked_job("a")});
    EXPECT_EQ(rig.waiting<Begin>(), 0U);
    const auto [tag, acquire] = rig.next<LockAcquire>();
    EXPECT_EQ(acquire.name, "order:1");
    rig.reply_lock(tag, lock_reply(LockReply::Kind::kAcquired));
    EXPECT_EQ(rig.open.back().index(), Action{action::SubmitStore{}}.index());
    rig.begin_next();
    rig.end(rig.only<action::StartHandler>().run, Kind::kSuccess);
    EXPECT_EQ(rig.waiting<LockRelease>(), 0U);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.next<LockRelease>().second.token, acquire.token);
}

TEST(OutsideLocks, AreRenewedAndTheirLossStopsTheRun) {
    MachineRig rig(with_outside_locks());
    rig.fire(event::Start{});
    rig.deliver({locked_job("a")});
    rig.reply_lock(rig.next<LockAcquire>().first, lock_reply(LockReply::Kind::kAcquired));
    rig.begin_next();
    rig.advance_renewing(10s);
    const auto [tag, renewal] = rig.next<LockRenew>();
    EXPECT_EQ(renewal.ttl, 30s);
    rig.reply_lock(tag, lock_reply(LockReply::Kind::kLost));
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLockLost);
    rig.open.clear();
    rig.advance(15s);
    EXPECT_EQ(rig.waiting<LockRenew>() + rig.waiting<Renew>(), 0U) << "none is renewed any more";
}

TEST(OutsideLocks, ABusyOneLetsTheStoreParkTheJob) {
    MachineRig rig(with_outside_locks());
    rig.fire(event::Start{});
    rig.deliver({locked_job("a")});
    rig.reply_lock(rig.next<LockAcquire>().first, lock_reply(LockReply::Kind::kBusy));
    const auto begin = rig.next<Begin>().second;
    EXPECT_TRUE(begin.lock_refused);
    EXPECT_EQ(begin.policy.on_busy, OnBusy::kWait);
    EXPECT_EQ(rig.waiting<Return>(), 0U);
    EXPECT_EQ(rig.waiting<LockRelease>(), 0U);
}

TEST(OutsideLocks, SkipAndFailAreDecidedInTheStore) {
    WorkerConfig config = with_outside_locks();
    config.kinds["mail"].policy.on_busy = OnBusy::kSkip;
    MachineRig rig(config);
    rig.fire(event::Start{});
    rig.deliver({locked_job("a")});
    rig.reply_lock(rig.next<LockAcquire>().first, lock_reply(LockReply::Kind::kBusy));
    const auto begin = rig.next<Begin>().second;
    EXPECT_TRUE(begin.lock_refused);
    EXPECT_EQ(begin.policy.on_busy, OnBusy::kSkip);
}

TEST(OutsideLocks, OutOfReachFollowsTheKind) {
    for (const auto policy :
         {OnLockUnavailable::kWait, OnLockUnavailable::kFail, OnLockUnavailable::kProceed}) {
        WorkerConfig config = with_outside_locks();
        config.kinds["mail"].on_lock_unavailable = policy;
        MachineRig rig(config);
        rig.fire(event::Start{});
        rig.deliver({locked_job("a")});
        rig.reply_lock(rig.next<LockAcquire>().first, lost_reply());
        if (policy == OnLockUnavailable::kWait) {
            EXPECT_EQ(rig.waiting<Begin>(), 0U);
            rig.reply_queue(rig.next<Return>().first, QueueReply{Done{}});
            EXPECT_EQ(rig.waiting<LockRelease>(), 1U) << "it may have been granted";
            continue;
        }
        const auto begin = rig.next<Begin>().second;
        EXPECT_EQ(begin.lock_refused, policy == OnLockUnavailable::kFail);
        EXPECT_EQ(begin.policy.on_busy == OnBusy::kFail, begin.lock_refused);
    }
}

TEST(OutsideLocks, WhoParksInTheStoreGivesItsLockBack) {
    MachineRig rig(with_outside_locks());
    rig.fire(event::Start{});
    rig.deliver({locked_job("a")});
    rig.reply_lock(rig.next<LockAcquire>().first, lock_reply(LockReply::Kind::kAcquired));
    rig.reply_store(rig.next<Begin>().first,
                    StoreReply{BeginReply{Parked{WaitFor::kLock, "order:1", {}}}});
    EXPECT_EQ(rig.waiting<LockRelease>(), 1U);
}

// ---- queues that are not the store

WorkerConfig with_outside_queue(bool custody, bool push) {
    WorkerConfig config = small_config();
    config.queue = {.joint = false, .custody = custody, .push = push};
    return config;
}

TEST(OutsideQueue, IsAcknowledgedAfterTheEnd) {
    MachineRig rig(with_outside_queue(true, false));
    const RunId run = rig.run_one(ready_job("a"));
    EXPECT_EQ(rig.waiting<Acknowledge>(), 0U);
    rig.end(run, Kind::kSuccess);
    EXPECT_EQ(rig.waiting<Acknowledge>(), 0U);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.next<Acknowledge>().second.run.job_id, "a");
}

TEST(OutsideQueue, DelaysARetry) {
    MachineRig rig(with_outside_queue(true, false));
    const RunId run = rig.run_one(ready_job("a"));
    rig.end(run, Kind::kRetry);
    Settled settled = settled_as(JobState::kScheduled);
    settled.retry_in = 7s;
    rig.settle_next(settled);
    EXPECT_EQ(rig.next<Return>().second.delay, 7s);
}

TEST(OutsideQueue, IsExtendedBesideTheRecord) {
    MachineRig rig(with_outside_queue(true, false));
    rig.run_one(ready_job("a"));
    rig.advance_renewing(6s);
    const auto [tag, extend] = rig.next<Extend>();
    EXPECT_EQ(extend.lease, 15s);
    rig.reply_queue(tag, store_down());
    rig.advance_renewing(9s);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kLeaseLost);
}

TEST(OutsideQueue, SupersededWritesAndRequeuesNothing) {
    MachineRig rig(with_outside_queue(true, false));
    const RunId run = rig.run_one(ready_job("a"));
    rig.end(run, Kind::kRetry);
    Settled settled;
    settled.kind = Settled::Kind::kSuperseded;
    rig.settle_next(settled);
    EXPECT_EQ(rig.waiting<Acknowledge>() + rig.waiting<Return>(), 0U);
}

TEST(OutsideQueue, ALostAckChangesNoOutcomeAndIsGivenUp) {
    MachineRig rig(with_outside_queue(true, false));
    const RunId run = rig.run_one(ready_job("a"));
    rig.end(run, Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.only<action::RunClosed>().settled->state, JobState::kSucceeded);
    for (int i = 0; i < 60; ++i) {
        if (rig.waiting<Acknowledge>() > 0) {
            rig.reply_queue(rig.next<Acknowledge>().first, store_down());
        }
        rig.advance(1s);
    }
    EXPECT_EQ(rig.waiting<Acknowledge>(), 0U);
}

TEST(PushBroker, TheStoreAdoptsTheJobThenTheDeliveryIsAcknowledged) {
    MachineRig rig(with_outside_queue(false, true));
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    const auto [tag, begin] = rig.next<Begin>();
    EXPECT_TRUE(begin.adopt);
    EXPECT_EQ(begin.job.payload, "{}");
    EXPECT_EQ(rig.waiting<Acknowledge>(), 0U);
    Started started;
    started.epoch = 1;
    rig.reply_store(tag, StoreReply{BeginReply{started}});
    EXPECT_EQ(rig.waiting<Acknowledge>(), 1U) << "nothing waits in an unacked window";
    rig.advance_renewing(20s);
    EXPECT_EQ(rig.waiting<Extend>(), 0U);
    EXPECT_EQ(rig.only<action::StartHandler>().delivery.row.job.payload, "{}");
}

TEST(PushBroker, AcknowledgesWhatHasToWait) {
    MachineRig rig(with_outside_queue(false, true));
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    rig.reply_store(rig.next<Begin>().first,
                    StoreReply{BeginReply{Parked{WaitFor::kKey, "k", {}}}});
    EXPECT_EQ(rig.waiting<Acknowledge>(), 1U);
}

TEST(PushBroker, ItsOpenCreditDoesNotKeepTheWorkerFromEnding) {
    MachineRig rig(with_outside_queue(false, true));
    rig.fire(event::Start{});
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
    rig.fire(event::StopRequested{});
    EXPECT_TRUE(rig.exited());
}

TEST(PushBroker, GivesCreditForEverySlotOnce) {
    MachineRig rig(with_outside_queue(false, true));
    rig.fire(event::Start{});
    rig.fire(event::ChangeSeen{});
    rig.advance(10s);
    EXPECT_EQ(rig.waiting<Claim>(), 1U);
    EXPECT_EQ(rig.next<Claim>().second.spec.limit, 2U);
}

}  // namespace
}  // namespace sekali::engine
