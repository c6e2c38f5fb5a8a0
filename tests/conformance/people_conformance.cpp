#include "conformance/scene.hpp"

// What operators do: cancel, retry, drop, resolve, pause; and what retention may forget.
namespace sekali::conformance {
namespace {

using engine::AdminReply;
using engine::Ended;
using engine::EventKind;
using engine::HeldBack;
using engine::Parked;
using engine::Resolution;
using engine::Started;

class PeopleConformance : public Scene {
 protected:
    void die(const std::string& worker, const std::string& id) {
        Outcome outcome = ended(Outcome::Kind::kPermanent);
        outcome.error = "bad address";
        settle(start(worker, id), outcome);
        ASSERT_EQ(state(id), JobState::kDead);
    }
    /// A held job, whose run left `open_step` open where one is named.
    Attempt held(const std::string& id, const std::string& open_step = {}) {
        policy.on_unknown = OnUnknown::kHold;
        put({.id = id, .key = "k"});
        Attempt run = start("A", id);
        if (!open_step.empty()) step(run, open_step);
        settle(run, ended(Outcome::Kind::kTimeout));
        EXPECT_EQ(state(id), JobState::kHeld);
        return run;
    }
    /// Holds the job, enqueued here where it is not yet, because its claims die before begin.
    void lose_claims(const std::string& id) {
        if (!find_job(id)) put({.id = id, .key = "k"});
        for (int i = 0; i < 100 && state(id) != JobState::kHeld; ++i) {
            const std::string worker = id + " claimed " + std::to_string(i);
            claim_job(worker, id);
            crash(worker);
        }
        EXPECT_EQ(job(id).reason, "claims_lost");
    }
    AdminReply retry_now(const std::string& id) {
        return tx([id](Tables& tables) { return engine::retry_now(tables, id, "operator"); });
    }
    AdminReply drop(const std::string& id) {
        return tx([id](Tables& tables) { return drop_dead(tables, id, "operator"); });
    }
    std::string last_detail(const std::string& key) {
        const auto rows = events(key);
        return rows.empty() ? std::string{} : rows.back().detail;
    }
};

// ---- cancel
// --------------------------------------------------------------------------------------

TEST_P(PeopleConformance, Cancel_EndsWhatHasNotStarted) {
    put({.id = "ready"});
    put({.id = "later", .delay = 1h});
    acquire("l", "shell", 1h);
    EXPECT_EQ(cancel("ready").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(cancel("later").kind, AdminReply::Kind::kDone);
    put({.id = "waiting", .lock = "l"});
    begin(claim_job("A", "waiting"));
    EXPECT_EQ(cancel("waiting").kind, AdminReply::Kind::kDone);
    for (const char* id : {"ready", "later", "waiting"}) {
        EXPECT_EQ(state(id), JobState::kCancelled) << id;
        EXPECT_TRUE(has_event(id, EventKind::kCancelled)) << id;
    }
    advance(24h);
    EXPECT_TRUE(claim("A").empty());
}

TEST_P(PeopleConformance, Cancel_OfARunningJobIsARequest) {
    put({.id = "j1"});
    start("A", "j1");
    EXPECT_EQ(cancel("j1").kind, AdminReply::Kind::kRequested);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_TRUE(job("j1").cancel_requested);
    EXPECT_EQ(job("j1").requested_by, "operator");
}

TEST_P(PeopleConformance, Cancel_OfAHeldJobIsRefused) {
    held("j1");
    EXPECT_EQ(cancel("j1").kind, AdminReply::Kind::kWrongState);
    EXPECT_EQ(state("j1"), JobState::kHeld);
}

TEST_P(PeopleConformance, Cancel_LeavesNoHeldKeyWithoutItsJob) {
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure(/*nothing_applied=*/false));
    advance(1h);
    const Attempt again = prepare(claim_job("A", "j1"));
    put({.id = "j2", .key = "k"});
    policy.on_unknown = OnUnknown::kHold;
    begin(claim_job("B", "j2"));
    ASSERT_EQ(record("k").state, RecordState::kHeld);
    EXPECT_EQ(cancel("j1").kind, AdminReply::Kind::kRequested);
    EXPECT_NE(as<HeldBack>(begin(again.request)), nullptr);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(PeopleConformance, Cancel_OfAFinalOrUnknownJob) {
    put({.id = "j1"});
    succeed(start("A", "j1"));
    const AdminReply final = cancel("j1");
    EXPECT_EQ(final.kind, AdminReply::Kind::kWrongState);
    ASSERT_TRUE(final.row);
    EXPECT_EQ(final.row->state, JobState::kSucceeded);
    EXPECT_EQ(cancel("nobody").kind, AdminReply::Kind::kNotFound);
}

TEST_P(PeopleConformance, Cancel_OfARetryCancelsTheKey) {
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    put({.id = "j2", .key = "k"});
    begin(claim_job("A", "j2"));
    EXPECT_EQ(cancel("j1").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(record("k").state, RecordState::kCancelled);
    const BeginReply reply = begin(claim_job("A", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kCancelled);
}

TEST_P(PeopleConformance, Cancel_OfADuplicateLeavesTheKeyAlone) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    put({.id = "j2", .key = "k"});
    begin(claim_job("B", "j2"));
    EXPECT_EQ(cancel("j2").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(record("k").state, RecordState::kProcessing);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(PeopleConformance, N03_ACancelHolds) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    cancel("j1");
    settle(run, ended(Outcome::Kind::kInterrupted, "cancelled"));
    for (int i = 0; i < 10; ++i) {
        advance(1h);
        recover();
        EXPECT_TRUE(claim("B").empty());
    }
    EXPECT_EQ(state("j1"), JobState::kCancelled);
}

// ---- retry
// ---------------------------------------------------------------------------------------

TEST_P(PeopleConformance, Retry_RunsAWaitingRetryNow) {
    policy.retry.base = 1h;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    EXPECT_EQ(retry_now("j1").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(start("A", "j1").started.attempt, 2U);
    EXPECT_EQ(retry_now("j1").kind, AdminReply::Kind::kWrongState);
    EXPECT_EQ(retry_now("nobody").kind, AdminReply::Kind::kNotFound);
}

TEST_P(PeopleConformance, G10_ADeadLetterSaysWhatHappened) {
    put({.id = "j1", .key = "k", .lock = "l", .payload = "{\"to\":\"x\"}"});
    die("A", "j1");
    const JobRow row = job("j1");
    EXPECT_EQ(row.job.kind, "charge");
    EXPECT_EQ(row.job.key, "k");
    EXPECT_EQ(row.job.lock_key, "l");
    EXPECT_EQ(row.attempts, 1U);
    EXPECT_EQ(row.error, "bad address");
    EXPECT_EQ(row.reason, "permanent");
    EXPECT_EQ(row.finished_at, now());
}

TEST_P(PeopleConformance, G10_RetryingADeadLetterKeepsKeyPayloadAndHistory) {
    put({.id = "j1", .key = "k", .payload = "{\"to\":\"x\"}"});
    die("A", "j1");
    EXPECT_EQ(retry_dead("j1").kind, AdminReply::Kind::kDone);
    EXPECT_TRUE(has_event("k", EventKind::kReplay));
    const Delivery delivery = claim_job("B", "j1");
    EXPECT_EQ(delivery.row.job.payload, "{\"to\":\"x\"}");
    EXPECT_EQ(delivery.row.job.key, "k");
    const Attempt run = start(delivery);
    EXPECT_EQ(run.started.epoch, 2U);
    EXPECT_EQ(run.started.attempt, 1U) << "a new set of attempts";
    succeed(run);
    EXPECT_EQ(attempts("k").size(), 2U);
}

TEST_P(PeopleConformance, F06_TwentyParallelRetriesMakeOneAttempt) {
    put({.id = "j1"});
    die("A", "j1");
    int done = 0;
    for (int i = 0; i < 20; ++i) {
        const AdminReply reply = retry_dead("j1");
        if (reply.kind == AdminReply::Kind::kDone) {
            ++done;
        } else {
            EXPECT_EQ(reply.kind, AdminReply::Kind::kWrongState);
            ASSERT_TRUE(reply.row);
            EXPECT_EQ(reply.row->state, JobState::kReady);
        }
    }
    EXPECT_EQ(done, 1);
    EXPECT_EQ(claim("A").size(), 1U);
}

TEST_P(PeopleConformance, F08_ADeadLetterWhoseKeySucceededMeanwhileEndsAsDuplicate) {
    put({.id = "j1", .key = "k"});
    die("A", "j1");
    put({.id = "j2", .key = "k"});
    succeed(start("A", "j2"), "by j2");
    EXPECT_EQ(retry_dead("j1").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    const BeginReply reply = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
    EXPECT_EQ(as<Ended>(reply)->result, "by j2");
}

TEST_P(PeopleConformance, Retry_OfAJobThatDiedWithItsKeyRunsAgain) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k"});
    die("A", "j1");
    begin(claim_job("B", "j2"));
    ASSERT_EQ(state("j2"), JobState::kDead);
    EXPECT_EQ(retry_dead("j2").kind, AdminReply::Kind::kDone);
    succeed(start("B", "j2"), "by j2");
    retry_dead("j1");
    const BeginReply reply = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
}

TEST_P(PeopleConformance, Retry_OfAReusedKeyWhoseRecordIsDeadTakesTheNewPayload) {
    put({.id = "j1", .key = "k", .payload = "1"});
    // Written past the check of enqueue, as where the store does not see the queue.
    tx([](Tables& tables) {
        JobRow row = *tables.job("j1");
        row.job.id = "j2";
        row.job.payload = "2";
        row.job.fingerprint = "digest of 2";
        tables.insert_job(row);
    });
    policy.effects = Effects::kCommit;
    const Attempt run = start("A", "j1");
    ASSERT_EQ(as<Ended>(begin(claim_job("B", "j2")))->reason, "key_reused");
    settle(run, ended(Outcome::Kind::kPermanent));
    EXPECT_EQ(retry_dead("j2").kind, AdminReply::Kind::kDone);
    succeed(start("B", "j2"));
    EXPECT_EQ(record("k").fingerprint, "digest of 2");
}

TEST_P(PeopleConformance, Retry_OfAReusedKeyLeavesAnotherJobsRecordAlone) {
    put({.id = "j1", .key = "k", .payload = "1"});
    // Written past the check of enqueue, as where the store does not see the queue.
    tx([](Tables& tables) {
        JobRow row = *tables.job("j1");
        row.job.id = "j2";
        row.job.payload = "2";
        row.job.fingerprint = "digest of 2";
        tables.insert_job(row);
    });
    const Attempt run = start("A", "j1");
    begin(claim_job("B", "j2"));
    succeed(run);
    retry_dead("j2");
    ASSERT_EQ(as<Ended>(begin(claim_job("B", "j2")))->reason, "key_reused");
    EXPECT_EQ(record("k").job_id, "j1");
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
}

TEST_P(PeopleConformance, Retry_OfAMarkedDeadLetterGoesByTheUnknownPolicy) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    die("A", "j1");
    ASSERT_TRUE(record("k").marked);
    retry_dead("j1");
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
}

TEST_P(PeopleConformance, Retry_OfWhatIsNotDeadNamesTheState) {
    put({.id = "j1"});
    EXPECT_EQ(retry_dead("j1").kind, AdminReply::Kind::kWrongState);
    succeed(start("A", "j1"));
    const AdminReply reply = retry_dead("j1");
    EXPECT_EQ(reply.kind, AdminReply::Kind::kWrongState);
    EXPECT_EQ(reply.row->state, JobState::kSucceeded);
    EXPECT_EQ(retry_dead("nobody").kind, AdminReply::Kind::kNotFound);
}

TEST_P(PeopleConformance, Drop_ForgetsADeadLetterAndNothingElse) {
    put({.id = "j1", .key = "k"});
    die("A", "j1");
    EXPECT_EQ(drop("j1").kind, AdminReply::Kind::kDone);
    EXPECT_FALSE(find_job("j1"));
    EXPECT_TRUE(find_record("k"));
    EXPECT_EQ(attempts("k").size(), 1U);
    EXPECT_NE(last_detail("k").find("operator"), std::string::npos);
    EXPECT_EQ(drop("j1").kind, AdminReply::Kind::kNotFound);
}

// ---- resolve
// -------------------------------------------------------------------------------------

TEST_P(PeopleConformance, I16_Resolve_SucceededAnswersTheOpenStepAndTheJobRunsOn) {
    held("j1", "charge");
    EXPECT_EQ(resolve("j1", Resolution::Kind::kSucceeded, "receipt 7").kind,
              AdminReply::Kind::kDone);
    EXPECT_EQ(state("j1"), JobState::kReady);
    const Attempt run = start("B", "j1");
    const StepIntentReply reply = step(run, "charge");
    EXPECT_EQ(reply.kind, StepIntentReply::Kind::kDone);
    EXPECT_EQ(reply.result, "receipt 7");
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(PeopleConformance, I16_Resolve_AWholeJobOnlyWhereItHasNeitherStepsNorACommit) {
    policy.whole_answer = true;
    held("j1");
    EXPECT_EQ(resolve("j1", Resolution::Kind::kSucceeded, "receipt 7").kind,
              AdminReply::Kind::kDone);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    EXPECT_EQ(record("k").result, "receipt 7");
    put({.id = "j2", .key = "k"});
    EXPECT_EQ(as<Ended>(begin(claim_job("A", "j2")))->state, JobState::kDuplicate);
}

TEST_P(PeopleConformance, I16_Resolve_AsSucceededIsRefusedWhereRowsWouldBeMissing) {
    held("j1");
    EXPECT_THROW(resolve("j1", Resolution::Kind::kSucceeded, "receipt 7"), Failure);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(record("k").state, RecordState::kHeld);
}

TEST_P(PeopleConformance, I16_Resolve_AsSucceededIsRefusedWhereNothingHasBegun) {
    lose_claims("j1");
    EXPECT_THROW(resolve("j1", Resolution::Kind::kSucceeded, "receipt 7"), Failure);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_FALSE(find_record("k")) << "no success without a record, and none for a guess";
    resolve("j1", Resolution::Kind::kRerun);
    EXPECT_EQ(succeed(start("B", "j1")).kind, Settled::Kind::kApplied);
}

TEST_P(PeopleConformance, G2_Resolve_OfLostClaimsAnswersForTheRecordOfAnEarlierRun) {
    policy.whole_answer = true;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    advance(1h);
    lose_claims("j1");
    EXPECT_EQ(record("k").state, RecordState::kRetryable);
    EXPECT_EQ(resolve("j1", Resolution::Kind::kSucceeded, "receipt 7").kind,
              AdminReply::Kind::kDone);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_EQ(record("k").state, RecordState::kSucceeded);
    put({.id = "j2", .key = "k"});
    EXPECT_EQ(as<Ended>(begin(claim_job("A", "j2")))->state, JobState::kDuplicate);
}

TEST_P(PeopleConformance, G1_Resolve_OfLostClaimsAsDeadEndsTheKey) {
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    advance(1h);
    lose_claims("j1");
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(record("k").state, RecordState::kDead);
    EXPECT_EQ(record("k").ends, 1U);
}

TEST_P(PeopleConformance, Resolve_RerunStartsAgainWithoutAsking) {
    held("j1");
    EXPECT_EQ(resolve("j1", Resolution::Kind::kRerun).kind, AdminReply::Kind::kDone);
    EXPECT_FALSE(record("k").marked);
    EXPECT_TRUE(has_event("k", EventKind::kResolved));
    const Attempt run = start("B", "j1");
    EXPECT_EQ(run.started.epoch, 2U);
    EXPECT_FALSE(run.started.probe_first);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(PeopleConformance, Resolve_RerunAfterACancelRequestRuns) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt first = start("A", "j1");
    cancel("j1");
    settle(first, ended(Outcome::Kind::kInterrupted, "cancelled"));
    ASSERT_EQ(state("j1"), JobState::kHeld);
    resolve("j1", Resolution::Kind::kRerun);
    const Attempt run = start("B", "j1");
    EXPECT_FALSE(renew(run).cancel) << "the person who answered wants it to run";
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(PeopleConformance, Resolve_DeadEndsTheJobAndItsKey) {
    held("j1");
    EXPECT_EQ(resolve("j1", Resolution::Kind::kDead).kind, AdminReply::Kind::kDone);
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(record("k").state, RecordState::kDead);
    EXPECT_EQ(record("k").ends, 1U);
}

TEST_P(PeopleConformance, Resolve_OfWhatIsNotHeld) {
    put({.id = "j1"});
    EXPECT_EQ(resolve("j1", Resolution::Kind::kRerun).kind, AdminReply::Kind::kWrongState);
    EXPECT_EQ(resolve("nobody", Resolution::Kind::kRerun).kind, AdminReply::Kind::kNotFound);
}

TEST_P(PeopleConformance, Resolve_TwiceAnswersOnce) {
    held("j1");
    EXPECT_EQ(resolve("j1", Resolution::Kind::kRerun).kind, AdminReply::Kind::kDone);
    EXPECT_EQ(resolve("j1", Resolution::Kind::kDead).kind, AdminReply::Kind::kWrongState);
    EXPECT_EQ(state("j1"), JobState::kReady);
}

TEST_P(PeopleConformance, Resolve_WakesWhoWaitsForTheKey) {
    held("j1");
    put({.id = "j2", .key = "k"});
    begin(claim_job("B", "j2"));
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(state("j2"), JobState::kReady);
}

// ---- retention
// -----------------------------------------------------------------------------------

class RetentionConformance : public PeopleConformance {
 protected:
    RetentionConformance() { policy.keep = 5s; }
};

TEST_P(RetentionConformance, E07_SuppressedWithinTheRetentionThenExecuted) {
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"));
    advance(4s);
    EXPECT_EQ(prune().records, 0U);
    put({.id = "j2", .key = "k"});
    EXPECT_EQ(as<Ended>(begin(claim_job("A", "j2")))->state, JobState::kDuplicate);
    advance(3s);
    EXPECT_EQ(prune().records, 1U);
    put({.id = "j3", .key = "k"});
    EXPECT_NO_THROW(succeed(start("A", "j3")));
}

TEST_P(RetentionConformance, E07_PruneNeverRemovesARecordThatHasNotEnded) {
    put({.id = "running", .key = "running"});
    start("A", "running");
    put({.id = "retry", .key = "retry"});
    policy.retry.base = 1h;
    settle(start("A", "retry"), failure(/*nothing_applied=*/true));
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "held", .key = "held"});
    settle(start("A", "held"), failure());
    advance(24h);
    EXPECT_EQ(prune().records, 0U);
    for (const char* key : {"running", "retry", "held"})
        EXPECT_TRUE(find_record(key)) << key;
}

TEST_P(RetentionConformance, I30_ARecordWithALiveHeldOrDeadJobIsKept) {
    // Dead: a duplicate that was dead before its key succeeded may still be replayed.
    put({.id = "dead", .key = "k"});
    die("A", "dead");
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"));
    const auto prune_records = [&] {
        return tx([](Tables& tables) {
            return engine::prune(tables, "default", 24h * 365, 1000).records;
        });
    };
    advance(1h);
    EXPECT_EQ(prune_records(), 0U);
    retry_dead("dead");
    EXPECT_EQ(prune_records(), 0U) << "live now";
    EXPECT_EQ(as<Ended>(begin(claim_job("A", "dead")))->state, JobState::kDuplicate);
    EXPECT_EQ(prune_records(), 1U);
}

TEST_P(RetentionConformance, I30_AMarkedRecordIsKept) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    die("A", "j1");
    drop("j1");
    advance(24h);
    EXPECT_EQ(prune().records, 0U);
    EXPECT_TRUE(record("k").marked);
}

TEST_P(RetentionConformance, I31_EpochsNeverFallAfterAPrune) {
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    advance(1h);
    const Attempt last = start("A", "j1");
    succeed(last);
    advance(1h);
    ASSERT_EQ(prune().records, 1U);
    put({.id = "j2", .key = "k"});
    EXPECT_GT(start("A", "j2").started.epoch, last.started.epoch);
}

TEST_P(RetentionConformance, I31_FencesNeverFallAfterAPrune) {
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        const std::string id = "j" + std::to_string(i);
        put({.id = id, .lock = "l"});
        const Attempt run = start("A", id);
        last = run.started.fence;
        succeed(run);
    }
    advance(1h);
    prune();
    EXPECT_FALSE(lock_row("l"));
    put({.id = "j9", .lock = "l"});
    const Attempt run = start("A", "j9");
    EXPECT_GT(run.started.fence, last);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(RetentionConformance, I31_ALateCommitIsRefusedAfterItsLockRowWasPruned) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .lock = "l"});
    const Attempt late = start("A", "j1");
    lapse();
    begin(claim_job("B", "j1"));
    advance(1h);
    prune();
    ASSERT_FALSE(lock_row("l"));
    EXPECT_EQ(succeed(late).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(state("j1"), JobState::kHeld);
}

TEST_P(RetentionConformance, I31_AHeldLockIsNotPruned) {
    acquire("l", "shell", 24h);
    advance(23h);
    prune();
    EXPECT_TRUE(lock_row("l"));
}

TEST_P(RetentionConformance, PruneRemovesHistoryByAge) {
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"));
    advance(1h);
    put({.id = "j2", .key = "k2"});
    succeed(start("A", "j2"));
    EXPECT_GT(prune().history, 0U);
    EXPECT_FALSE(find_job("j1"));
    EXPECT_TRUE(attempts("k").empty());
    EXPECT_TRUE(find_job("j2"));
    EXPECT_EQ(attempts("k2").size(), 1U);
}

TEST_P(RetentionConformance, PruneRemovesStepsWithTheirRecord) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    step(run, "charge");
    step_done(run, "charge", "receipt");
    succeed(run);
    advance(1h);
    prune();
    EXPECT_TRUE(steps("k").empty());
}

SEKALI_CONFORMS(PeopleConformance);
SEKALI_CONFORMS(RetentionConformance);

}  // namespace
}  // namespace sekali::conformance
