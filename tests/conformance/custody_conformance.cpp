#include "conformance/push_queue.hpp"
#include "conformance/scene.hpp"

// A queue that only delivers, beside a store that takes what has to wait into its custody: nothing
// waits in an unacknowledged window, and one system has each live job (DESIGN section 4, step 1).
namespace sekali::conformance {
namespace {

using engine::Ended;
using engine::EventKind;
using engine::Gone;
using engine::Parked;
using engine::Started;

class CustodyConformance : public Scene {
 protected:
    void publish(const Spec& spec) {
        engine::Envelope job;
        job.id = spec.id;
        job.kind = spec.kind;
        job.payload = spec.payload;
        job.key = spec.key.empty() ? spec.id : spec.key;
        job.lock_key = spec.lock;
        job.unique_key = spec.unique;
        job.fingerprint_rule = spec.fingerprint_rule;
        job.fingerprint = "digest of " + spec.payload;
        queue_.publish(std::move(job));
    }
    std::vector<Delivery> pull(const std::string& worker) {
        engine::Claim request;
        request.spec = {.ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = 10};
        request.worker = worker;
        std::vector<Delivery> deliveries;
        queue_.submit({{std::move(request), [&](const Result<engine::QueueReply>& reply) {
                            deliveries = std::get<engine::Claimed>(*reply).deliveries;
                        }}});
        queue_.step();
        queue_.withdraw_credit(worker);
        return deliveries;
    }
    /// A begin that hands the whole job over to the store.
    Attempt adopting(const Delivery& delivery) {
        Attempt run = prepare(delivery);
        run.request.job = delivery.row.job;
        run.request.adopt = true;
        return run;
    }
    BeginReply adopt(Attempt& run) {
        const BeginReply reply = begin(run.request);
        if (const auto* started = as<Started>(reply)) run.started = *started;
        return reply;
    }
    void acknowledge(const Attempt& run) {
        queue_.submit({{engine::Acknowledge{run.ref()}, [](const Result<engine::QueueReply>&) {}}});
        queue_.step();
    }

    PushQueue queue_;
};

TEST_P(CustodyConformance, G1_ABeginTakesTheWholeJobOver) {
    publish({.id = "j1", .key = "k", .payload = "{\"a\":1}"});
    Attempt run = adopting(pull("A").at(0));
    ASSERT_NE(as<Started>(adopt(run)), nullptr);
    acknowledge(run);
    EXPECT_EQ(queue_.unacked(), 0U);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_EQ(tx([](Tables& tables) { return tables.payload("j1"); }), "{\"a\":1}");
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

TEST_P(CustodyConformance, I23_WhatWaitsIsInTheStoreNotInTheWindow) {
    acquire("l", "shell", 1h);
    for (const char* id : {"j1", "j2", "j3"})
        publish({.id = id, .lock = "l"});
    for (const Delivery& delivery : pull("A")) {
        Attempt run = adopting(delivery);
        EXPECT_NE(as<Parked>(adopt(run)), nullptr);
        acknowledge(run);
    }
    EXPECT_EQ(queue_.unacked(), 0U);
    for (const char* id : {"j1", "j2", "j3"})
        EXPECT_EQ(state(id), JobState::kWaiting);
}

TEST_P(CustodyConformance, G1_ARetryComesBackWithItsPayload) {
    publish({.id = "j1", .payload = "{\"a\":1}"});
    Attempt run = adopting(pull("A").at(0));
    adopt(run);
    acknowledge(run);
    settle(run, failure());
    EXPECT_EQ(state("j1"), JobState::kScheduled);
    advance(1h);
    EXPECT_EQ(claim_job("B", "j1").row.job.payload, "{\"a\":1}");
}

TEST_P(CustodyConformance, I08_ARepeatedAdoptionIsTheSameRun) {
    publish({.id = "j1", .key = "k"});
    Attempt run = adopting(pull("A").at(0));
    adopt(run);
    const std::uint64_t epoch = run.started.epoch;
    ASSERT_NE(as<Started>(adopt(run)), nullptr);
    EXPECT_EQ(run.started.epoch, epoch);
}

TEST_P(CustodyConformance, I09_ALostAckDeliversWhatIsDoneAndRunsNothing) {
    publish({.id = "j1", .key = "k"});
    Attempt run = adopting(pull("A").at(0));
    adopt(run);
    succeed(run, "receipt");
    queue_.lose_next_ack();
    acknowledge(run);
    Attempt again = adopting(pull("B").at(0));
    EXPECT_GT(again.request.run.delivery, run.request.run.delivery);
    const BeginReply reply = adopt(again);
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kSucceeded);
    EXPECT_TRUE(has_event("k", EventKind::kAckLost));
    acknowledge(again);
    EXPECT_EQ(queue_.ready() + queue_.unacked(), 0U);
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(CustodyConformance, I24_ARedeliveryOfAnAdoptedJobIsTheStores) {
    publish({.id = "j1", .key = "k"});
    Attempt run = adopting(pull("A").at(0));
    adopt(run);
    queue_.lose_next_ack();
    acknowledge(run);
    Attempt again = adopting(pull("B").at(0));
    EXPECT_NE(as<Gone>(adopt(again)), nullptr) << "it runs, and only once";
    EXPECT_EQ(record("k").epoch, 1U);
    EXPECT_EQ(job("j1").owner, "A");
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
}

TEST_P(CustodyConformance, G1_ACrashAfterTheAckIsRecoveredByTheStore) {
    publish({.id = "j1", .key = "k"});
    Attempt run = adopting(pull("A").at(0));
    adopt(run);
    acknowledge(run);
    crash("A");
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(start("B", "j1").started.epoch, 2U);
}

TEST_P(CustodyConformance, G1_ACrashBeforeBeginIsRecoveredByTheQueue) {
    publish({.id = "j1", .key = "k"});
    pull("A");
    queue_.disconnect("A");
    Attempt run = adopting(pull("B").at(0));
    ASSERT_NE(as<Started>(adopt(run)), nullptr);
    EXPECT_EQ(run.started.epoch, 1U);
}

TEST_P(CustodyConformance, G2_AMessageTwiceRunsOnce) {
    publish({.id = "j1", .key = "k"});
    publish({.id = "j1", .key = "k"});
    std::vector<Delivery> both = pull("A");
    ASSERT_EQ(both.size(), 2U);
    Attempt first = adopting(both[0]);
    ASSERT_NE(as<Started>(adopt(first)), nullptr);
    Attempt second = adopting(both[1]);
    EXPECT_NE(as<Gone>(adopt(second)), nullptr) << "while it runs";
    succeed(first);
    const BeginReply reply = adopt(second);
    ASSERT_NE(as<Ended>(reply), nullptr) << "after its end";
    EXPECT_EQ(record("k").epoch, 1U);
}

TEST_P(CustodyConformance, G2_ADuplicateOfTheKeyIsSuppressed) {
    publish({.id = "j1", .key = "k"});
    publish({.id = "j2", .key = "k"});
    std::vector<Delivery> both = pull("A");
    Attempt first = adopting(both.at(0));
    adopt(first);
    Attempt second = adopting(both.at(1));
    EXPECT_NE(as<Parked>(adopt(second)), nullptr);
    acknowledge(second);
    succeed(first, "receipt");
    const BeginReply reply = begin(claim_job("B", "j2"));
    ASSERT_NE(as<Ended>(reply), nullptr);
    EXPECT_EQ(as<Ended>(reply)->state, JobState::kDuplicate);
    EXPECT_EQ(as<Ended>(reply)->result, "receipt");
}

SEKALI_CONFORMS(CustodyConformance);

}  // namespace
}  // namespace sekali::conformance
