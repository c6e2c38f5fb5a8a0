#include "conformance/scene.hpp"

// Jobs that wait in line for a lock key: order, wake-up, reservation, and what a kind says to do.
namespace sekali::conformance {
namespace {

using engine::Ended;
using engine::EventKind;
using engine::LockReply;
using engine::Parked;
using engine::Started;

class LinesConformance : public Scene {
 protected:
    /// Jobs 1 to `count` stand in line behind a shell that holds the lock.
    void line_up(int count) {
        ASSERT_EQ(acquire("l", "shell", 1h).kind, LockReply::Kind::kAcquired);
        for (int i = 1; i <= count; ++i) {
            const std::string id = "j" + std::to_string(i);
            put({.id = id, .lock = "l"});
            begin(claim_job("A", id));
            ASSERT_EQ(state(id), JobState::kWaiting);
        }
    }
    LockReply release(const std::string& owner) {
        return lock_call(engine::LockRelease{"default", "l", "token of " + owner});
    }
};

TEST_P(LinesConformance, G8_ABusyLockParksTheJobVisiblyAndCountsNothing) {
    line_up(1);
    const JobRow row = job("j1");
    EXPECT_EQ(row.waiting_for, WaitFor::kLock);
    EXPECT_EQ(row.waiting_name, "l");
    EXPECT_EQ(row.owner, "");
    EXPECT_EQ(row.attempts + row.crashes + row.interruptions + row.lost_claims, 0U);
    EXPECT_TRUE(claim("A").empty());
}

TEST_P(LinesConformance, G4_ALockOfAShellKeepsJobsOut) {
    acquire("l", "shell", 10s);
    put({.id = "j1", .lock = "l"});
    EXPECT_NE(as<Parked>(begin(claim_job("A", "j1"))), nullptr);
}

TEST_P(LinesConformance, G4_AJobsLockKeepsAShellOut) {
    put({.id = "j1", .lock = "l"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(acquire("l", "shell").kind, LockReply::Kind::kBusy);
    succeed(run);
    const LockReply reply = acquire("l", "shell");
    EXPECT_EQ(reply.kind, LockReply::Kind::kAcquired);
    EXPECT_GT(reply.fence, run.started.fence);
}

TEST_P(LinesConformance, G4_LockNamesAreSharedByAllKinds) {
    put({.id = "j1", .lock = "l"});
    put({.id = "j2", .lock = "l", .kind = "mail"});
    start("A", "j1");
    EXPECT_NE(as<Parked>(begin(claim_job("A", "j2"))), nullptr);
}

TEST_P(LinesConformance, ALineIsServedInTheOrderOfArrival) {
    line_up(4);
    release("shell");
    for (const char* id : {"j1", "j2", "j3", "j4"}) {
        EXPECT_EQ(state(id), JobState::kReady) << "woken by the end of the one before";
        succeed(start("A", id));
    }
}

TEST_P(LinesConformance, LargerPrioritiesStandFurtherInFront) {
    acquire("l", "shell", 1h);
    put({.id = "low", .lock = "l"});
    begin(claim_job("A", "low"));
    put({.id = "high", .lock = "l", .priority = 9});
    begin(claim_job("A", "high"));
    release("shell");
    EXPECT_EQ(claim_ids("A"), (std::vector<std::string>{"high"}));
}

TEST_P(LinesConformance, OnlyTheFirstIsWokenInTheSameTransaction) {
    line_up(3);
    release("shell");
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(state("j2"), JobState::kWaiting);
    EXPECT_EQ(state("j3"), JobState::kWaiting);
    EXPECT_EQ(lock_row("l")->reserved_for, "j1");
}

TEST_P(LinesConformance, ANewerJobDoesNotOvertakeTheWokenOne) {
    line_up(1);
    put({.id = "newer", .lock = "l", .priority = 9});
    const Delivery newer = claim_job("B", "newer");
    release("shell");
    EXPECT_NE(as<Parked>(begin(newer)), nullptr);
    EXPECT_EQ(acquire("l", "another shell").kind, LockReply::Kind::kBusy);
    start("A", "j1");
}

TEST_P(LinesConformance, AReservationThatNobodyUsesEnds) {
    line_up(2);
    pause("default");
    release("shell");
    EXPECT_EQ(state("j1"), JobState::kReady);
    advance(3s);
    recover();
    EXPECT_EQ(state("j2"), JobState::kReady) << "the next one gets its turn";
    EXPECT_EQ(acquire("other", "shell").kind, LockReply::Kind::kAcquired);
}

TEST_P(LinesConformance, AWokenJobThatEndsPassesItsTurnOn) {
    line_up(2);
    release("shell");
    cancel("j1");
    EXPECT_EQ(state("j2"), JobState::kReady);
    EXPECT_EQ(lock_row("l")->reserved_for, "j2");
}

TEST_P(LinesConformance, ABreakWakesTheFirst) {
    put({.id = "j1", .lock = "l"});
    put({.id = "j2", .lock = "l"});
    start("A", "j1");
    begin(claim_job("B", "j2"));
    EXPECT_TRUE(tx([](Tables& tables) { return break_lock(tables, "default", "l"); }));
    EXPECT_EQ(state("j2"), JobState::kReady);
    EXPECT_FALSE(tx([](Tables& tables) { return break_lock(tables, "default", "free"); }));
}

TEST_P(LinesConformance, EveryEndOfARunWakesTheFirst) {
    policy.effects = Effects::kCommit;
    const std::vector<Outcome> outcomes{success(),
                                        failure(),
                                        ended(Outcome::Kind::kPermanent),
                                        ended(Outcome::Kind::kSnooze),
                                        ended(Outcome::Kind::kCancel),
                                        ended(Outcome::Kind::kTimeout),
                                        ended(Outcome::Kind::kCrashed),
                                        ended(Outcome::Kind::kInterrupted, "shutdown"),
                                        ended(Outcome::Kind::kHold)};
    int n = 0;
    for (const Outcome& outcome : outcomes) {
        const std::string lock = "l" + std::to_string(n);
        const std::string holder = "h" + std::to_string(n);
        const std::string waiter = "w" + std::to_string(n++);
        put({.id = holder, .lock = lock});
        const Attempt run = start("A", holder);
        put({.id = waiter, .lock = lock});
        begin(claim_job("B", waiter));
        Outcome end = outcome;
        if (end.kind == Outcome::Kind::kSnooze) end.delay = 1h;
        settle(run, end);
        EXPECT_EQ(state(waiter), JobState::kReady) << n;
        for (const Delivery& delivery : claim("C")) {
            if (delivery.row.job.id == waiter) succeed(start(delivery));
        }
    }
}

TEST_P(LinesConformance, AHeldJobKeepsNoLock) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .lock = "l"});
    settle(start("A", "j1"), failure());
    ASSERT_EQ(state("j1"), JobState::kHeld);
    put({.id = "j2", .lock = "l"});
    start("A", "j2");
}

TEST_P(LinesConformance, F09_AHundredJobsOfOneKeyAllSucceedAndBurnNothing) {
    for (int i = 0; i < 100; ++i) {
        put({.id = "j" + std::to_string(1000 + i), .lock = "l", .max_attempts = 3});
        put({.id = "u" + std::to_string(1000 + i)});
    }
    int done = 0;
    int unrelated_before_the_third = 0;
    for (int round = 0; round < 400 && done < 200; ++round) {
        std::vector<Attempt> runs;
        for (const Delivery& delivery : claim("A", 16)) {
            Attempt run = prepare(delivery);
            const BeginReply reply = begin(run.request);
            if (const auto* started = as<Started>(reply)) {
                run.started = *started;
                runs.push_back(run);
            }
        }
        int of_the_key = 0;
        for (const Attempt& run : runs) {
            const bool locked = !run.request.run.lock_key.empty();
            of_the_key += locked ? 1 : 0;
            if (!locked && round < 14) ++unrelated_before_the_third;
            EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
            ++done;
        }
        EXPECT_LE(of_the_key, 1);
    }
    EXPECT_EQ(done, 200);
    EXPECT_EQ(unrelated_before_the_third, 100) << "unrelated jobs do not stand behind the line";
    for (int i = 0; i < 100; ++i) {
        const JobRow row = job("j" + std::to_string(1000 + i));
        EXPECT_EQ(row.attempts, 1U);
        EXPECT_LE(row.deliveries, 2U) << "parked once, woken once";
    }
}

TEST_P(LinesConformance, OnBusy_SkipEndsCancelledAndTouchesNoRecord) {
    policy.on_busy = OnBusy::kSkip;
    acquire("l", "shell");
    put({.id = "j1", .lock = "l"});
    const BeginReply reply = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kCancelled);
    EXPECT_EQ(job("j1").reason, "lock_busy");
    EXPECT_FALSE(find_record("j1"));
}

TEST_P(LinesConformance, OnBusy_FailIsARetryableErrorThatUsesAnAttempt) {
    policy.on_busy = OnBusy::kFail;
    policy.retry.max_attempts = 2;
    acquire("l", "shell", 1h);
    put({.id = "j1", .lock = "l"});
    const BeginReply first = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Parked>(first), nullptr);
    EXPECT_EQ(as<Parked>(first)->delay, policy.retry.base);
    EXPECT_EQ(state("j1"), JobState::kScheduled);
    EXPECT_EQ(job("j1").attempts, 1U);
    advance(policy.retry.base);
    const BeginReply second = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Ended>(second), nullptr);
    EXPECT_EQ(as<Ended>(second)->state, JobState::kDead);
    EXPECT_EQ(job("j1").attempts, 2U);
}

TEST_P(LinesConformance, AnOutsideLockServiceThatRefusedIsAsBusy) {
    put({.id = "j1", .lock = "l"});
    Attempt run = prepare(claim_job("A", "j1"));
    run.request.lock_refused = true;
    EXPECT_NE(as<Parked>(begin(run.request)), nullptr);
    EXPECT_EQ(state("j1"), JobState::kWaiting);
    recover();
    EXPECT_EQ(state("j1"), JobState::kReady) << "it asks again";
}

TEST_P(LinesConformance, ASucceededKeySkipsTheLock) {
    put({.id = "j1", .key = "k", .lock = "l"});
    succeed(start("A", "j1"));
    acquire("l", "shell");
    put({.id = "j2", .key = "k", .lock = "l"});
    const BeginReply reply = begin(claim_job("A", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
}

TEST_P(LinesConformance, G8_AWaitForTheKeyTakesNoLock) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    put({.id = "j2", .key = "k", .lock = "l"});
    begin(claim_job("B", "j2"));
    EXPECT_FALSE(lock_row("l")) << "who parks holds no lock";
}

TEST_P(LinesConformance, I22_ALapsedLockIsTakenOnlyByWhoHadTheStoreForALease) {
    put({.id = "j1", .lock = "l"});
    const Attempt slow = start("A", "j1");
    advance(lease + 1ms);
    put({.id = "j2", .lock = "l"});
    may_take_over = false;
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Parked>(reply), nullptr);
    EXPECT_TRUE(as<Parked>(reply)->delay) << "it looks again by itself";
    EXPECT_TRUE(renew(slow).lock_kept);
    EXPECT_EQ(succeed(slow).kind, Settled::Kind::kApplied);
}

TEST_P(LinesConformance, I22_AHandlersLockIsTakenOnlyByWhoHadTheStoreForALease) {
    put({.id = "j1", .lock = "l"});
    const Attempt slow = start("A", "j1");
    advance(lease + 1ms);
    const engine::LockAcquire request{.ns = "default",
                                      .name = "l",
                                      .owner = "B",
                                      .token = "b",
                                      .ttl = 30s,
                                      .may_take_over = false};
    EXPECT_EQ(lock_call(request).kind, engine::LockReply::Kind::kBusy);
    EXPECT_TRUE(renew(slow).lock_kept);
    kill("A");
    EXPECT_EQ(lock_call(request).kind, engine::LockReply::Kind::kAcquired) << "a proven death";
}

TEST_P(LinesConformance, I21_ARenewalMovesAllLeasesOfARunTogether) {
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt run = start("A", "j1");
    advance(5s);
    renew(run);
    const StoreTime until = now() + lease;
    EXPECT_EQ(job("j1").lease_until, until);
    EXPECT_EQ(record("k").lease_until, until);
    EXPECT_EQ(lock_row("l")->lease_until, until);
}

TEST_P(LinesConformance, G4_ALateRunReleasesNobodysLock) {
    put({.id = "j1", .lock = "l"});
    const Attempt late = start("A", "j1");
    lapse();
    const Attempt present = start("B", "j1");
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(lock_row("l")->owner, "B");
    EXPECT_EQ(lock_row("l")->fence, present.started.fence);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(LinesConformance, I21_ABeginMovesTheLeaseOfItsClaim) {
    for (const engine::RecordMode mode : {engine::RecordMode::kKept, engine::RecordMode::kNone}) {
        policy.record = mode;
        const std::string id = mode == engine::RecordMode::kKept ? "j1" : "j2";
        put({.id = id, .lock = "l" + id});
        const Delivery delivery = claim_job("A", id);
        advance(lease - 1s);  // it waited for its turn
        const Attempt run = start(delivery);
        EXPECT_EQ(job(id).lease_until, now() + lease);
        advance(lease - 1ms);
        EXPECT_EQ(recover(), 0U) << "the begin's own lease is not over";
        EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
    }
}

SEKALI_CONFORMS(LinesConformance);

}  // namespace
}  // namespace sekali::conformance
