#include <algorithm>

#include "conformance/scene.hpp"

// What begin decides (DESIGN section 4, step 3). I08 to I13 are items of the list of interleavings.
namespace sekali::conformance {
namespace {

using engine::Ended;
using engine::EventKind;
using engine::Gone;
using engine::HeldBack;
using engine::Parked;
using engine::Resolution;
using engine::Started;

class BeginConformance : public Scene {
 protected:
    void expect_parked_behind_key(const BeginReply& reply, const std::string& key) {
        const auto* parked = as<Parked>(reply);
        ASSERT_NE(parked, nullptr) << "answer " << reply.index();
        EXPECT_EQ(parked->waiting_for, WaitFor::kKey);
        EXPECT_EQ(parked->name, key);
    }
    /// Runs the job to its end as dead, with its key's record unmarked.
    void die(const std::string& worker, const std::string& id) {
        policy.effects = Effects::kCommit;
        settle(start(worker, id), ended(Outcome::Kind::kPermanent));
        ASSERT_EQ(state(id), JobState::kDead);
        policy.effects = Effects::kOutside;
    }
};

TEST_P(BeginConformance, G2_AFreshKeyStartsAtEpochOne) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(run.started.epoch, 1U);
    EXPECT_EQ(run.started.attempt, 1U);
    EXPECT_EQ(run.started.fence, 0U);
    const RecordRow row = record("k");
    EXPECT_EQ(row.state, RecordState::kProcessing);
    EXPECT_EQ(row.owner, "A");
    EXPECT_EQ(row.job_id, "j1");
    EXPECT_EQ(job("j1").epoch, 1U);
    EXPECT_TRUE(job("j1").begun);
}

TEST_P(BeginConformance, I08_BeginIsRepeatableForTheSameDelivery) {
    put({.id = "j1", .key = "k", .lock = "l"});
    const Attempt run = start("A", "j1");
    const BeginReply again = begin(run.request);
    ASSERT_NE(as<Started>(again), nullptr);
    EXPECT_EQ(as<Started>(again)->epoch, run.started.epoch);
    EXPECT_EQ(as<Started>(again)->fence, run.started.fence);
    EXPECT_EQ(as<Started>(again)->attempt, run.started.attempt);
    EXPECT_EQ(record("k").epoch, 1U);
    EXPECT_EQ(lock_row("l")->fence, run.started.fence);
    EXPECT_FALSE(record("k").marked);
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(BeginConformance, I08_ALateBeginStartsNoOtherWorkOfTheSameId) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    settle(late, ended(Outcome::Kind::kPermanent));
    tx([](Tables& tables) { return drop_dead(tables, "j1", "operator"); });
    put({.id = "j1", .key = "other"});
    ASSERT_EQ(claim("A").size(), 1U);
    EXPECT_NE(as<Gone>(begin(late.request)), nullptr);
    EXPECT_FALSE(job("j1").begun);
}

TEST_P(BeginConformance, I08_BeginIsRepeatableUnderHoldAndAfterTheLeaseLapsed) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    advance(lease + 1s);
    EXPECT_NE(as<Started>(begin(run.request)), nullptr);
    EXPECT_EQ(record("k").state, RecordState::kProcessing);
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(BeginConformance, I08_BeginWithoutRecordIsRepeatable) {
    policy.record = engine::RecordMode::kNone;
    put({.id = "j1", .lock = "l"});
    const Attempt run = start("A", "j1");
    const BeginReply again = begin(run.request);
    ASSERT_NE(as<Started>(again), nullptr);
    EXPECT_EQ(as<Started>(again)->epoch, run.started.epoch);
    EXPECT_EQ(as<Started>(again)->fence, run.started.fence);
    EXPECT_FALSE(find_record("j1"));
}

TEST_P(BeginConformance, G4_ARepeatedBeginThatLostItsLockSaysSoAndTakesNothingBack) {
    for (const auto mode : {engine::RecordMode::kKept, engine::RecordMode::kNone}) {
        policy.record = mode;
        const std::string suffix = mode == engine::RecordMode::kKept ? "kept" : "none";
        put({.id = "j1" + suffix, .lock = "l" + suffix});
        const Attempt run = start("A", "j1" + suffix);
        EXPECT_FALSE(run.started.lock_lost);
        tx([&](Tables& tables) { return break_lock(tables, "default", "l" + suffix); });
        put({.id = "j2" + suffix, .lock = "l" + suffix});
        const Attempt other = start("B", "j2" + suffix);

        const BeginReply again = begin(run.request);
        ASSERT_NE(as<Started>(again), nullptr);
        EXPECT_TRUE(as<Started>(again)->lock_lost);
        EXPECT_EQ(lock_row("l" + suffix)->owner, "B");
        EXPECT_EQ(lock_row("l" + suffix)->fence, other.started.fence);
        EXPECT_EQ(state("j1" + suffix), JobState::kRunning);
    }
}

TEST_P(BeginConformance, I08_AnotherDeliveryOfTheSameJobGetsAnotherAnswer) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    Begin other = run.request;
    other.run.delivery += 1;
    EXPECT_NE(as<Gone>(begin(other)), nullptr);
    other = run.request;
    other.run.worker = "B";
    EXPECT_NE(as<Gone>(begin(other)), nullptr);
}

TEST_P(BeginConformance, I09_ALateSuccessOfTheSameJobIsAckLostNotDuplicate) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    const Delivery second = claim_job("B", "j1");
    EXPECT_EQ(succeed(late, "paid").kind, Settled::Kind::kApplied);
    const BeginReply reply = begin(second);
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kSucceeded);
    EXPECT_EQ(as<Ended>(reply)->result, "paid");
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_TRUE(has_event("k", EventKind::kAckLost));
    EXPECT_FALSE(has_event("k", EventKind::kDuplicate));
}

TEST_P(BeginConformance, I09_ADeliveryAfterTheEndOfItsJobIsAckLost) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    succeed(run, "paid");
    Begin again = run.request;
    again.run.delivery = 2;
    again.adopt = true;
    const BeginReply reply = begin(again);
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kSucceeded);
    EXPECT_TRUE(has_event("k", EventKind::kAckLost));
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(BeginConformance, I09_SuccessOfAnotherJobEndsThisOneAsDuplicateWithItsResult) {
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"), "receipt 7");
    put({.id = "j2", .key = "k"});
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
    EXPECT_EQ(as<Ended>(reply)->result, "receipt 7");
    EXPECT_EQ(job("j2").result, "receipt 7");
    EXPECT_EQ(record("k").job_id, "j1");
    EXPECT_TRUE(has_event("k", EventKind::kDuplicate));
}

TEST_P(BeginConformance, G8_AnotherJobOfARunningKeyParksAndCountsNothing) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    put({.id = "j2", .key = "k"});
    expect_parked_behind_key(begin(claim_job("B", "j2")), "k");
    const JobRow parked = job("j2");
    EXPECT_EQ(parked.state, JobState::kWaiting);
    EXPECT_EQ(parked.waiting_name, "k");
    EXPECT_EQ(parked.attempts, 0U);
    EXPECT_EQ(parked.interruptions, 0U);
    EXPECT_EQ(parked.crashes, 0U);
    EXPECT_TRUE(claim("B").empty());
    succeed(run);
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(BeginConformance, I10_AHeldKeyParksAnotherJob) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    ASSERT_EQ(state("j1"), JobState::kHeld);
    put({.id = "j2", .key = "k"});
    expect_parked_behind_key(begin(claim_job("B", "j2")), "k");
    EXPECT_EQ(record("k").state, RecordState::kHeld);
    EXPECT_EQ(record("k").job_id, "j1");
    recover();
    EXPECT_EQ(state("j2"), JobState::kWaiting);
    resolve("j1", Resolution::Kind::kRerun);
    succeed(start("A", "j1"));
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(BeginConformance, I10_ADeadKeyEndsAWaitingJobTheSameWay) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k"});
    die("A", "j1");
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDead);
    EXPECT_EQ(record("k").job_id, "j1");
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(BeginConformance, I10_ACancelledKeyEndsAWaitingJobTheSameWay) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k"});
    settle(start("A", "j1"), ended(Outcome::Kind::kCancel, "not wanted"));
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kCancelled);
    EXPECT_EQ(state("j2"), JobState::kCancelled);
}

TEST_P(BeginConformance, I10_ResolvedAsDeadStartsNoWaitingJob) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    put({.id = "j2", .key = "k"});
    begin(claim_job("B", "j2"));
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(state("j1"), JobState::kDead);
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDead);
}

TEST_P(BeginConformance, I10_AProducerThatKnewTheEndGetsAFreshStart) {
    put({.id = "j1", .key = "k", .max_attempts = 1});
    die("A", "j1");
    put({.id = "j2", .key = "k"});
    const Attempt run = start("B", "j2");
    EXPECT_EQ(run.started.attempt, 1U);
    EXPECT_EQ(run.started.epoch, 2U);
    succeed(run);
    EXPECT_EQ(record("k").job_id, "j2");
}

TEST_P(BeginConformance, I10_AnEndAfterTheEnqueueIsNotTheOneThatWasKnown) {
    put({.id = "j1", .key = "k"});
    die("A", "j1");
    put({.id = "j2", .key = "k"});
    put({.id = "j3", .key = "k"});
    settle(start("A", "j2"), ended(Outcome::Kind::kPermanent));
    const BeginReply reply = begin(claim_job("B", "j3"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDead);
}

TEST_P(BeginConformance, I10_AFreshStartOnAMarkedRecordGoesByTheUnknownPolicy) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    ASSERT_EQ(state("j1"), JobState::kDead);
    ASSERT_TRUE(record("k").marked);
    put({.id = "j2", .key = "k"});
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j2"))), nullptr);
    EXPECT_EQ(state("j2"), JobState::kHeld);
    EXPECT_EQ(record("k").state, RecordState::kHeld);
}

TEST_P(BeginConformance, G10_I11_ADuplicateDoesNotStartBeforeTheRetryIsDue) {
    policy.retry.base = 10min;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    ASSERT_EQ(state("j1"), JobState::kScheduled);
    put({.id = "j2", .key = "k"});
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Parked>(reply), nullptr);
    EXPECT_EQ(record("k").state, RecordState::kRetryable);
    advance(9min);
    recover();
    for (const Delivery& early : claim("B")) {
        EXPECT_EQ(as<Started>(begin(early)), nullptr) << early.row.job.id;
    }
    advance(2min);
    std::vector<std::string> started;
    for (const Delivery& due : claim("B")) {
        if (as<Started>(begin(due)) != nullptr) started.push_back(due.row.job.id);
    }
    EXPECT_EQ(started, (std::vector<std::string>{"j1"}));
}

TEST_P(BeginConformance, G10_I11_AnEarlyDeliveryOfTheSameJobWaitsForItsTime) {
    policy.retry.base = 10min;
    put({.id = "j1", .key = "k"});
    settle(start("A", "j1"), failure());
    // A broker that knows nothing of the delay delivers at once.
    tx([](Tables& tables) {
        auto row = tables.job("j1");
        row->state = JobState::kReady;
        row->run_at = tables.now();
        tables.update_job(*row);
    });
    const BeginReply reply = begin(claim_job("A", "j1"));
    ASSERT_NE(as<Parked>(reply), nullptr);
    EXPECT_EQ(state("j1"), JobState::kScheduled);
    EXPECT_EQ(job("j1").run_at, record("k").not_before);
}

TEST_P(BeginConformance, G6_I12_ThePolicyOfTheRunThatDiedRulesWhenItIsStricter) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    policy.on_unknown = OnUnknown::kRerun;
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(record("k").on_unknown, OnUnknown::kHold);
}

TEST_P(BeginConformance, G6_I12_ThePresentPolicyRulesWhenItIsStricter) {
    policy.on_unknown = OnUnknown::kRerun;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    policy.on_unknown = OnUnknown::kHold;
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
}

TEST_P(BeginConformance, G6_I12_TheStricterPlaceOfEffectsRulesToo) {
    policy.effects = Effects::kOutside;
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    policy.effects = Effects::kCommit;
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
}

TEST_P(BeginConformance, G6_ARunWhoseEffectsAreInTheCommitIsNeverUnknown) {
    policy.effects = Effects::kCommit;
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    EXPECT_EQ(start("B", "j1").started.epoch, 2U);
}

TEST_P(BeginConformance, G6_RerunStartsAgainAndKeepsTheMarkUntilSuccess) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    const Attempt second = start("B", "j1");
    EXPECT_EQ(second.started.epoch, 2U);
    EXPECT_TRUE(record("k").marked);
    EXPECT_TRUE(has_event("k", EventKind::kTakeover));
    succeed(second);
    EXPECT_FALSE(record("k").marked);
}

TEST_P(BeginConformance, G6_AProbeThatCannotBeAskedHereHolds) {
    policy.on_unknown = OnUnknown::kProbe;
    policy.probe = KindPolicy::Probe::kNone;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    EXPECT_NE(as<HeldBack>(begin(claim_job("B", "j1"))), nullptr);
}

TEST_P(BeginConformance, I15_AnUnprovenDeathIsProbedOnlyAfterTimeoutAndGrace) {
    policy.on_unknown = OnUnknown::kProbe;
    policy.probe = KindPolicy::Probe::kBefore;
    policy.timeout = 5min;
    policy.grace = 25s;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    lapse();
    const BeginReply early = begin(claim_job("B", "j1"));
    ASSERT_NE(as<Parked>(early), nullptr);
    EXPECT_EQ(state("j1"), JobState::kScheduled);
    advance(5min);
    EXPECT_TRUE(claim("B").empty());
    advance(25s);
    const Attempt second = start("B", "j1");
    EXPECT_TRUE(second.started.probe_first);
}

TEST_P(BeginConformance, I15_AProvenDeathIsProbedAtOnce) {
    policy.on_unknown = OnUnknown::kProbe;
    policy.probe = KindPolicy::Probe::kBefore;
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    crash("A");
    const Attempt second = start("B", "j1");
    EXPECT_TRUE(second.started.probe_first);
    EXPECT_EQ(second.started.epoch, 2U);
    EXPECT_FALSE(job("j1").begun) << "its handler has not begun while the probe is asked";
}

TEST_P(BeginConformance, I13_TwoJobsOfOneKeyInOneBatch) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k"});
    const std::vector<Delivery> both = claim("A");
    ASSERT_EQ(both.size(), 2U);
    std::vector<std::future<Result<engine::StoreReply>>> answers;
    std::vector<engine::StorePort::Call> calls;
    for (const Delivery& delivery : both) {
        auto promise = std::make_shared<std::promise<Result<engine::StoreReply>>>();
        answers.push_back(promise->get_future());
        calls.push_back({prepare(delivery).request, [promise](Result<engine::StoreReply> reply) {
                             promise->set_value(std::move(reply));
                         }});
    }
    static_cast<engine::StorePort&>(ports()).submit(std::move(calls));
    backend().pump();
    const auto reply_of = [&](std::size_t i) {
        return std::get<BeginReply>(answers.at(i).get().value());
    };
    EXPECT_NE(as<Started>(reply_of(0)), nullptr);
    EXPECT_NE(as<Parked>(reply_of(1)), nullptr);
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(BeginConformance, I22_ALapseIsNoTakeoverWhileTheStoreHasNotAnsweredForALease) {
    put({.id = "j1", .key = "k"});
    const Attempt first = start("A", "j1");
    advance(lease + 1ms);
    EXPECT_EQ(recover(/*take_over=*/false), 0U);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    put({.id = "j2", .key = "k"});
    may_take_over = false;
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Parked>(reply), nullptr);
    EXPECT_EQ(record("k").epoch, 1U);
    EXPECT_EQ(record("k").owner, "A");
    EXPECT_TRUE(renew(first).kept);
    EXPECT_EQ(job("j1").crashes, 0U);
    EXPECT_EQ(job("j1").interruptions, 0U);
}

TEST_P(BeginConformance, I22_AProvenDeathNeedsNoWait) {
    put({.id = "j1", .key = "k"});
    start("A", "j1");
    kill("A");
    EXPECT_EQ(recover(/*take_over=*/false), 1U);
    may_take_over = false;
    EXPECT_EQ(start("B", "j1").started.epoch, 2U);
}

TEST_P(BeginConformance, I22_AnotherJobOfTheKeyTakesALapsedRecordOver) {
    put({.id = "j1", .key = "k"});
    const Attempt lost = start("A", "j1");
    advance(lease + 1ms);
    put({.id = "j2", .key = "k"});
    const Attempt second = start("B", "j2");
    EXPECT_EQ(second.started.epoch, 2U);
    EXPECT_TRUE(has_event("k", EventKind::kTakeover));
    EXPECT_EQ(succeed(lost).kind, Settled::Kind::kSuperseded);
    succeed(second, "by j2");
    recover();
    const BeginReply reply = begin(claim_job("C", "j1"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
}

TEST_P(BeginConformance, KeyReused_WinsOverEverything) {
    const auto refused = [&](const std::string& id) {
        const BeginReply reply = begin(claim_job("B", id));
        const auto* end = as<Ended>(reply);
        return end != nullptr && end->state == JobState::kDead && end->reason == "key_reused";
    };
    policy.on_unknown = OnUnknown::kHold;
    policy.effects = Effects::kCommit;
    put({.id = "j1", .key = "j1"});
    // Written past the check of enqueue, as where the store does not see the queue: begin has to
    // notice.
    tx([](Tables& tables) {
        for (const char* id : {"x1", "x2", "x3"}) {
            JobRow row = *tables.job("j1");
            row.job.id = id;
            row.job.fingerprint = "digest of another payload";
            tables.insert_job(row);
        }
    });
    const Attempt run = start("A", "j1");
    EXPECT_TRUE(refused("x1")) << "in progress";
    settle(run, failure(/*nothing_applied=*/true));
    EXPECT_TRUE(refused("x2")) << "before its retry is due";
    advance(1h);
    succeed(start("A", "j1"));
    EXPECT_TRUE(refused("x3")) << "after success";
    EXPECT_EQ(record("j1").state, RecordState::kSucceeded);
    EXPECT_TRUE(has_event("j1", EventKind::kKeyReused));
}

TEST_P(BeginConformance, KeyReused_IsRefusedAtEnqueueWhereTheStoreKnowsIt) {
    put({.id = "j1", .key = "k", .payload = "{\"cents\":1}"});
    EXPECT_EQ(enqueue({.id = "j2", .key = "k", .payload = "{\"cents\":2}"}).kind,
              EnqueueReply::Kind::kKeyReused);
    succeed(start("A", "j1"));
    EXPECT_EQ(enqueue({.id = "j3", .key = "k", .payload = "{\"cents\":2}"}).kind,
              EnqueueReply::Kind::kKeyReused);
    EXPECT_FALSE(find_job("j2"));
    EXPECT_TRUE(has_event("k", EventKind::kKeyReused));
}

TEST_P(BeginConformance, KeyReused_ADeadRecordWithoutMarkTakesTheNewPayload) {
    put({.id = "j1", .key = "k", .payload = "{\"cents\":1}"});
    die("A", "j1");
    put({.id = "j2", .key = "k", .payload = "{\"cents\":2}"});
    succeed(start("B", "j2"));
    EXPECT_EQ(record("k").fingerprint, "digest of {\"cents\":2}");
}

TEST_P(BeginConformance, KeyReused_AMarkedDeadRecordRefusesANewPayload) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k", .payload = "{\"cents\":1}"});
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    ASSERT_TRUE(record("k").marked);
    EXPECT_EQ(enqueue({.id = "j2", .key = "k", .payload = "{\"cents\":2}"}).kind,
              EnqueueReply::Kind::kKeyReused);
}

TEST_P(BeginConformance, KeyReused_RuleNoneComparesNothing) {
    put({.id = "j1", .key = "k", .payload = "1", .fingerprint_rule = "none"});
    succeed(start("A", "j1"));
    put({.id = "j2", .key = "k", .payload = "2", .fingerprint_rule = "none"});
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
}

TEST_P(BeginConformance, E08_KeysOfOtherKindsAndNamespacesAreOtherKeys) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k", .payload = "2", .kind = "mail"});
    succeed(start("A", "j1"));
    EXPECT_EQ(start("A", "j2").started.epoch, 1U);
    put({.id = "j3", .key = "k", .payload = "3", .ns = "tenant"});
    tx([](Tables& tables) {
        EXPECT_FALSE(tables.record({"tenant", "charge", "k"}));
        EXPECT_TRUE(tables.job("j3"));
    });
    EXPECT_TRUE(claim("A").empty()) << "a worker of one namespace sees no other";
}

TEST_P(BeginConformance, G11_KeysAreComparedByteByByte) {
    const std::string common(508, 'x');
    const std::vector<std::string> keys{
        "plumless",    "buckeroo",   "Order",      "order",    "order ", " order", "e\u0301",
        "\u00e9",      "a:b",        "a%3Ab",      "'; DROP",  "%s%n",   "../x",   "$(id)",
        "order\u200b", common + "1", common + "2", "a\u202eb", "100",    "100.0",
    };
    int n = 0;
    for (const std::string& key : keys) {
        put({.id = "j" + std::to_string(++n), .key = key, .lock = key, .unique = key});
    }
    n = 0;
    for (const std::string& key : keys) {
        const Attempt run = start("A", "j" + std::to_string(++n));
        EXPECT_EQ(run.started.epoch, 1U) << key;
        EXPECT_EQ(run.started.fence, 1U) << key;
    }
}

TEST_P(BeginConformance, G11_APayloadReachesTheHandlerByteForByte) {
    const std::string payload =
        "{ \"a\" : 1.0 ,\n\t\"b\":\"\\u0000\\ud83d\\ude00\u00e9\", \"c\":[] }";
    put({.id = "j1", .payload = payload});
    EXPECT_EQ(claim_job("A", "j1").row.job.payload, payload);
}

TEST_P(BeginConformance, Cancel_BetweenClaimAndBeginStartsNoHandler) {
    put({.id = "j1", .key = "k"});
    const Delivery delivery = claim_job("A", "j1");
    EXPECT_EQ(cancel("j1").kind, engine::AdminReply::Kind::kRequested);
    const BeginReply reply = begin(delivery);
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kCancelled);
    EXPECT_EQ(state("j1"), JobState::kCancelled);
}

TEST_P(BeginConformance, RecordNone_ACrashIsARedelivery) {
    policy.record = engine::RecordMode::kNone;
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .lock = "l"});
    const Attempt first = start("A", "j1");
    crash("A");
    const Attempt second = start("B", "j1");
    EXPECT_GT(second.started.epoch, first.started.epoch);
    EXPECT_GT(second.started.fence, first.started.fence);
    EXPECT_EQ(succeed(first).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(succeed(second).kind, Settled::Kind::kApplied);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

class OnceConformance : public Scene {
 protected:
    OnceConformance() { policy.on_unknown = OnUnknown::kHold; }
    Begin caller(const std::string& id) {
        Begin request;
        request.job.id = request.run.job_id = id;
        request.job.kind = "charge";
        request.job.key = "k";
        request.run.record = {"default", "charge", "k"};
        request.run.worker = "shell of " + id;
        request.run.delivery = 1;
        request.policy = policy;
        request.lease = lease;
        request.may_take_over = true;
        return request;
    }
    BeginReply call_once(const Begin& request) {
        return tx([request](Tables& tables) { return begin_inline(tables, request); });
    }
    Attempt start_once(const std::string& id) {
        Attempt run;
        run.request = caller(id);
        const BeginReply reply = call_once(run.request);
        if (as<Started>(reply) == nullptr) throw std::runtime_error(id + " does not start");
        run.started = *as<Started>(reply);
        return run;
    }
};

TEST_P(OnceConformance, G2_OneCallerRunsAndTheOthersGetItsResult) {
    const Attempt first = start_once("c1");
    EXPECT_NE(as<Parked>(call_once(caller("c2"))), nullptr);
    EXPECT_FALSE(find_job("c2")) << "a caller that waits leaves no job behind";
    succeed(first, "stdout");
    const BeginReply reply = call_once(caller("c2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
    EXPECT_EQ(as<Ended>(reply)->result, "stdout");
    EXPECT_EQ(state("c2"), JobState::kDuplicate);
}

TEST_P(OnceConformance, I08_BeginIsRepeatable) {
    const Attempt first = start_once("c1");
    const BeginReply again = call_once(first.request);
    ASSERT_NE(as<Started>(again), nullptr);
    EXPECT_EQ(as<Started>(again)->epoch, first.started.epoch);
    EXPECT_EQ(succeed(first).kind, Settled::Kind::kApplied);
}

TEST_P(OnceConformance, I36_AnotherStatusIsAnAnswerAndTheNextCallerRuns) {
    settle(start_once("c1"), ended(Outcome::Kind::kCancel, "exit status 3"));
    const Attempt second = start_once("c2");
    EXPECT_EQ(second.started.epoch, 2U);
    succeed(second);
    EXPECT_EQ(record("k").job_id, "c2");
}

TEST_P(OnceConformance, G6_ADeadCallersKeyIsHeldForAPerson) {
    start_once("c1");
    kill("shell of c1");
    EXPECT_NE(as<HeldBack>(call_once(caller("c2"))), nullptr);
    EXPECT_EQ(record("k").state, RecordState::kHeld);
    EXPECT_EQ(state("c1"), JobState::kHeld) << "what a person resolves";
    EXPECT_FALSE(find_job("c2"));
    EXPECT_NE(as<HeldBack>(call_once(caller("c3"))), nullptr);
    EXPECT_EQ(resolve("c1", Resolution::Kind::kDead).kind, engine::AdminReply::Kind::kDone);
    EXPECT_EQ(start_once("c4").started.epoch, 2U);
}

TEST_P(OnceConformance, G6_UnderRerunTheNextCallerTakesOver) {
    policy.on_unknown = OnUnknown::kRerun;
    const Attempt lost = start_once("c1");
    advance(lease + 1ms);
    const Attempt second = start_once("c2");
    EXPECT_EQ(second.started.epoch, 2U);
    EXPECT_EQ(succeed(lost).kind, Settled::Kind::kSuperseded);
    EXPECT_EQ(succeed(second).kind, Settled::Kind::kApplied);
}

SEKALI_CONFORMS(OnceConformance);
SEKALI_CONFORMS(BeginConformance);

// ---- claims that begin

class ClaimThatBegins : public Scene {
 protected:
    engine::Claim request(const std::string& worker) {
        engine::Claim claim;
        claim.spec = {.ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = 100};
        claim.worker = worker;
        claim.lease = lease;
        claim.begin = {{"charge", policy}};
        return claim;
    }
    engine::Claimed claims(const engine::Claim& claim) {
        return tx([&](Tables& tables) { return engine::claim(tables, claim); });
    }
    Attempt attempt_of(const Delivery& delivery) {
        Attempt run = prepare(delivery);
        run.started = std::get<Started>(delivery.begun.value());
        run.request.run.epoch = run.started.epoch;
        return run;
    }
};

TEST_P(ClaimThatBegins, WritesWhatClaimAndBeginWouldHaveWritten) {
    put({.id = "j1", .key = "k"});
    const auto got = claims(request("A")).deliveries;
    ASSERT_EQ(got.size(), 1U);
    ASSERT_TRUE(got[0].begun);
    EXPECT_FALSE(got[0].row.begun) << "the delivery is what was claimed";
    EXPECT_EQ(got[0].row.job.payload, "{}");
    const JobRow row = job("j1");
    EXPECT_EQ(row.state, JobState::kRunning);
    EXPECT_EQ(row.owner, "A");
    EXPECT_EQ(row.deliveries, 1U);
    EXPECT_TRUE(row.begun);
    EXPECT_EQ(row.epoch, 1U);
    const RecordRow recorded = record("k");
    EXPECT_EQ(recorded.state, RecordState::kProcessing);
    EXPECT_EQ(recorded.owner, "A");
    EXPECT_EQ(recorded.epoch, 1U);
    EXPECT_EQ(succeed(attempt_of(got[0])).state, JobState::kSucceeded);
}

TEST_P(ClaimThatBegins, G2_AKeyThatSucceededEndsAsADuplicate) {
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"));
    put({.id = "j2", .key = "k"});
    const auto got = claims(request("A")).deliveries;
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(std::get<Ended>(got[0].begun.value()).state, JobState::kDuplicate);
    EXPECT_EQ(state("j2"), JobState::kDuplicate);
}

TEST_P(ClaimThatBegins, OfOneKeyOnlyTheFirstJobStarts) {
    put({.id = "j1", .key = "k"});
    put({.id = "j2", .key = "k"});
    const auto got = claims(request("A")).deliveries;
    ASSERT_EQ(got.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<Started>(got[0].begun.value()));
    EXPECT_TRUE(std::holds_alternative<Parked>(got[1].begun.value()));
    EXPECT_EQ(state("j2"), JobState::kWaiting);
    succeed(attempt_of(got[0]));
    EXPECT_EQ(state("j2"), JobState::kReady);
}

TEST_P(ClaimThatBegins, G4_AJobWithALockKeyIsOnlyClaimed) {
    put({.id = "j1", .lock = "l"});
    const auto got = claims(request("A")).deliveries;
    ASSERT_EQ(got.size(), 1U);
    EXPECT_FALSE(got[0].begun);
    EXPECT_FALSE(job("j1").begun);
    start(got[0]);
}

TEST_P(ClaimThatBegins, G7_ASuspectIsOnlyClaimed) {
    put({.id = "j1"});
    put({.id = "j2"});
    start("A", "j1");
    start("A", "j2");
    crash("A");
    ASSERT_TRUE(job("j1").suspect);
    for (const Delivery& delivery : claims(request("B")).deliveries)
        EXPECT_FALSE(delivery.begun) << delivery.row.job.id;
}

TEST_P(ClaimThatBegins, G7_ADeadWorkersLateRequestBeginsNothing) {
    put({.id = "j1"});
    kill("A");
    EXPECT_TRUE(claims(request("A")).deliveries.empty());
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(claims(request("B")).deliveries.size(), 1U);
}

TEST_P(ClaimThatBegins, ARepeatHandsOutWhatTheWorkerDoesNotKnowOf) {
    for (const char* id : {"j1", "j2", "j3"})
        put({.id = id});
    put({.id = "locked", .lock = "l"});
    engine::Claim first = request("A");
    const auto lost = claims(first).deliveries;
    ASSERT_EQ(lost.size(), 4U);
    put({.id = "new"});
    advance(lease + 1s);
    engine::Claim again = request("A");
    again.repeat = true;
    again.known = {{"j2", 1}, {"j3", 2}};
    const auto found = claims(again);
    EXPECT_TRUE(found.more);
    std::vector<std::string> ids;
    for (const Delivery& delivery : found.deliveries)
        ids.push_back(delivery.row.job.id);
    EXPECT_EQ(ids, (std::vector<std::string>{"j1", "j3", "locked"})) << "and nothing new";
    EXPECT_EQ(std::get<Started>(found.deliveries[0].begun.value()).epoch, 1U);
    EXPECT_EQ(found.deliveries[0].row.job.payload, "{}");
    EXPECT_FALSE(found.deliveries[2].begun);
    EXPECT_EQ(job("j1").lease_until, now() + lease);
    EXPECT_EQ(record("j1").lease_until, now() + lease);
    EXPECT_EQ(succeed(attempt_of(found.deliveries[0])).state, JobState::kSucceeded);
    engine::Claim of_another = request("B");
    of_another.repeat = true;
    EXPECT_TRUE(claims(of_another).deliveries.empty());
}

TEST_P(ClaimThatBegins, AKindWithoutARecordBeginsToo) {
    policy.record = engine::RecordMode::kNone;
    put({.id = "j1"});
    const auto got = claims(request("A")).deliveries;
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(std::get<Started>(got[0].begun.value()).epoch, 1U);
    EXPECT_TRUE(job("j1").begun);
}

SEKALI_CONFORMS(ClaimThatBegins);

}  // namespace
}  // namespace sekali::conformance
