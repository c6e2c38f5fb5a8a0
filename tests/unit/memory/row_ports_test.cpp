#include "backends/rows/row_ports.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/memory/memory_store.hpp"
#include "engine/operations.hpp"

namespace sekali::rows {
namespace {

using engine::QueuePort;
using engine::QueueReply;
using engine::StorePort;
using engine::StoreReply;
using engine::Tables;
using engine::Task;

/// Keeps the tasks for the test to look at and to answer.
class HeldExecutor final : public engine::Executor {
 public:
    void submit(std::vector<Task> tasks) override {
        for (Task& task : tasks)
            held.push_back(std::move(task));
    }
    Result<void> read(const std::function<void(Tables&)>&) override { return {}; }
    void wait_for_change(engine::Millis) override {}

    std::vector<Task> held;
};

std::vector<QueuePort::Call> claim_call(std::optional<Result<QueueReply>>& answer) {
    engine::Claim claim;
    claim.spec = {.ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = 1};
    claim.worker = "A";
    claim.lease = std::chrono::seconds{15};
    std::vector<QueuePort::Call> calls;
    calls.push_back({claim, [&](Result<QueueReply> reply) { answer = std::move(reply); }});
    return calls;
}

void put_job(memory::MemoryStore& store, const std::string& id) {
    engine::EnqueueRequest request;
    request.job.id = request.job.key = id;
    request.job.kind = "charge";
    store.submit({{.work = [request](Tables& tables) { enqueue(tables, request); },
                   .done = [](const Result<void>& result) { result.value(); }}});
    store.run_all();
}

TEST(RowPorts, AreJointWithCustodyAndLockInTheStore) {
    memory::MemoryStore store;
    const RowPorts ports(store);
    EXPECT_TRUE(ports.traits().joint);
    EXPECT_TRUE(ports.traits().custody);
    EXPECT_FALSE(ports.traits().push);
    EXPECT_TRUE(ports.in_store());
}

TEST(RowPorts, AFailedTransactionAnswersWithItsError) {
    HeldExecutor executor;
    RowPorts ports(executor);
    std::optional<Result<QueueReply>> answer;
    ports.submit(claim_call(answer));
    ASSERT_EQ(executor.held.size(), 1U);
    EXPECT_FALSE(answer);
    executor.held[0].done(Error{.code = ErrorCode::kUnreachable, .applied = Applied::kMaybe});
    ASSERT_TRUE(answer);
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(answer->error().applied, Applied::kMaybe);
}

TEST(RowPorts, ARunThatIsRepeatedAnswersWithItsLastRun) {
    memory::MemoryStore store;
    put_job(store, "j1");
    HeldExecutor held;
    RowPorts ports(held);
    std::optional<Result<QueueReply>> answer;
    ports.submit(claim_call(answer));
    ASSERT_EQ(held.held.size(), 1U);
    const auto work = held.held[0].work;
    // The first run is rolled back, and before the second one another worker takes the job.
    store.read(work).value();
    store.submit({{.work =
                       [](Tables& tables) {
                           auto row = tables.job("j1");
                           row->state = engine::JobState::kRunning;
                           row->owner = "B";
                           tables.update_job(*row);
                       },
                   .done = [](const Result<void>& result) { result.value(); }}});
    store.run_all();
    store.submit({{.work = work, .done = held.held[0].done}});
    store.run_all();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(std::get<engine::Claimed>(answer->value()).deliveries.empty());
}

TEST(RowPorts, OnlyRenewalsAreUrgent) {
    HeldExecutor executor;
    RowPorts ports(executor);
    const auto ignore_store = [](const Result<StoreReply>&) {};
    ports.submit(std::vector<StorePort::Call>{{engine::Renew{}, ignore_store},
                                              {engine::Heartbeat{}, ignore_store},
                                              {engine::Begin{}, ignore_store},
                                              {engine::Settle{}, ignore_store},
                                              {engine::StepIntent{}, ignore_store},
                                              {engine::Recover{}, ignore_store}});
    const auto ignore_queue = [](const Result<QueueReply>&) {};
    ports.submit(std::vector<QueuePort::Call>{{engine::Extend{}, ignore_queue},
                                              {engine::Claim{}, ignore_queue},
                                              {engine::Return{}, ignore_queue}});
    const auto ignore_lock = [](const Result<engine::LockReply>&) {};
    ports.submit(std::vector<engine::LockPort::Call>{{engine::LockRenew{}, ignore_lock},
                                                     {engine::LockAcquire{}, ignore_lock}});
    std::vector<bool> urgent;
    for (const Task& task : executor.held)
        urgent.push_back(task.urgent);
    EXPECT_EQ(urgent, (std::vector<bool>{true, true, false, false, false, false, true, false, false,
                                         true, false}));
}

TEST(RowPorts, TheCommandsOfABatchAreOneGroup) {
    memory::MemoryStore store;
    put_job(store, "j1");
    put_job(store, "j2");
    RowPorts ports(store);
    std::optional<Result<QueueReply>> first;
    std::optional<Result<QueueReply>> second;
    auto calls = claim_call(first);
    calls.push_back(std::move(claim_call(second)[0]));
    ports.submit(std::move(calls));
    EXPECT_TRUE(store.step());
    EXPECT_EQ(std::get<engine::Claimed>(first->value()).deliveries.at(0).row.job.id, "j1");
    EXPECT_EQ(std::get<engine::Claimed>(second->value()).deliveries.at(0).row.job.id, "j2");
}

}  // namespace
}  // namespace sekali::rows
