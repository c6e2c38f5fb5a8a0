#include "backends/memory/memory_store.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sekali::memory {
namespace {

using engine::JobRow;
using engine::JobState;
using engine::Millis;
using engine::Tables;
using engine::Task;

JobRow ready_job(const std::string& id, std::int32_t priority = 0) {
    JobRow row;
    row.job.id = id;
    row.job.kind = "k";
    row.job.key = id;
    row.job.payload = "{\"id\":\"" + id + "\"}";
    row.job.priority = priority;
    row.state = JobState::kReady;
    return row;
}

engine::ClaimSpec all_of(std::size_t limit) {
    return {.ns = "default", .queues = {"default"}, .kinds = {"k"}, .limit = limit};
}

std::vector<std::string> ready_ids(MemoryStore& store) {
    std::vector<std::string> ids;
    store
        .read([&](Tables& tables) {
            for (const JobRow& row : tables.claimable(all_of(100)))
                ids.push_back(row.job.id);
        })
        .value();
    return ids;
}

Task insert_task(std::string id, std::vector<std::string>& answers) {
    return {.work =
                [id](Tables& tables) {
                    JobRow row = ready_job(id);
                    tables.insert_job(row);
                },
            .done =
                [id, &answers](const Result<void>& result) {
                    answers.push_back(id + (result.ok() ? " ok" : " " + result.error().message));
                }};
}

Task failing_task(std::string id, std::vector<std::string>& answers) {
    Task task = insert_task(id, answers);
    task.work = [work = std::move(task.work)](Tables& tables) {
        work(tables);
        throw std::runtime_error("no");
    };
    return task;
}

TEST(MemoryStore, AThrowingTaskLeavesNothingAndItsNeighboursCommit) {
    MemoryStore store;
    std::vector<std::string> answers;
    store.submit(
        {insert_task("a", answers), failing_task("b", answers), insert_task("c", answers)});
    EXPECT_TRUE(answers.empty());
    EXPECT_TRUE(store.step());
    EXPECT_EQ(answers, (std::vector<std::string>{"a ok", "b no", "c ok"}));
    EXPECT_EQ(ready_ids(store), (std::vector<std::string>{"a", "c"}));
    EXPECT_FALSE(store.step());
}

TEST(MemoryStore, UrgentTasksGoFirst) {
    MemoryStore store;
    std::vector<std::string> answers;
    Task urgent = insert_task("b", answers);
    urgent.urgent = true;
    store.submit({insert_task("a", answers), std::move(urgent)});
    store.run_all();
    EXPECT_EQ(answers, (std::vector<std::string>{"b ok", "a ok"}));
}

TEST(MemoryStore, ReadsSeeOneSnapshotAndWriteNothing) {
    MemoryStore store;
    store
        .read([](Tables& tables) {
            JobRow row = ready_job("a");
            EXPECT_TRUE(tables.insert_job(row));
            EXPECT_EQ(tables.claimable(all_of(1)).size(), 1U);
        })
        .value();
    EXPECT_TRUE(ready_ids(store).empty());
}

TEST(MemoryStore, TheClockStandsStillUntilItIsTold) {
    MemoryStore store;
    const auto before = store.now();
    store.advance(Millis{1500});
    EXPECT_EQ(store.now() - before, Millis{1500});
    store.set_now(before);
    engine::StoreTime seen{};
    store.read([&](Tables& tables) { seen = tables.now(); }).value();
    EXPECT_EQ(seen, before);
}

TEST(MemoryStore, RollbackRestoresEveryTable) {
    MemoryStore store;
    const engine::RecordKey key{"default", "k", "key"};
    const auto fill = [&](Tables& tables) {
        JobRow row = ready_job("a");
        tables.insert_job(row);
        engine::RecordRow record;
        record.id = key;
        record.epoch = 4;
        tables.put_record(record);
        engine::StepRow step;
        step.record = key;
        step.name = "s";
        tables.put_step(step);
        engine::LockRow lock;
        lock.ns = "default";
        lock.name = "l";
        lock.fence = 7;
        tables.put_lock(lock);
        engine::AttemptRow attempt;
        attempt.ns = "default";
        attempt.kind = "k";
        attempt.key = "key";
        attempt.finished_at = tables.now();
        tables.add_attempt(attempt);
        engine::EventRow event;
        event.ns = "default";
        event.kind = "k";
        event.key = "key";
        tables.add_event(event);
        engine::WorkerRow worker;
        worker.id = "w";
        worker.ns = "default";
        tables.put_worker(worker);
        tables.put_queue({.ns = "default", .name = "default", .paused = false});
    };
    const auto spoil = [&](Tables& tables) {
        JobRow row = *tables.job("a");
        row.state = JobState::kSucceeded;
        tables.finish_job(row);
        tables.erase_finished("a");
        tables.erase_record(key);
        tables.erase_lock("default", "l");
        tables.erase_worker("w");
        tables.put_queue({.ns = "default", .name = "default", .paused = true});
        tables.prune_history("default", engine::StoreTime::max(), 10);
        throw std::runtime_error("no");
    };
    std::vector<bool> answers;
    const auto answer = [&](const Result<void>& result) { answers.push_back(result.ok()); };
    store.submit({{.work = fill, .done = answer}});
    store.run_all();
    store.submit({{.work = spoil, .done = answer}});
    store.run_all();
    EXPECT_EQ(answers, (std::vector<bool>{true, false}));
    store
        .read([&](Tables& tables) {
            ASSERT_TRUE(tables.job("a"));
            EXPECT_EQ(tables.payload("a"), ready_job("a").job.payload);
            EXPECT_EQ(tables.record(key)->epoch, 4U);
            EXPECT_EQ(tables.epoch_floor(), 0U);
            EXPECT_EQ(tables.fence_floor(), 0U);
            EXPECT_EQ(tables.steps(key).size(), 1U);
            EXPECT_EQ(tables.lock("default", "l")->fence, 7U);
            EXPECT_EQ(tables.attempts_of_key(key).size(), 1U);
            EXPECT_EQ(tables.events_of_key(key).size(), 1U);
            EXPECT_TRUE(tables.worker("w"));
            EXPECT_EQ(tables.claimable(all_of(10)).size(), 1U);
        })
        .value();
}

TEST(MemoryStore, ThreadedAnswersFromItsOwnThread) {
    MemoryStore store(MemoryStore::Mode::kThreaded);
    std::promise<std::thread::id> answered;
    store.submit({{.work =
                       [](Tables& tables) {
                           JobRow row = ready_job("a");
                           tables.insert_job(row);
                       },
                   .done =
                       [&](const Result<void>& result) {
                           result.value();
                           answered.set_value(std::this_thread::get_id());
                       }}});
    EXPECT_NE(answered.get_future().get(), std::this_thread::get_id());
    EXPECT_EQ(ready_ids(store), (std::vector<std::string>{"a"}));
    // Whatever changed since this thread last waited ends its wait at once.
    store.wait_for_change(std::chrono::hours{1});
}

TEST(MemoryStore, ManyJobsAreClaimedInOrder) {
    constexpr int kJobs = 10'000;
    MemoryStore store;
    std::size_t inserted = 0;
    store.submit({{.work =
                       [&](Tables& tables) {
                           inserted = 0;
                           for (int i = 0; i < kJobs; ++i) {
                               JobRow row = ready_job("job-" + std::to_string(i), i % 10);
                               inserted += tables.insert_job(row) ? 1 : 0;
                           }
                       },
                   .done = [](const Result<void>& result) { result.value(); }}});
    store.run_all();
    ASSERT_EQ(inserted, static_cast<std::size_t>(kJobs));
    std::size_t claimed = 0;
    std::int32_t last_priority = 9;
    while (claimed < kJobs) {
        store.submit({{.work =
                           [&](Tables& tables) {
                               for (JobRow& row : tables.claimable(all_of(500))) {
                                   EXPECT_LE(row.job.priority, last_priority);
                                   last_priority = row.job.priority;
                                   row.state = JobState::kRunning;
                                   tables.update_job(row);
                                   ++claimed;
                               }
                           },
                       .done = [](const Result<void>& result) { result.value(); }}});
        store.run_all();
    }
    EXPECT_TRUE(ready_ids(store).empty());
}

}  // namespace
}  // namespace sekali::memory
