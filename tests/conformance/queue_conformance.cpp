#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/rows/row_ports.hpp"
#include "conformance/backend.hpp"
#include "conformance/ports_of.hpp"
#include "conformance/push_queue.hpp"
#include "conformance/redis_queue.hpp"
#include "engine/operations.hpp"

// What every queue promises, whether it is asked or pushes, has custody or has none.
namespace sekali::conformance {
namespace {

using namespace std::chrono_literals;
using engine::Claim;
using engine::Claimed;
using engine::Delivery;
using engine::Millis;
using engine::QueuePort;
using engine::QueueReply;

/// A queue under test, and the other side of it: its producers, its operator and its clock.
class QueueBackend {
 public:
    virtual ~QueueBackend() = default;
    virtual QueuePort& port() = 0;
    virtual void publish(const engine::Envelope& job, Millis delay) = 0;
    virtual void pump() = 0;
    /// Whatever the worker has claimed goes to others: it is dead, or its connection is.
    virtual void lose_worker(const std::string& worker) = 0;

    /// Forgets the worker's claims that are still open.
    virtual void withdraw_credit(const std::string& /*worker*/) {}

    // Only where the queue has custody.
    virtual void advance(Millis) {}
    virtual void pause(const std::string& /*queue*/, bool /*paused*/) {}
};

struct QueueKind {
    std::string name;
    std::function<std::unique_ptr<QueueBackend>()> make;
};
void PrintTo(const QueueKind& kind, std::ostream* out) {
    *out << kind.name;
}

class RowQueue final : public QueueBackend {
 public:
    explicit RowQueue(std::unique_ptr<Backend> backend)
        : backend_(std::move(backend)), ports_(backend_->executor()) {}
    QueuePort& port() override { return ports_; }
    void publish(const engine::Envelope& job, Millis delay) override {
        engine::EnqueueRequest request;
        request.job = job;
        if (delay > 0ms) request.delay = delay;
        run_in(*backend_, [request](engine::Tables& tables) { enqueue(tables, request); });
    }
    void pump() override { backend_->pump(); }
    void lose_worker(const std::string& worker) override {
        backend_->set_fate(worker, engine::OwnerFate::kDead);
        engine::Recover request;
        request.ns = "default";
        request.kinds = {"charge", "mail"};
        run_in(*backend_, [request](engine::Tables& tables) { recover(tables, request); });
    }
    void advance(Millis by) override { backend_->advance(by); }
    void pause(const std::string& queue, bool paused) override {
        run_in(*backend_,
               [=](engine::Tables& tables) { pause_queue(tables, "default", queue, paused); });
    }

 private:
    std::unique_ptr<Backend> backend_;
    rows::RowPorts ports_;
};

class PushBackend final : public QueueBackend {
 public:
    QueuePort& port() override { return queue_; }
    void publish(const engine::Envelope& job, Millis /*delay*/) override { queue_.publish(job); }
    void pump() override {
        while (queue_.step()) {
        }
    }
    void lose_worker(const std::string& worker) override { queue_.disconnect(worker); }
    void withdraw_credit(const std::string& worker) override { queue_.withdraw_credit(worker); }

 private:
    PushQueue queue_;
};

/// A queue of its own, beside a store that is elsewhere.
class OutsideQueue final : public QueueBackend {
 public:
    QueuePort& port() override { return queue_->port(); }
    void publish(const engine::Envelope& job, Millis delay) override {
        engine::EnqueueRequest request;
        request.job = job;
        if (delay > 0ms) request.delay = delay;
        queue_->enqueue(request);
    }
    void pump() override {}
    /// Nobody proves a death there; what the worker had is over with its lease.
    void lose_worker(const std::string& /*worker*/) override { queue_->advance(15s + 1ms); }
    void advance(Millis by) override { queue_->advance(by); }
    void pause(const std::string& queue, bool paused) override { queue_->pause(queue, paused); }

 private:
    std::unique_ptr<RedisQueue> queue_ = make_redis_queue();
};

std::vector<QueueKind> custody_queues() {
    std::vector<QueueKind> kinds{{"redis", [] { return std::make_unique<OutsideQueue>(); }}};
    for (const BackendKind& backend : backends()) {
        kinds.push_back(
            {backend.name, [make = backend.make] { return std::make_unique<RowQueue>(make()); }});
    }
    return kinds;
}

std::vector<QueueKind> push_queues() {
    return {{"push", [] { return std::make_unique<PushBackend>(); }}};
}

class QueueConformance : public ::testing::TestWithParam<QueueKind> {
 protected:
    QueueConformance() : backend_(GetParam().make()) {}

    [[nodiscard]] engine::QueueTraits traits() { return backend_->port().traits(); }
    QueueBackend& backend() { return *backend_; }

    void put(const std::string& id, const std::function<void(engine::Envelope&)>& change = {},
             Millis delay = 0ms) {
        engine::Envelope job;
        job.id = job.key = id;
        job.kind = "charge";
        job.payload = "{\"id\":\"" + id + "\"}";
        if (change) change(job);
        backend_->publish(job, delay);
    }
    /// A push queue leaves a claim open for which it has no message; here that is an empty answer.
    Claimed claim_all(const std::string& worker, std::size_t limit = 100,
                      const std::vector<std::string>& queues = {"default"}) {
        Claim request;
        request.spec = {.ns = "default", .queues = queues, .kinds = {"charge"}, .limit = limit};
        request.worker = worker;
        request.lease = 15s;
        const auto answers = send({std::move(request)});
        if (answers.empty()) {
            backend_->withdraw_credit(worker);
            return {};
        }
        return std::get<Claimed>(answers[0].value());
    }
    std::vector<Delivery> claim(const std::string& worker, std::size_t limit = 100) {
        return claim_all(worker, limit).deliveries;
    }
    std::vector<std::string> ids(const std::vector<Delivery>& deliveries) {
        std::vector<std::string> names;
        for (const Delivery& delivery : deliveries)
            names.push_back(delivery.row.job.id);
        return names;
    }
    std::vector<Result<QueueReply>> send(std::vector<engine::QueueCommand> commands) {
        return send_all<QueuePort, QueueReply>(
            backend_->port(), std::move(commands), [this] { backend_->pump(); },
            /*wait=*/!traits().push);
    }
    static engine::RunRef run_of(const Delivery& delivery) {
        engine::RunRef run;
        run.job_id = delivery.row.job.id;
        run.record = {"default", delivery.row.job.kind, delivery.row.job.key};
        run.worker = delivery.row.owner;
        run.delivery = delivery.row.deliveries;
        return run;
    }
    void give_back(const Delivery& delivery, std::optional<Millis> delay = std::nullopt) {
        ASSERT_TRUE(send({engine::Return{run_of(delivery), delay}}).at(0).ok());
    }

 private:
    std::unique_ptr<QueueBackend> backend_;
};

TEST_P(QueueConformance, G1_ADeliveryHasItsPayloadItsOwnerAndItsToken) {
    put("j1");
    const auto deliveries = claim("A");
    ASSERT_EQ(deliveries.size(), 1U);
    EXPECT_EQ(deliveries[0].row.job.payload, "{\"id\":\"j1\"}");
    EXPECT_EQ(deliveries[0].row.owner, "A");
    EXPECT_GT(deliveries[0].row.deliveries, 0U);
}

TEST_P(QueueConformance, G1_AJobIsGivenToOneWorker) {
    for (int i = 0; i < 10; ++i)
        put("j" + std::to_string(i));
    std::multiset<std::string> given;
    for (const char* worker : {"A", "B", "C", "D"}) {
        for (const std::string& id : ids(claim(worker, 3)))
            given.insert(id);
    }
    EXPECT_EQ(given.size(), 10U);
    EXPECT_EQ(std::set<std::string>(given.begin(), given.end()).size(), 10U);
}

TEST_P(QueueConformance, G8_CreditIsTheMostThatIsGiven) {
    for (int i = 0; i < 5; ++i)
        put("j" + std::to_string(i));
    const Claimed reply = claim_all("A", 2);
    EXPECT_EQ(reply.deliveries.size(), 2U);
    EXPECT_TRUE(reply.more);
    EXPECT_EQ(claim("A", 100).size(), 3U);
}

TEST_P(QueueConformance, JobsOfOnePriorityComeInTheOrderOfTheirArrival) {
    for (int i = 0; i < 5; ++i)
        put("j" + std::to_string(i));
    EXPECT_EQ(ids(claim("A")), (std::vector<std::string>{"j0", "j1", "j2", "j3", "j4"}));
}

TEST_P(QueueConformance, OtherQueuesAndNamespacesAreNotServed) {
    put("j1", [](engine::Envelope& job) { job.queue = "other"; });
    put("j2", [](engine::Envelope& job) { job.ns = "tenant"; });
    put("j3");
    EXPECT_EQ(ids(claim("A")), (std::vector<std::string>{"j3"}));
    EXPECT_EQ(ids(claim_all("A", 100, {"default", "other"}).deliveries),
              (std::vector<std::string>{"j1"}));
}

TEST_P(QueueConformance, G8_AReturnedJobIsReadyAgainUnderANewToken) {
    put("j1");
    const Delivery first = claim("A").at(0);
    EXPECT_TRUE(claim("B").empty());
    give_back(first);
    const auto again = claim("B");
    ASSERT_EQ(again.size(), 1U);
    EXPECT_GT(again[0].row.deliveries, first.row.deliveries);
    EXPECT_EQ(again[0].row.attempts, 0U);
    EXPECT_EQ(again[0].row.interruptions, 0U);
}

TEST_P(QueueConformance, K04_ATokenOfAnEarlierDeliveryDoesNothing) {
    put("j1");
    const Delivery first = claim("A").at(0);
    backend().lose_worker("A");
    const Delivery second = claim("B").at(0);
    EXPECT_GT(second.row.deliveries, first.row.deliveries);
    give_back(first);
    EXPECT_TRUE(send({engine::Acknowledge{run_of(first)}}).at(0).ok());
    EXPECT_TRUE(claim("C").empty()) << "it still is B's";
}

TEST_P(QueueConformance, G1_WhatADeadWorkerHadGoesToOthers) {
    for (int i = 0; i < 3; ++i)
        put("j" + std::to_string(i));
    const auto first = claim("A");
    ASSERT_EQ(first.size(), 3U);
    backend().lose_worker("A");
    const auto again = claim("B");
    EXPECT_EQ(ids(again), (std::vector<std::string>{"j0", "j1", "j2"}));
    for (std::size_t i = 0; i < again.size(); ++i) {
        EXPECT_GT(again[i].row.deliveries, first[i].row.deliveries);
    }
}

TEST_P(QueueConformance, EveryCommandOfABatchIsAnsweredOnce) {
    for (int i = 0; i < 3; ++i)
        put("j" + std::to_string(i));
    const auto deliveries = claim("A");
    std::vector<engine::QueueCommand> commands;
    for (const Delivery& delivery : deliveries) {
        commands.emplace_back(engine::Extend{run_of(delivery), 15s});
        commands.emplace_back(engine::Return{run_of(delivery), std::nullopt});
        commands.emplace_back(engine::Return{run_of(delivery), std::nullopt});
    }
    const auto answers = send(commands);
    EXPECT_EQ(answers.size(), commands.size());
    for (const auto& answer : answers)
        EXPECT_TRUE(answer.ok());
    EXPECT_EQ(claim("B").size(), 3U);
}

// ---- queues that keep the jobs
// -------------------------------------------------------------------

class CustodyQueueConformance : public QueueConformance {};

TEST_P(CustodyQueueConformance, LargerPrioritiesComeFirst) {
    int n = 0;
    for (const std::int32_t priority : {0, 9, 3, 9, 0}) {
        put("j" + std::to_string(n++),
            [priority](engine::Envelope& job) { job.priority = priority; });
    }
    EXPECT_EQ(ids(claim("A")), (std::vector<std::string>{"j1", "j3", "j2", "j0", "j4"}));
}

TEST_P(CustodyQueueConformance, F07_KindsWithoutAHandlerHereStayForOthers) {
    put("j1", [](engine::Envelope& job) { job.kind = "unheard_of"; });
    put("j2");
    EXPECT_EQ(ids(claim("A")), (std::vector<std::string>{"j2"}));
}

TEST_P(CustodyQueueConformance, A01_ADelayedJobIsNotGivenBeforeItsTime) {
    put("j1", {}, 75s);
    put("j2");
    const auto at_once = claim("A");
    ASSERT_EQ(ids(at_once), (std::vector<std::string>{"j2"}));
    send({engine::Extend{run_of(at_once[0]), 1h}});
    const Claimed empty = claim_all("B");
    ASSERT_TRUE(empty.next_due);
    EXPECT_EQ(*empty.next_due, 75s);
    backend().advance(75s - 1ms);
    EXPECT_TRUE(claim("B").empty());
    backend().advance(1ms);
    const auto due = claim("B");
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(due[0].row.deliveries, 1U) << "waiting jobs are never leased";
}

TEST_P(CustodyQueueConformance, G8_AReturnWithADelayWaits) {
    put("j1");
    give_back(claim("A").at(0), 30s);
    EXPECT_TRUE(claim("A").empty());
    backend().advance(30s);
    EXPECT_EQ(claim("A").size(), 1U);
}

TEST_P(CustodyQueueConformance, APausedQueueGivesNothingAndKeepsEverything) {
    backend().pause("default", true);
    put("j1");
    EXPECT_TRUE(claim("A").empty());
    backend().pause("default", false);
    EXPECT_EQ(claim("A").size(), 1U);
}

TEST_P(CustodyQueueConformance, APauseLetsRunningJobsGoOn) {
    put("j1");
    const Delivery delivery = claim("A").at(0);
    backend().pause("default", true);
    give_back(delivery);
    EXPECT_TRUE(claim("B").empty());
    backend().pause("default", false);
    EXPECT_EQ(claim("B").at(0).row.deliveries, 2U);
}

TEST_P(CustodyQueueConformance, A01_ExtendingKeepsAClaimForAnyTime) {
    put("j1");
    const Delivery delivery = claim("A").at(0);
    for (int i = 0; i < 20; ++i) {
        backend().advance(10s);
        send({engine::Extend{run_of(delivery), 15s}});
    }
    EXPECT_TRUE(claim("B").empty());
    give_back(delivery);
    EXPECT_EQ(claim("B").at(0).row.deliveries, 2U) << "it still was A's to give back";
}

// ---- queues that only deliver
// ----------------------------------------------------------------------

class PushQueueConformance : public QueueConformance {};

TEST_P(PushQueueConformance, AnAcknowledgedDeliveryIsGone) {
    put("j1");
    const Delivery delivery = claim("A").at(0);
    EXPECT_TRUE(send({engine::Acknowledge{run_of(delivery)}}).at(0).ok());
    backend().lose_worker("A");
    EXPECT_TRUE(claim("B").empty());
}

TEST_P(PushQueueConformance, AnUnacknowledgedDeliveryComesAgain) {
    put("j1");
    claim("A");
    backend().lose_worker("A");
    EXPECT_EQ(claim("B").at(0).row.deliveries, 2U);
}

TEST_P(PushQueueConformance, CreditIsAnsweredWhenAMessageComes) {
    int answers = 0;
    Claim request;
    request.spec = {.ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = 2};
    request.worker = "A";
    std::vector<QueuePort::Call> calls;
    calls.push_back({request, [&](const Result<QueueReply>& reply) {
                         ++answers;
                         EXPECT_EQ(std::get<Claimed>(*reply).deliveries.size(), 1U);
                     }});
    backend().port().submit(std::move(calls));
    backend().pump();
    EXPECT_EQ(answers, 0);
    put("j1");
    backend().pump();
    EXPECT_EQ(answers, 1);
}

TEST(PushQueue, ALostAckIsMaybeAppliedAndDeliversAgain) {
    PushQueue queue;
    engine::Envelope job;
    job.id = "j1";
    queue.publish(job);
    Claim request;
    request.spec = {.ns = "default", .queues = {"default"}, .kinds = {}, .limit = 1};
    request.worker = "A";
    std::vector<Delivery> deliveries;
    const auto claim_for = [&](const std::string& worker) {
        request.worker = worker;
        std::vector<QueuePort::Call> calls;
        calls.push_back({request, [&](const Result<QueueReply>& reply) {
                             deliveries = std::get<Claimed>(*reply).deliveries;
                         }});
        queue.submit(std::move(calls));
        queue.step();
    };
    claim_for("A");
    ASSERT_EQ(deliveries.size(), 1U);
    queue.lose_next_ack();
    engine::RunRef run;
    run.job_id = "j1";
    run.worker = "A";
    run.delivery = 1;
    std::vector<QueuePort::Call> calls;
    calls.push_back({engine::Acknowledge{run}, [](const Result<QueueReply>& reply) {
                         ASSERT_FALSE(reply.ok());
                         EXPECT_EQ(reply.error().applied, Applied::kMaybe);
                     }});
    queue.submit(std::move(calls));
    queue.step();
    EXPECT_EQ(queue.ready(), 1U);
    claim_for("B");
    EXPECT_EQ(deliveries.at(0).row.deliveries, 2U);
}

const auto name_of_queue = [](const auto& instance) { return instance.param.name; };
INSTANTIATE_TEST_SUITE_P(WithCustody, QueueConformance, ::testing::ValuesIn(custody_queues()),
                         name_of_queue);
INSTANTIATE_TEST_SUITE_P(WithCustody, CustodyQueueConformance,
                         ::testing::ValuesIn(custody_queues()), name_of_queue);
INSTANTIATE_TEST_SUITE_P(On, QueueConformance, ::testing::ValuesIn(push_queues()), name_of_queue);
INSTANTIATE_TEST_SUITE_P(On, PushQueueConformance, ::testing::ValuesIn(push_queues()),
                         name_of_queue);

}  // namespace
}  // namespace sekali::conformance
