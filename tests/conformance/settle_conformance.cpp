#include "conformance/scene.hpp"

// What every end of a run decides (DESIGN section 4, step 5, and G6 to G8). I01 to I35 are items of
// the list of interleavings.
namespace sekali::conformance {
namespace {

using engine::Answer;
using engine::Ended;
using engine::EventKind;
using engine::HeldBack;
using engine::Parked;
using engine::Resolution;
using engine::Started;

class SettleConformance : public Scene {
 protected:
    /// Fails the job again and again, each attempt when it is due, until it rests.
    void exhaust(const std::string& id, const Outcome& outcome) {
        for (int i = 0; i < 50 && !is_final(state(id)) && state(id) != JobState::kHeld; ++i) {
            advance(1h);
            settle(start("A", id), outcome);
        }
    }
    /// A run that lost its job to another worker: its lease lapsed and B has begun.
    std::pair<Attempt, Attempt> taken_over(const Spec& spec) {
        put(spec);
        const Attempt late = start("A", spec.id);
        lapse();
        return {late, start("B", spec.id)};
    }
};

// ---- success -----------------------------------------------------------------------------------

TEST_P(SettleConformance, G2_ASuccessIsRecordedOnceWithItsResult) {
    put({.id = "j1", .key = "k"});
    const Settled settled = succeed(start("A", "j1"), "receipt 7");
    EXPECT_EQ(settled.kind, Settled::Kind::kApplied);
    EXPECT_EQ(settled.state, JobState::kSucceeded);
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    EXPECT_EQ(record("k").result, "receipt 7");
    EXPECT_EQ(job("j1").result, "receipt 7");
    EXPECT_EQ(job("j1").attempts, 1U);
    EXPECT_TRUE(job("j1").finished_at);
    ASSERT_EQ(attempts("k").size(), 1U);
    EXPECT_EQ(attempts("k")[0].outcome, "succeeded");
    EXPECT_EQ(attempts("k")[0].epoch, 1U);
}

TEST_P(SettleConformance, I26_ARepeatedSettleGetsTheSameAnswerAndRunsNoEffects) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    succeed(run, "receipt 7");
    engine::Settle again = settlement(run, success("receipt 7"));
    bool effects_ran = false;
    again.effects = [&](Transaction&) {
        effects_ran = true;
        return Result<void>{};
    };
    const Settled settled = settle(again);
    EXPECT_EQ(settled.kind, Settled::Kind::kApplied);
    EXPECT_EQ(settled.state, JobState::kSucceeded);
    EXPECT_FALSE(effects_ran);
    EXPECT_EQ(attempts("k").size(), 1U);
}

TEST_P(SettleConformance, I26_ARepeatedRetryCountsOnce) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    settle(run, failure());
    const Settled again = settle(run, failure());
    EXPECT_EQ(again.kind, Settled::Kind::kApplied);
    EXPECT_EQ(again.state, JobState::kScheduled);
    EXPECT_EQ(job("j1").attempts, 1U);
    EXPECT_EQ(attempts("k").size(), 1U);
}

TEST_P(SettleConformance, G3_NothingMovesARecordOutOfSucceeded) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    succeed(run, "receipt 7");
    for (const Outcome& outcome :
         {failure(), ended(Outcome::Kind::kPermanent), ended(Outcome::Kind::kTimeout),
          ended(Outcome::Kind::kCrashed), ended(Outcome::Kind::kCancel),
          ended(Outcome::Kind::kSnooze), ended(Outcome::Kind::kHold), success("another")}) {
        settle(run, outcome);
    }
    cancel("j1");
    retry_dead("j1");
    resolve("j1", Resolution::Kind::kRerun);
    lapse();
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    EXPECT_EQ(record("k").result, "receipt 7");
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_TRUE(claim("B").empty());
}

// ---- effects in the commit ---------------------------------------------------------------------

class EffectsConformance : public SettleConformance {
 protected:
    /// Settles as a success whose effects write a job of that id into the same transaction.
    Settled succeed_and_write(const Attempt& run, const std::string& written,
                              const Result<void>& effects_end = {}) {
        return tx([&](Tables& tables) {
            engine::Settle request = settlement(run, success());
            request.effects = [&tables, written, effects_end](Transaction&) {
                JobRow row;
                row.job.id = row.job.key = written;
                row.job.kind = "mail";
                tables.insert_job(row);
                return effects_end;
            };
            return engine::settle(tables, request);
        });
    }
};

TEST_P(EffectsConformance, G2_EffectsBecomeDurableWithTheSuccess) {
    put({.id = "j1"});
    EXPECT_EQ(succeed_and_write(start("A", "j1"), "w1").kind, Settled::Kind::kApplied);
    EXPECT_TRUE(find_job("w1"));
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

TEST_P(EffectsConformance, G2_EffectsAreUndoneWhenTheyFailAndTheRunStaysOpen) {
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    const Settled settled =
        succeed_and_write(run, "w1", Error{.code = ErrorCode::kRefused, .message = "constraint"});
    EXPECT_EQ(settled.kind, Settled::Kind::kEffectsFailed);
    EXPECT_EQ(settled.error, "constraint");
    EXPECT_FALSE(find_job("w1"));
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_EQ(record("j1").state, RecordState::kProcessing);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied) << "the handler may still settle";
}

TEST_P(EffectsConformance, G2_EffectsThatThrowAreUndone) {
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    engine::Settle request = settlement(run, success());
    request.effects = [](Transaction&) -> Result<void> { throw 7; };
    EXPECT_EQ(settle(request).kind, Settled::Kind::kEffectsFailed);
    request.effects = [](Transaction&) -> Result<void> { throw std::runtime_error("no"); };
    EXPECT_EQ(settle(request).kind, Settled::Kind::kEffectsFailed);
    EXPECT_EQ(state("j1"), JobState::kRunning);
}

TEST_P(EffectsConformance, G4_EffectsOfALateOwnerAreNotWritten) {
    const auto [late, present] = taken_over({.id = "j1"});
    EXPECT_EQ(succeed_and_write(late, "w1").kind, Settled::Kind::kSuperseded);
    EXPECT_FALSE(find_job("w1"));
    EXPECT_EQ(succeed_and_write(present, "w2").kind, Settled::Kind::kApplied);
}

TEST_P(EffectsConformance, G4_EffectsOfAFencedRunAreNotWritten) {
    put({.id = "j1", .lock = "l"});
    const Attempt run = start("A", "j1");
    tx([](Tables& tables) { return break_lock(tables, "default", "l"); });
    EXPECT_EQ(succeed_and_write(run, "w1").kind, Settled::Kind::kLockFenced);
    EXPECT_FALSE(find_job("w1"));
}

TEST_P(EffectsConformance, I28_AFailingEffectHurtsNoNeighbourInItsGroup) {
    std::vector<Attempt> runs;
    for (int i = 0; i < 5; ++i)
        put({.id = "j" + std::to_string(i)});
    for (const Delivery& delivery : claim("A"))
        runs.push_back(start(delivery));
    std::vector<std::future<Result<engine::StoreReply>>> answers;
    std::vector<engine::StorePort::Call> calls;
    for (const Attempt& run : runs) {
        engine::Settle request = settlement(run, success());
        if (calls.size() == 2) {
            request.effects = [](Transaction&) -> Result<void> {
                return Error{.code = ErrorCode::kRefused, .message = "constraint"};
            };
        }
        auto promise = std::make_shared<std::promise<Result<engine::StoreReply>>>();
        answers.push_back(promise->get_future());
        calls.push_back({std::move(request), [promise](Result<engine::StoreReply> reply) {
                             promise->set_value(std::move(reply));
                         }});
    }
    static_cast<engine::StorePort&>(ports()).submit(std::move(calls));
    backend().pump();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const Settled settled = std::get<Settled>(answers[i].get().value());
        const bool failed = i == 2;
        EXPECT_EQ(settled.kind, failed ? Settled::Kind::kEffectsFailed : Settled::Kind::kApplied);
        EXPECT_EQ(state("j" + std::to_string(i)),
                  failed ? JobState::kRunning : JobState::kSucceeded);
        EXPECT_EQ(job("j" + std::to_string(i)).attempts, failed ? 0U : 1U);
    }
}

TEST_P(EffectsConformance, I28_AThrowingTaskHurtsNoNeighbourInItsGroup) {
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    std::promise<Result<void>> bad;
    std::promise<Result<void>> good;
    backend().executor().submit(
        {{.work = [&](Tables& tables) { engine::settle(tables, settlement(run, success())); },
          .done = [&](const Result<void>& result) { good.set_value(result); }},
         {.work =
              [](Tables& tables) {
                  JobRow row;
                  row.job.id = row.job.key = "w1";
                  row.job.kind = "mail";
                  tables.insert_job(row);
                  throw Failure({.code = ErrorCode::kRefused, .message = "no"});
              },
          .done = [&](const Result<void>& result) { bad.set_value(result); }}});
    backend().pump();
    EXPECT_TRUE(good.get_future().get().ok());
    const Result<void> refused = bad.get_future().get();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_EQ(refused.error().applied, Applied::kNo);
    EXPECT_FALSE(find_job("w1"));
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

// ---- late owners -------------------------------------------------------------------------------

TEST_P(SettleConformance, I03_ASupersededRunnerWritesAndRequeuesNothing) {
    const auto [late, present] = taken_over({.id = "j1", .key = "k"});
    const RecordRow before = record("k");
    EXPECT_EQ(succeed(late, "late").kind, Settled::Kind::kSuperseded);
    for (const Outcome& outcome :
         {failure(), ended(Outcome::Kind::kPermanent), ended(Outcome::Kind::kSnooze),
          ended(Outcome::Kind::kCancel), ended(Outcome::Kind::kInterrupted, "shutdown"),
          ended(Outcome::Kind::kHold), ended(Outcome::Kind::kTimeout)}) {
        EXPECT_EQ(settle(late, outcome).kind, Settled::Kind::kSuperseded);
    }
    EXPECT_FALSE(renew(late).kept);
    EXPECT_EQ(step(late, "s").kind, StepIntentReply::Kind::kSuperseded);
    step_done(late, "s", "late");
    give_back(late);
    EXPECT_TRUE(steps("k").empty());
    EXPECT_EQ(record("k").state, RecordState::kProcessing);
    EXPECT_EQ(record("k").epoch, before.epoch);
    EXPECT_EQ(record("k").owner, "B");
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_EQ(job("j1").owner, "B");
    EXPECT_TRUE(has_event("k", EventKind::kSuperseded));
    EXPECT_TRUE(has_event("k", EventKind::kLateResult)) << "what it says is kept as evidence";
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I03_TheSameWorkersOwnEarlierDeliveryIsLateToo) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    const Attempt present = start("A", "j1");
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_FALSE(renew(late).kept);
    EXPECT_TRUE(renew(present).kept);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I03_WithoutARecordTheDeliveryTellsTheRunsApart) {
    policy.record = engine::RecordMode::kNone;
    put({.id = "j1"});
    const Attempt late = start("A", "j1");
    lapse();
    const Attempt present = start("A", "j1");
    EXPECT_FALSE(renew(late).kept);
    EXPECT_EQ(settle(late, failure()).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I03_WhoHasLostItsClaimMayBringAnAnswerAndNothingElse) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    for (const Outcome& outcome : {failure(), ended(Outcome::Kind::kPermanent),
                                   ended(Outcome::Kind::kInterrupted, "shutdown")}) {
        EXPECT_EQ(settle(late, outcome).kind, Settled::Kind::kSuperseded);
    }
    EXPECT_FALSE(renew(late).kept);
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_EQ(job("j1").interruptions, 1U);
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kApplied) << "nobody has begun since";
}

TEST_P(SettleConformance, G6_WhatHasBegunIsNotGivenBackAsIfItHadNot) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    give_back(run);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, G5_ALateStepResultIsEvidenceNotTheStep) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    step(late, "charge");
    lapse();
    const Attempt present = start("B", "j1");
    step_done(late, "charge", "late receipt");
    ASSERT_EQ(steps("k").size(), 1U);
    EXPECT_FALSE(steps("k")[0].done);
    EXPECT_TRUE(has_event("k", EventKind::kLateResult));
    succeed(present);
}

TEST_P(SettleConformance, I18_TheOwnerOfAnUnknownRunMayStillCommitFromHeld) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    ASSERT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
    ASSERT_EQ(state("j1"), JobState::kHeld);
    const Settled settled = succeed(late, "it did happen");
    EXPECT_EQ(settled.kind, Settled::Kind::kApplied);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    EXPECT_EQ(record("k").result, "it did happen");
    EXPECT_FALSE(record("k").marked);
}

TEST_P(SettleConformance, I18_TheOwnerOfALapsedRunMayStillCommitBeforeTheTakeover) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    ASSERT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(succeed(late, "late but first").kind, Settled::Kind::kApplied);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_TRUE(claim("B").empty());
}

TEST_P(SettleConformance, I18_ALateCommitCountsWhileNobodyElseHasTakenTheLock) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt late = start("A", "j1");
    lapse();
    ASSERT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
    EXPECT_TRUE(lock_row("l")->owner.empty()) << "held keeps no lock";
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I18_ALateCommitIsRefusedOnceAnotherHasTakenTheLock) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt late = start("A", "j1");
    lapse();
    begin(claim_job("B", "j1"));
    put({.id = "j2", .lock = "l"});
    succeed(start("B", "j2"));
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_TRUE(has_event("k", EventKind::kLateResult));
}

TEST_P(SettleConformance, I18_OnlyASuccessMayComeLate) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    begin(claim_job("B", "j1"));
    EXPECT_EQ(settle(late, failure()).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(state("j1"), JobState::kHeld);
}

TEST_P(SettleConformance, I18_ALateCommitIsRefusedOnceAPersonHasAnswered) {
    for (const auto kind : {Resolution::Kind::kRerun, Resolution::Kind::kDead}) {
        policy.on_unknown = OnUnknown::kHold;
        const std::string id = kind == Resolution::Kind::kRerun ? "j1" : "j2";
        put({.id = id});
        const Attempt late = start("A", id);
        settle(late, ended(Outcome::Kind::kTimeout));
        ASSERT_EQ(state(id), JobState::kHeld);
        resolve(id, kind);
        EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
        EXPECT_NE(record(id).state, RecordState::kSucceeded);
        if (kind == Resolution::Kind::kRerun) cancel(id);
    }
}

TEST_P(SettleConformance, I18_ALateCommitIsRefusedOnceTheJobIsCancelled) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    ASSERT_EQ(cancel("j1").kind, engine::AdminReply::Kind::kDone);
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(record("k").state, RecordState::kCancelled);
}

TEST_P(SettleConformance, I18_ALateCommitIsRefusedOnceTheJobIsDeadLettered) {
    policy.max_crashes = 1;
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    crash("A");
    ASSERT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(record("k").state, RecordState::kDead);
    EXPECT_TRUE(has_event("k", EventKind::kLateResult));
}

// ---- fences ------------------------------------------------------------------------------------

TEST_P(SettleConformance, G4_TheFenceRisesWithEachBegin) {
    std::uint64_t last = 0;
    for (int i = 0; i < 4; ++i) {
        const std::string id = "j" + std::to_string(i);
        put({.id = id, .lock = "l"});
        const Attempt run = start("A", id);
        EXPECT_GT(run.started.fence, last);
        last = run.started.fence;
        succeed(run);
    }
}

TEST_P(SettleConformance, G4_TwoJobsOfOneLockKeyDoNotRunTogether) {
    put({.id = "j1", .lock = "l"});
    put({.id = "j2", .lock = "l"});
    const Attempt first = start("A", "j1");
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Parked>(reply), nullptr);
    EXPECT_EQ(as<Parked>(reply)->waiting_for, WaitFor::kLock);
    EXPECT_EQ(job("j2").attempts, 0U);
    EXPECT_FALSE(find_record("j2")) << "no record is begun for a job that waits";
    succeed(first);
    EXPECT_GT(start("B", "j2").started.fence, first.started.fence);
}

TEST_P(SettleConformance, I01_AStaleHolderCannotCommitOnceAnotherHasBegun) {
    policy.effects = Effects::kCommit;
    put({.id = "j1", .lock = "l"});
    put({.id = "j2", .lock = "l"});
    const Attempt stale = start("A", "j1");
    advance(lease + 1ms);
    const Attempt present = start("B", "j2");
    EXPECT_GT(present.started.fence, stale.started.fence);
    EXPECT_FALSE(renew(stale).lock_kept);
    EXPECT_EQ(succeed(stale).kind, Settled::Kind::kLockFenced);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I03_LockFencedReleasesItsOwnRecordAndUsesNoAttempt) {
    policy.effects = Effects::kCommit;
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt run = start("A", "j1");
    tx([](Tables& tables) { return break_lock(tables, "default", "l"); });
    const Settled settled = succeed(run);
    EXPECT_EQ(settled.kind, Settled::Kind::kLockFenced);
    EXPECT_EQ(record("k").state, RecordState::kRetryable);
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_EQ(job("j1").interruptions, 1U);
    EXPECT_TRUE(has_event("k", EventKind::kLockFenced));
    advance(1h);
    EXPECT_EQ(succeed(start("A", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, I02_AFencedResultUnderHoldIsHeld) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt run = start("A", "j1");
    tx([](Tables& tables) { return break_lock(tables, "default", "l"); });
    const Settled settled = succeed(run);
    EXPECT_EQ(settled.kind, Settled::Kind::kLockFenced);
    EXPECT_EQ(settled.state, JobState::kHeld);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_TRUE(record("k").marked);
}

TEST_P(SettleConformance, I04_FencingWithoutEndIsHeld) {
    put({.id = "j1", .lock = "l"});
    int runs = 0;
    while (state("j1") != JobState::kHeld && runs < 100) {
        const Attempt run = start("A", "j1");
        ++runs;
        tx([](Tables& tables) { return break_lock(tables, "default", "l"); });
        succeed(run);
        advance(1h);
    }
    EXPECT_EQ(runs, 20);
    EXPECT_EQ(job("j1").attempts, 0U);
}

TEST_P(SettleConformance, I07_ABrokenLockCannotCommitAlthoughNobodyTookIt) {
    put({.id = "j1", .lock = "l"});
    const Attempt run = start("A", "j1");
    EXPECT_TRUE(tx([](Tables& tables) { return break_lock(tables, "default", "l"); }));
    EXPECT_FALSE(renew(run).lock_kept);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kLockFenced);
}

TEST_P(SettleConformance, G4_AnExtraLockIsFencedToo) {
    policy.effects = Effects::kCommit;
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    const engine::LockReply taken = acquire("extra", "A");
    ASSERT_EQ(taken.kind, engine::LockReply::Kind::kAcquired);
    engine::Settle request = settlement(run, success());
    request.extra_locks = {{"extra", taken.fence}};
    tx([](Tables& tables) { return break_lock(tables, "default", "extra"); });
    EXPECT_EQ(settle(request).kind, Settled::Kind::kLockFenced);
}

TEST_P(SettleConformance, G4_ExtraLocksAreReleasedWithTheRun) {
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    const engine::LockReply taken = acquire("extra", "A");
    engine::Settle request = settlement(run, success());
    request.extra_locks = {{"extra", taken.fence}};
    EXPECT_EQ(settle(request).kind, Settled::Kind::kApplied);
    EXPECT_EQ(acquire("extra", "B").kind, engine::LockReply::Kind::kAcquired);
}

// ---- unknown -----------------------------------------------------------------------------------

TEST_P(SettleConformance, G6_EveryEndWithoutAnAnswerIsUnknown) {
    policy.on_unknown = OnUnknown::kHold;
    const std::vector<Outcome> unknown{failure(),
                                       ended(Outcome::Kind::kTimeout),
                                       ended(Outcome::Kind::kCrashed),
                                       ended(Outcome::Kind::kInterrupted, "shutdown"),
                                       ended(Outcome::Kind::kInterrupted, "lock_lost"),
                                       ended(Outcome::Kind::kHold)};
    int n = 0;
    for (const Outcome& outcome : unknown) {
        const std::string id = "j" + std::to_string(++n);
        put({.id = id});
        EXPECT_EQ(settle(start("A", id), outcome).state, JobState::kHeld) << n;
        EXPECT_EQ(record(id).state, RecordState::kHeld) << n;
        EXPECT_TRUE(record(id).marked) << n;
        EXPECT_TRUE(has_event(id, EventKind::kHeld)) << n;
    }
}

TEST_P(SettleConformance, G6_AnExplicitRetryIsAnAnswer) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1"});
    EXPECT_EQ(settle(start("A", "j1"), failure(/*nothing_applied=*/true)).state,
              JobState::kScheduled);
    EXPECT_FALSE(record("j1").marked);
    EXPECT_EQ(job("j1").attempts, 1U);
}

TEST_P(SettleConformance, G6_APermanentErrorUnderHoldIsDeadWithItsMarkKept) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1"});
    EXPECT_EQ(settle(start("A", "j1"), ended(Outcome::Kind::kPermanent)).state, JobState::kDead);
    EXPECT_TRUE(record("j1").marked);
}

TEST_P(SettleConformance, G6_EffectsInStepsAreUnknownOnlyWhileAStepIsOpen) {
    policy.on_unknown = OnUnknown::kHold;
    policy.effects = Effects::kSteps;
    put({.id = "j1"});
    Attempt run = start("A", "j1");
    step(run, "charge");
    step_done(run, "charge", "receipt");
    EXPECT_EQ(settle(run, failure()).state, JobState::kScheduled);
    advance(1h);
    run = start("A", "j1");
    step(run, "mail");
    EXPECT_EQ(settle(run, failure()).state, JobState::kHeld);
}

TEST_P(SettleConformance, G6_EffectsInTheCommitAreNeverUnknown) {
    policy.on_unknown = OnUnknown::kHold;
    policy.effects = Effects::kCommit;
    put({.id = "j1"});
    EXPECT_EQ(settle(start("A", "j1"), ended(Outcome::Kind::kTimeout)).state, JobState::kScheduled);
    EXPECT_FALSE(record("j1").marked);
}

TEST_P(SettleConformance, I17_TheMarkSurvivesRetryDeadAndReplay) {
    policy.retry.max_attempts = 2;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), ended(Outcome::Kind::kTimeout));
    EXPECT_TRUE(record("k").marked);
    advance(1h);
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    ASSERT_EQ(state("j1"), JobState::kDead);
    EXPECT_TRUE(record("k").marked) << "a later answer says nothing about the earlier run";
    retry_dead("j1");
    EXPECT_TRUE(record("k").marked);
    policy.on_unknown = OnUnknown::kHold;
    EXPECT_NE(as<HeldBack>(begin(claim_job("A", "j1"))), nullptr);
}

TEST_P(SettleConformance, I17_TheMarkSurvivesACancel) {
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), ended(Outcome::Kind::kTimeout));
    cancel("j1");
    EXPECT_EQ(state("j1"), JobState::kCancelled);
    EXPECT_TRUE(record("k").marked);
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j2", .key = "k"});
    EXPECT_NE(as<HeldBack>(begin(claim_job("A", "j2"))), nullptr);
}

TEST_P(SettleConformance, I17_CancelOfAnUnknownRunGivesHeld) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    lapse();
    ASSERT_EQ(state("j1"), JobState::kReady);
    cancel("j1");
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(record("k").state, RecordState::kHeld);
}

TEST_P(SettleConformance, I17_CancelOfARunningJobUnderHoldThatWasKilledIsHeld) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    cancel("j1");
    EXPECT_TRUE(renew(run).cancel);
    EXPECT_EQ(settle(run, ended(Outcome::Kind::kInterrupted, "cancelled")).state, JobState::kHeld);
}

TEST_P(SettleConformance, G3_ACommitThatComesBeforeTheCancelWins) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(cancel("j1").kind, engine::AdminReply::Kind::kRequested);
    EXPECT_EQ(succeed(run).state, JobState::kSucceeded);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

TEST_P(SettleConformance, G06_CancelOfARunningJobEndsCancelledAndIsNotRetried) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_FALSE(renew(run).cancel);
    cancel("j1");
    EXPECT_TRUE(renew(run).cancel);
    EXPECT_EQ(settle(run, ended(Outcome::Kind::kInterrupted, "cancelled")).state,
              JobState::kCancelled);
    EXPECT_EQ(record("k").state, RecordState::kCancelled);
    EXPECT_TRUE(has_event("k", EventKind::kCancelled));
    advance(24h);
    EXPECT_TRUE(claim("A").empty());
}

TEST_P(SettleConformance, G8_AnAttemptCountsAlsoWhenTheJobEndsCancelled) {
    put({.id = "j1"});
    const Attempt run = start("A", "j1");
    cancel("j1");
    EXPECT_EQ(settle(run, failure()).state, JobState::kCancelled);
    EXPECT_EQ(job("j1").attempts, 1U);
}

TEST_P(SettleConformance, G06_ALookForACancelMovesNoLease) {
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt run = start("A", "j1");
    const auto record_lease = record("k").lease_until;
    const auto lock_lease = lock_row("l")->lease_until;
    advance(1s);
    cancel("j1");
    engine::Renew look{run.ref(), lease, true};
    const auto reply = call<engine::StoreReply>(static_cast<engine::StorePort&>(ports()),
                                                engine::StoreCommand{look});
    EXPECT_TRUE(std::get<engine::Renewed>(reply.value()).cancel);
    EXPECT_EQ(record("k").lease_until, record_lease);
    EXPECT_EQ(lock_row("l")->lease_until, lock_lease);
}

// ---- probe -------------------------------------------------------------------------------------

class ProbeConformance : public SettleConformance {
 protected:
    ProbeConformance() {
        policy.on_unknown = OnUnknown::kProbe;
        policy.probe = KindPolicy::Probe::kBefore;
    }
    /// A second run that has to ask about the first one.
    Attempt asking(const std::string& id, const std::string& open_step = {}) {
        put({.id = id});
        const Attempt first = start("A", id);
        if (!open_step.empty()) step(first, open_step);
        crash("A");
        Attempt second = start("B", id);
        EXPECT_TRUE(second.started.probe_first);
        return second;
    }
};

TEST_P(ProbeConformance, I16_TheAnswerIsTheResultOfTheOpenStepAndTheHandlerRunsOn) {
    const Attempt run = asking("j1", "charge");
    EXPECT_EQ(answer(run, Answer::Kind::kHappened, "receipt 7", /*resolves_job=*/true),
              std::nullopt);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_TRUE(job("j1").begun);
    EXPECT_FALSE(record("j1").marked);
    const StepIntentReply reply = step(run, "charge");
    EXPECT_EQ(reply.kind, StepIntentReply::Kind::kDone);
    EXPECT_EQ(reply.result, "receipt 7");
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(ProbeConformance, G6_ItDidNotHappenSoTheHandlerRunsAgain) {
    const Attempt run = asking("j1", "charge");
    EXPECT_EQ(answer(run, Answer::Kind::kDidNot), std::nullopt);
    EXPECT_FALSE(record("j1").marked);
    EXPECT_EQ(step(run, "charge").kind, StepIntentReply::Kind::kRun);
}

TEST_P(ProbeConformance, G4_ARunThatWasAnsweredForLivesAndIsNotTakenOver) {
    const Attempt run = asking("j1");
    EXPECT_EQ(answer(run, Answer::Kind::kDidNot), std::nullopt);
    EXPECT_FALSE(record("j1").death_proven);
    put({.id = "j2", .key = "j1"});
    const auto reply = begin(claim_job("C", "j2"));
    ASSERT_NE(as<engine::Parked>(reply), nullptr);
    EXPECT_EQ(as<engine::Parked>(reply)->name, "j1");
}

TEST_P(ProbeConformance, G4_AnAnswerStartsNoHandlerWhoseLockIsGone) {
    put({.id = "j1", .lock = "l"});
    start("A", "j1");
    crash("A");
    const Attempt run = start("B", "j1");
    ASSERT_TRUE(run.started.probe_first);
    tx([](Tables& tables) { return break_lock(tables, "default", "l"); });
    const auto settled = answer(run, Answer::Kind::kDidNot);
    ASSERT_TRUE(settled) << "it goes on";
    EXPECT_EQ(settled->state, JobState::kScheduled);
    EXPECT_FALSE(record("j1").marked) << "what the probe said stands";
    EXPECT_EQ(job("j1").attempts, 0U);
    advance(1h);
    EXPECT_FALSE(start("B", "j1").started.probe_first);
}

TEST_P(ProbeConformance, G6_AnAnswerThatCannotTellIsHeld) {
    const Attempt run = asking("j1");
    const auto settled = answer(run, Answer::Kind::kCannotTell);
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->state, JobState::kHeld);
    EXPECT_TRUE(record("j1").marked);
}

TEST_P(ProbeConformance, I16_AWholeJobIsResolvedWhereItHasNeitherStepsNorACommit) {
    const Attempt run = asking("j1");
    const auto settled = answer(run, Answer::Kind::kHappened, "receipt 7", /*resolves_job=*/true);
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->state, JobState::kSucceeded);
    EXPECT_EQ(record("j1").result, "receipt 7");
}

TEST_P(ProbeConformance, I16_AnAnswerWithoutAnOpenStepStartsNoSecondEffect) {
    const Attempt run = asking("j1");
    const auto settled = answer(run, Answer::Kind::kHappened, "receipt 7", /*resolves_job=*/false);
    ASSERT_TRUE(settled) << "the handler would do it again";
    EXPECT_EQ(settled->state, JobState::kHeld);
}

TEST_P(ProbeConformance, I08_ARepeatedAnswerChangesNothing) {
    const Attempt run = asking("j1", "charge");
    answer(run, Answer::Kind::kHappened, "receipt 7");
    EXPECT_EQ(answer(run, Answer::Kind::kHappened, "receipt 8"), std::nullopt);
    EXPECT_EQ(steps("j1")[0].result, "receipt 7");
    EXPECT_EQ(state("j1"), JobState::kRunning);
}

TEST_P(ProbeConformance, I03_AnAnswerOfALostClaimIsSuperseded) {
    const Attempt late = asking("j1", "charge");
    lapse();
    const auto settled = answer(late, Answer::Kind::kHappened, "receipt 7");
    ASSERT_TRUE(settled);
    EXPECT_EQ(settled->kind, Settled::Kind::kSuperseded);
    EXPECT_FALSE(job("j1").begun);
    EXPECT_TRUE(record("j1").marked);
    EXPECT_TRUE(start("C", "j1").started.probe_first);
}

TEST_P(ProbeConformance, I15_AProbeThatIsStoppedProvesNoDeath) {
    policy.timeout = 10min;
    put({.id = "j1"});
    start("A", "j1");
    lapse();
    advance(11min);
    const Attempt asked = start("B", "j1");
    ASSERT_TRUE(asked.started.probe_first);
    ASSERT_FALSE(record("j1").death_proven);
    settle(asked, ended(Outcome::Kind::kInterrupted, "shutdown"));
    EXPECT_TRUE(record("j1").marked);
    EXPECT_EQ(record("j1").mark_cause, "lease_lapsed");
    EXPECT_FALSE(record("j1").death_proven);
}

TEST_P(ProbeConformance, I22_ADeathWhileAskingLeavesTheMarkAndBlamesNobody) {
    asking("j1");
    crash("B");
    EXPECT_TRUE(record("j1").marked);
    EXPECT_EQ(job("j1").crashes, 1U) << "only the first run's";
    const Attempt third = start("C", "j1");
    EXPECT_TRUE(third.started.probe_first);
    EXPECT_EQ(third.started.epoch, 3U);
}

TEST_P(ProbeConformance, G6_InStepTheOpenStepAsks) {
    policy.probe = KindPolicy::Probe::kInStep;
    put({.id = "j1"});
    const Attempt first = start("A", "j1");
    step(first, "charge");
    crash("A");
    const Attempt second = start("B", "j1");
    EXPECT_FALSE(second.started.probe_first);
    EXPECT_TRUE(second.started.ask_in_step);
    EXPECT_EQ(step(second, "charge", /*has_probe=*/true).kind, StepIntentReply::Kind::kAsk);
    step_done(second, "charge", "receipt 7");
    EXPECT_EQ(steps("j1")[0].result, "receipt 7");
    EXPECT_EQ(succeed(second).kind, Settled::Kind::kApplied);
}

TEST_P(ProbeConformance, G6_InStepWithoutAnOpenStepIsHeld) {
    policy.probe = KindPolicy::Probe::kInStep;
    put({.id = "j1"});
    start("A", "j1");
    crash("A");
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
}

// ---- counters ----------------------------------------------------------------------------------

TEST_P(SettleConformance, G10_AttemptsEndInADeadLetterWithItsReason) {
    policy.retry.max_attempts = 3;
    put({.id = "j1", .key = "k"});
    exhaust("j1", failure());
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(job("j1").attempts, 3U);
    EXPECT_EQ(job("j1").reason, "attempts_exhausted");
    EXPECT_EQ(job("j1").error, "it failed");
    EXPECT_EQ(attempts("k").size(), 3U);
    EXPECT_EQ(record("k").state, RecordState::kDead);
    EXPECT_EQ(record("k").ends, 1U);
}

TEST_P(SettleConformance, G10_ATimeoutCountsAnAttempt) {
    policy.retry.max_attempts = 2;
    put({.id = "j1"});
    exhaust("j1", ended(Outcome::Kind::kTimeout));
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(job("j1").attempts, 2U);
    EXPECT_TRUE(has_event("j1", EventKind::kTimeout));
}

TEST_P(SettleConformance, G10_APermanentErrorIsNotRetried) {
    put({.id = "j1"});
    EXPECT_EQ(settle(start("A", "j1"), ended(Outcome::Kind::kPermanent)).state, JobState::kDead);
    EXPECT_EQ(job("j1").attempts, 1U);
}

TEST_P(SettleConformance, G10_TheJobsOwnMaxAttemptsWinOverTheKinds) {
    put({.id = "j1", .max_attempts = 1});
    settle(start("A", "j1"), failure());
    EXPECT_EQ(state("j1"), JobState::kDead);
}

TEST_P(SettleConformance, G10_TheBackOffGrowsAndIsTheStores) {
    policy.retry.base = 1s;
    policy.retry.factor = 2;
    put({.id = "j1"});
    for (const Millis delay : {1000ms, 2000ms, 4000ms}) {
        const Settled settled = settle(start("A", "j1"), failure());
        EXPECT_EQ(settled.retry_in, delay);
        EXPECT_EQ(job("j1").run_at - now(), delay);
        advance(delay - 1ms);
        EXPECT_TRUE(claim("A").empty());
        advance(1ms);
    }
}

TEST_P(SettleConformance, G10_AnAgeLimitEndsTheRetries) {
    policy.retry.max_age = 1h;
    policy.retry.base = 40min;
    policy.retry.cap = 40min;
    put({.id = "j1"});
    EXPECT_EQ(settle(start("A", "j1"), failure()).state, JobState::kScheduled);
    advance(40min);
    EXPECT_EQ(settle(start("A", "j1"), failure()).state, JobState::kDead);
    EXPECT_EQ(job("j1").reason, "max_age");
}

TEST_P(SettleConformance, G8_ASnoozeCountsNothing) {
    put({.id = "j1"});
    for (int i = 0; i < 30; ++i) {
        Outcome snooze = ended(Outcome::Kind::kSnooze);
        snooze.delay = 1min;
        EXPECT_EQ(settle(start("A", "j1"), snooze).state, JobState::kScheduled);
        advance(1min);
    }
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_EQ(job("j1").interruptions, 0U);
    EXPECT_EQ(job("j1").deliveries, 30U);
    EXPECT_EQ(succeed(start("A", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, G8_AHandBackUsesNoAttemptAndGoesOnAtOnce) {
    put({.id = "j1"});
    const Settled settled =
        settle(start("A", "j1"), ended(Outcome::Kind::kInterrupted, "shutdown"));
    EXPECT_EQ(settled.state, JobState::kReady);
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_EQ(job("j1").interruptions, 1U);
    EXPECT_TRUE(has_event("j1", EventKind::kInterrupted));
}

TEST_P(SettleConformance, G8_WhatIsStillAliveAtTheHandBackIsNotStartedAtOnce) {
    put({.id = "j1"});
    Outcome outcome = ended(Outcome::Kind::kInterrupted, "shutdown");
    outcome.process_gone = false;
    EXPECT_EQ(settle(start("A", "j1"), outcome).state, JobState::kScheduled);
}

TEST_P(SettleConformance, G6_AHandBackBeforeTheHandlerBeganIsNotUnknown) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1"});
    Outcome outcome = ended(Outcome::Kind::kInterrupted, "shutdown");
    outcome.nothing_applied = true;
    EXPECT_EQ(settle(start("A", "j1"), outcome).state, JobState::kReady);
    EXPECT_FALSE(record("j1").marked);
}

TEST_P(SettleConformance, I34_TwentyInterruptionsAreHeldNeverDead) {
    policy.retry.max_attempts = 2;
    put({.id = "j1"});
    exhaust("j1", ended(Outcome::Kind::kInterrupted, "lock_lost"));
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(job("j1").interruptions, 20U);
    EXPECT_EQ(job("j1").attempts, 0U);
    resolve("j1", Resolution::Kind::kRerun);
    EXPECT_EQ(succeed(start("A", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(SettleConformance, G7_ACrashingChildIsDeadAtTheLimitWithReasonWorkerCrash) {
    policy.max_crashes = 3;
    put({.id = "j1", .key = "k"});
    exhaust("j1", ended(Outcome::Kind::kCrashed));
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(job("j1").reason, "worker_crash");
    EXPECT_EQ(job("j1").crashes, 3U);
    EXPECT_EQ(job("j1").attempts, 0U);
    EXPECT_TRUE(has_event("k", EventKind::kWorkerCrash));
}

TEST_P(SettleConformance, E06_TransientRerunsPermanentReplaysTimeoutIsUnknown) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "transient"});
    EXPECT_EQ(settle(start("A", "transient"), failure(/*nothing_applied=*/true)).state,
              JobState::kScheduled);
    put({.id = "permanent"});
    EXPECT_EQ(settle(start("A", "permanent"), ended(Outcome::Kind::kPermanent)).state,
              JobState::kDead);
    put({.id = "timeout"});
    EXPECT_EQ(settle(start("A", "timeout"), ended(Outcome::Kind::kTimeout)).state, JobState::kHeld);
}

TEST_P(SettleConformance, G2_TheEpochTellsTwoJobsOfOneKeyApart) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    put({.id = "j2", .key = "k"});
    std::vector<Delivery> again = claim("A");
    ASSERT_EQ(again.size(), 2U);
    // The same worker, and a first delivery as well.
    const Attempt present = start(again[1]);
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(record("k").state, RecordState::kProcessing);
    EXPECT_EQ(succeed(present).kind, Settled::Kind::kApplied);
}

SEKALI_CONFORMS(SettleConformance);
SEKALI_CONFORMS(EffectsConformance);
SEKALI_CONFORMS(ProbeConformance);

}  // namespace
}  // namespace sekali::conformance
