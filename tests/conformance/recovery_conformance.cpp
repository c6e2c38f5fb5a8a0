#include "conformance/scene.hpp"

// What becomes of runs whose worker is gone, and of lines whose holder is (G1, G7, G8).
namespace sekali::conformance {
namespace {

using engine::EventKind;
using engine::HeldBack;
using engine::Parked;
using engine::Started;

class RecoveryConformance : public Scene {};

TEST_P(RecoveryConformance, A06_AClaimThatLapsedIsReadyAgain) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    EXPECT_EQ(recover(), 0U);
    advance(lease);
    EXPECT_EQ(recover(), 1U);
    EXPECT_EQ(start("B", "j1").started.epoch, 2U);
}

TEST_P(RecoveryConformance, A07_ALiveLeaseIsNeverTaken) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(recover(), 0U);
        advance(lease / 3);
        EXPECT_TRUE(renew(run).kept);
    }
    EXPECT_EQ(job("j1").deliveries, 1U);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(RecoveryConformance, A08_ARecoveredRowHasNoTraceOfItsClaim) {
    put({.id = "j1"});
    start("A", "j1");
    crash("A");
    const JobRow row = job("j1");
    EXPECT_EQ(row.state, JobState::kReady);
    EXPECT_EQ(row.owner, "");
    EXPECT_EQ(row.lease_until, StoreTime{});
    EXPECT_FALSE(row.begun);
}

TEST_P(RecoveryConformance, G6_TheNextRunsOwnDeathIsJudgedByItself) {
    policy.effects = Effects::kSteps;
    policy.on_unknown = OnUnknown::kProbe;
    policy.probe = KindPolicy::Probe::kInStep;
    put({.id = "j1", .key = "k"});
    step(start("A", "j1"), "charge", true);
    crash("A");
    start("B", "j1");
    lapse();
    // Nobody has proven that B is gone: it may be about to act.
    EXPECT_TRUE(as<Parked>(begin(claim_job("C", "j1"))));
    advance(policy.timeout + policy.grace);
    EXPECT_TRUE(start("C", "j1").started.ask_in_step);
}

TEST_P(RecoveryConformance, A04_AFinishAndARecoveryOfOneRunGiveOneEnd) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    succeed(run);
    lapse();
    crash("A");
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_EQ(attempts("k").size(), 1U);
    EXPECT_TRUE(claim("B").empty());
}

TEST_P(RecoveryConformance, I35_AClaimThatDiesBeforeBeginIsNoCrash) {
    put({.id = "j1"});
    claim_job("A", "j1");
    crash("A");
    EXPECT_EQ(job("j1").crashes, 0U);
    EXPECT_EQ(job("j1").interruptions, 0U);
    EXPECT_EQ(job("j1").lost_claims, 1U);
    EXPECT_FALSE(find_record("j1"));
    EXPECT_EQ(start("B", "j1").started.epoch, 1U);
}

TEST_P(RecoveryConformance, I34_TwentyClaimsThatDieBeforeBeginAreHeld) {
    put({.id = "j1"});
    int claims = 0;
    while (state("j1") == JobState::kReady && claims < 100) {
        claim_job("A" + std::to_string(claims), "j1");
        crash("A" + std::to_string(claims));
        ++claims;
    }
    EXPECT_EQ(claims, 20);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    resolve("j1", engine::Resolution::Kind::kRerun);
    EXPECT_EQ(succeed(start("B", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(RecoveryConformance, I34_ALapseWithoutAProvenDeathIsAnInterruption) {
    put({.id = "j1"});
    start("A", "j1");
    lapse();
    EXPECT_EQ(job("j1").crashes, 0U);
    EXPECT_EQ(job("j1").interruptions, 1U);
    EXPECT_TRUE(has_event("j1", EventKind::kLeaseLost));
}

TEST_P(RecoveryConformance, I34_TwentyLapsesAreHeld) {
    put({.id = "j1", .key = "k"});
    int runs = 0;
    while (state("j1") == JobState::kReady && runs < 100) {
        start("A", "j1");
        lapse();
        ++runs;
    }
    EXPECT_EQ(runs, 20);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(record("k").state, RecordState::kHeld);
}

TEST_P(RecoveryConformance, G7_AJobAloneInItsWorkersDeathIsDeadAtTheLimit) {
    policy.max_crashes = 3;
    put({.id = "j1", .key = "k"});
    for (int i = 0; i < 3; ++i) {
        const std::string worker = "A" + std::to_string(i);
        heartbeat(worker);
        start(worker, "j1");
        crash(worker);
    }
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(job("j1").reason, "worker_crash");
    EXPECT_EQ(job("j1").crashes, 3U);
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_TRUE(has_event("k", EventKind::kWorkerCrash));
}

TEST_P(RecoveryConformance, G7_I35_CompanyIsNeverConvictedAndRunsAloneNextTime) {
    policy.max_crashes = 1;
    for (int i = 0; i < 5; ++i)
        put({.id = "j" + std::to_string(i)});
    heartbeat("A");
    for (const Delivery& delivery : claim("A"))
        start(delivery);
    crash("A");
    for (int i = 0; i < 5; ++i) {
        const JobRow row = job("j" + std::to_string(i));
        EXPECT_EQ(row.state, JobState::kReady) << i;
        EXPECT_EQ(row.crashes, 1U) << i;
        EXPECT_TRUE(row.suspect) << i;
    }
}

TEST_P(RecoveryConformance, G7_CompanyIsCountedWhenTheDeathIsFirstSeen) {
    policy.max_crashes = 1;
    put({.id = "j1"});
    put({.id = "j2"});
    heartbeat("A");
    for (const Delivery& delivery : claim("A"))
        start(delivery);
    kill("A");
    // Two recoverers share the work, one job each.
    for (int i = 0; i < 2; ++i) {
        tx([&](Tables& tables) {
            engine::Recover request;
            request.ns = "default";
            request.worker = "recoverer";
            request.kinds = {"charge"};
            request.policies = {{"charge", policy}};
            request.limit = 1;
            return engine::recover(tables, request);
        });
    }
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(RecoveryConformance, G7_ADeathThatABeginSeesFirstCountsItsWholeCompany) {
    policy.max_crashes = 1;
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    put({.id = "j2"});
    for (const Delivery& delivery : claim("A"))
        start(delivery);
    kill("A");
    put({.id = "j3", .key = "k"});
    EXPECT_NE(as<Parked>(begin(claim_job("B", "j3"))), nullptr);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(job("j1").crashes, 1U);
    recover();
    EXPECT_EQ(state("j2"), JobState::kReady) << "it died beside j1";
    EXPECT_TRUE(job("j2").suspect);
}

TEST_P(RecoveryConformance, I22_ACrashIsTakenBackWhenItsWorkerLives) {
    put({.id = "j1", .key = "k"});
    const Attempt slow = start("A", "j1");
    crash("A");
    ASSERT_EQ(job("j1").crashes, 1U);
    start("B", "j1");
    // What comes late from a dead worker proves nothing.
    EXPECT_EQ(settle(slow, failure()).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(job("j1").crashes, 1U);

    put({.id = "j2", .key = "k2"});
    const Attempt other = start("C", "j2");
    crash("C");
    ASSERT_EQ(job("j2").crashes, 1U);
    backend().set_fate("C", engine::OwnerFate::kAlive);
    EXPECT_EQ(settle(other, failure()).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(settle(other, failure()).kind, Settled::Kind::kSuperseded) << "its reply was lost";
    EXPECT_EQ(job("j2").crashes, 0U);
    EXPECT_EQ(job("j2").interruptions, 1U);
}

TEST_P(RecoveryConformance, I03_TheRecordOfWhoTookOverIsLeftAlone) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    advance(lease);
    put({.id = "j2", .key = "k"});
    const Attempt present = start("B", "j2");
    recover();
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(record("k").owner, "B");
    EXPECT_EQ(record("k").lease_until, now() + lease);
    EXPECT_EQ(record("k").epoch, present.started.epoch);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(RecoveryConformance, G8_AJudgedLapseNeedsNoSecondJudgement) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    advance(lease);
    // A worker that has just started may not judge, but what is judged it may take up.
    may_take_over = false;
    ASSERT_EQ(recover(/*take_over=*/false), 0U);
    ASSERT_EQ(recover(/*take_over=*/true), 1U);
    EXPECT_EQ(start("B", "j1").started.epoch, 2U);
}

TEST_P(RecoveryConformance, G1_WhatADeadCallerLeavesEnds) {
    const auto recover_callers = [&] {
        tx([&](Tables& tables) {
            engine::Recover request;
            request.ns = "default";
            request.worker = "caller";
            request.kinds = {"charge"};
            request.may_take_over = true;
            request.unclaimed_kinds = {"charge"};
            return engine::recover(tables, request);
        });
    };
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    kill("A");
    recover_callers();
    EXPECT_EQ(state("j1"), JobState::kCancelled);
    EXPECT_EQ(job("j1").reason, "caller_died");
    EXPECT_EQ(record("k").state, RecordState::kCancelled);
    EXPECT_TRUE(record("k").marked) << "whoever calls next judges it by the unknown policy";

    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j2", .key = "k2"});
    start("B", "j2");
    kill("B");
    recover_callers();
    EXPECT_EQ(state("j2"), JobState::kHeld);
    EXPECT_EQ(record("k2").state, RecordState::kHeld);
}

TEST_P(RecoveryConformance, G8_CrashesUseNoAttempt) {
    policy.max_crashes = 100;
    policy.retry.max_attempts = 1;
    put({.id = "j1"});
    for (int i = 0; i < 5; ++i) {
        start("A" + std::to_string(i), "j1");
        crash("A" + std::to_string(i));
    }
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_EQ(succeed(start("B", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(RecoveryConformance, F07_AJobOfAnUnknownKindIsLeftToWorkersThatKnowIt) {
    put({.id = "j1", .kind = "unheard_of"});
    EXPECT_TRUE(claim("A").empty());
    EXPECT_EQ(state("j1"), JobState::kReady);
    tx([](Tables& tables) {
        auto row = tables.job("j1");
        row->state = JobState::kRunning;
        row->owner = "A";
        tables.update_job(*row);
    });
    lapse();
    EXPECT_EQ(state("j1"), JobState::kRunning);
}

TEST_P(RecoveryConformance, I20_TheDeadOwnersLockIsFreeAtOnce) {
    policy.lock_ttl = 1h;
    put({.id = "j1", .lock = "l"});
    put({.id = "j2", .lock = "l"});
    start("A", "j1");
    begin(claim_job("B", "j2"));
    ASSERT_EQ(state("j2"), JobState::kWaiting);
    crash("A");
    EXPECT_EQ(state("j2"), JobState::kReady);
    const std::vector<Delivery> next = claim("B");
    ASSERT_FALSE(next.empty());
    bool started = false;
    for (const Delivery& delivery : next) {
        if (as<Started>(begin(delivery)) != nullptr) started = true;
    }
    EXPECT_TRUE(started);
}

TEST_P(RecoveryConformance, E02_ARecordInProgressIsNotStuckForEver) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    advance(lease);
    const auto stale = tx([](Tables& tables) { return tables.stale_records("default", 10); });
    ASSERT_EQ(stale.size(), 1U);
    EXPECT_EQ(stale[0].id.key, "k");
}

TEST_P(RecoveryConformance, G8_AJobThatWaitsForAKeyNobodyEndedLooksAgain) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    put({.id = "j2", .key = "k"});
    begin(claim_job("B", "j2"));
    ASSERT_EQ(state("j2"), JobState::kWaiting);
    lapse();
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(RecoveryConformance, G8_AJobThatWaitsForAReleasedLockLooksAgain) {
    put({.id = "j1", .lock = "l"});
    acquire("l", "shell", 10s);
    begin(claim_job("A", "j1"));
    ASSERT_EQ(state("j1"), JobState::kWaiting);
    recover();
    EXPECT_EQ(state("j1"), JobState::kWaiting);
    advance(10s);
    recover();
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_NE(as<Started>(begin(claim_job("A", "j1"))), nullptr);
}

TEST_P(RecoveryConformance, G8_AWaitForARetryThatIsNotDueIsNoLoop) {
    policy.retry.base = 10min;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    put({.id = "j2", .key = "k"});
    begin(claim_job("B", "j2"));
    const std::uint64_t before = job("j2").deliveries;
    for (int i = 0; i < 20; ++i) {
        advance(5s);
        recover();
        for (const Delivery& delivery : claim("B"))
            begin(delivery);
    }
    EXPECT_LE(job("j2").deliveries, before + 1);
}

TEST_P(RecoveryConformance, I22_AWorkerThatWasOnlySlowKeepsItsRun) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    advance(lease + 1s);
    EXPECT_TRUE(renew(run).kept) << "nobody has taken it over";
    EXPECT_EQ(recover(), 0U);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(RecoveryConformance, G6_ALapsedRunUnderHoldIsHeldAtTheNextBegin) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    lapse();
    EXPECT_TRUE(record("k").marked);
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
    EXPECT_EQ(record("k").mark_cause, "lease_lapsed");
}

TEST_P(RecoveryConformance, G1_ACancelledJobThatLostItsWorkerEndsCancelled) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    cancel("j1");
    crash("A");
    EXPECT_EQ(state("j1"), JobState::kCancelled);
    put({.id = "j2"});
    claim_job("A2", "j2");
    cancel("j2");
    crash("A2");
    EXPECT_EQ(state("j2"), JobState::kCancelled);
}

TEST_P(RecoveryConformance, G1_RecoveryGoesOnBehindAFullPage) {
    for (int i = 0; i < 5; ++i)
        put({.id = "j" + std::to_string(i)});
    for (const Delivery& delivery : claim("A"))
        start(delivery);
    kill("A");
    engine::Recover request;
    request.ns = "default";
    request.worker = "recoverer";
    request.kinds = {"charge"};
    request.limit = 2;
    std::size_t recovered = 0;
    do {
        const engine::Recovered reply =
            tx([request](Tables& tables) { return engine::recover(tables, request); });
        recovered += reply.jobs;
        request.after_seq = reply.next_seq;
    } while (request.after_seq != 0);
    EXPECT_EQ(recovered, 5U);
}

TEST_P(RecoveryConformance, Workers_AreForgottenOnceTheyAreGoneAndHaveNothingLeft) {
    heartbeat("A");
    put({.id = "j1"});
    start("A", "j1");
    advance(lease + 1s);
    const auto known = [&] { return tx([](Tables& tables) { return tables.worker("A"); }); };
    recover(/*take_over=*/false);
    EXPECT_TRUE(known()) << "it still has a claim";
    recover();
    EXPECT_FALSE(known());
}

TEST_P(RecoveryConformance, Workers_AHeartbeatKeepsTheStartAndMovesTheLease) {
    heartbeat("A");
    const auto worker = [&] { return *tx([](Tables& tables) { return tables.worker("A"); }); };
    const auto first = worker();
    advance(5s);
    heartbeat("A");
    EXPECT_EQ(worker().started_at, first.started_at);
    EXPECT_EQ(worker().lease_until, first.lease_until + 5s);
}

SEKALI_CONFORMS(RecoveryConformance);

}  // namespace
}  // namespace sekali::conformance
