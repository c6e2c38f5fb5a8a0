#include "backends/sqlite/sqlite_store.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "unit/sqlite/temp_database.hpp"

// The writer's thread, group commit, waiting, the clock and the log.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::Millis;
using engine::StoreTime;
using engine::Tables;
using engine::Task;
using namespace std::chrono_literals;

JobRow job(const std::string& id) {
    JobRow row;
    row.job.id = row.job.key = id;
    row.job.kind = "k";
    return row;
}

Task task_of(std::function<void(Tables&)> work) {
    Task task;
    task.work = std::move(work);
    return task;
}

Task insert(const std::string& id) {
    return task_of([id](Tables& tables) {
        JobRow row = job(id);
        Error taken;
        taken.code = ErrorCode::kConflict;
        if (!tables.insert_job(row)) throw Failure(taken);
    });
}

/// Collects what `done` was told, in order.
class Answers {
 public:
    Task watched(Task task, std::string name) {
        task.done = [this, name = std::move(name)](const Result<void>& result) {
            const std::lock_guard guard(mutex_);
            given_.emplace_back(name, result);
            changed_.notify_all();
        };
        return task;
    }
    std::vector<std::pair<std::string, Result<void>>> wait_for(std::size_t count) {
        std::unique_lock guard(mutex_);
        EXPECT_TRUE(changed_.wait_for(guard, 60s, [&] { return given_.size() >= count; }));
        return given_;
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::pair<std::string, Result<void>>> given_;
};

/// Keeps the writer's thread busy until it is opened.
class Barrier {
 public:
    Task task() {
        return task_of([this](Tables&) {
            std::unique_lock guard(mutex_);
            reached_ = true;
            changed_.notify_all();
            changed_.wait(guard, [this] { return open_; });
        });
    }
    void wait_until_reached() {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [this] { return reached_; });
    }
    void open() {
        const std::lock_guard guard(mutex_);
        open_ = true;
        changed_.notify_all();
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool reached_ = false;
    bool open_ = false;
};

std::size_t count_jobs(SqliteStore& store) {
    std::size_t count = 0;
    read(store, [&](Tables& tables) {
        engine::JobFilter filter;
        filter.ns = "default";
        filter.limit = 100'000;
        count = tables.list_jobs(filter).items.size();
    });
    return count;
}

class SqliteStoreTest : public testing::Test {
 protected:
    TempDatabase database_;
};

TEST_F(SqliteStoreTest, AGroupThatFailsCostsNobodyButTheFailing) {
    const auto store = database_.open();
    write(*store, [](Tables& tables) {
        JobRow row = job("taken");
        tables.insert_job(row);
    });
    Barrier barrier;
    store->submit({barrier.task()});
    barrier.wait_until_reached();
    Answers answers;
    std::vector<Task> tasks;
    std::set<std::string> failing;
    for (int i = 0; i < 40; ++i) {
        const std::string id = std::to_string(i);
        // More than are set aside singly, so that the rest of the group runs one by one.
        const bool fails = i % 3 == 0;
        if (fails) failing.insert(id);
        tasks.push_back(answers.watched(insert(fails ? "taken" : id), id));
    }
    tasks.push_back(
        answers.watched(task_of([](Tables&) { throw std::runtime_error("oops"); }), "std"));
    tasks.push_back(answers.watched(task_of([](Tables&) { throw 7; }), "number"));
    failing.insert({"std", "number"});
    store->submit(std::move(tasks));
    barrier.open();
    for (const auto& [name, result] : answers.wait_for(42)) {
        EXPECT_EQ(result.ok(), !failing.contains(name)) << name;
        if (result) continue;
        EXPECT_EQ(result.error().applied, Applied::kNo);
    }
    EXPECT_EQ(count_jobs(*store), 1U + 26U);
}

TEST_F(SqliteStoreTest, UrgentTasksGoFirstAndAnswersComeAfterTheCommit) {
    const auto store = database_.open();
    Barrier barrier;
    store->submit({barrier.task()});
    barrier.wait_until_reached();
    std::vector<std::string> order;
    Answers answers;
    const auto noting = [&](const std::string& name, bool urgent) {
        Task task = task_of([&order, name](Tables&) { order.push_back(name); });
        task.urgent = urgent;
        return answers.watched(std::move(task), name);
    };
    store->submit({noting("first", false), noting("second", false)});
    store->submit({noting("urgent", true)});
    Task check = insert("durable");
    std::atomic<bool> seen{false};
    check.done = [&](const Result<void>&) {
        seen = store->read([](Tables& tables) { EXPECT_TRUE(tables.job("durable")); }).ok();
    };
    store->submit({std::move(check)});
    barrier.open();
    answers.wait_for(3);
    write(*store, [](Tables&) {});
    EXPECT_EQ(order, (std::vector<std::string>{"urgent", "first", "second"}));
    EXPECT_TRUE(seen);
}

TEST_F(SqliteStoreTest, AnAnswerMaySubmitEvenWhereTheInboxIsFull) {
    SqliteOptions options = database_.options();
    options.inbox_limit = 1;
    const auto store = SqliteStore::open(std::move(options)).value();
    Answers answers;
    std::function<void(int)> submit = [&](int left) {
        Task task = answers.watched(task_of([](Tables&) {}), std::to_string(left));
        auto told = std::move(task.done);
        task.done = [&, left, told](const Result<void>& result) {
            if (left > 0) submit(left - 1);
            if (left > 0) submit(0);
            told(result);
        };
        store->submit({std::move(task)});
    };
    submit(3);
    for (const auto& [name, result] : answers.wait_for(7))
        EXPECT_TRUE(result.ok()) << name;
}

TEST_F(SqliteStoreTest, AFullInboxHoldsSubmittersBackAndThenRefuses) {
    SqliteOptions options = database_.options();
    options.inbox_limit = 2;
    options.busy_deadline = 30ms;
    const auto store = SqliteStore::open(std::move(options)).value();
    Barrier barrier;
    store->submit({barrier.task()});
    barrier.wait_until_reached();
    Answers answers;
    store->submit({answers.watched(insert("a"), "a"), answers.watched(insert("b"), "b"),
                   answers.watched(insert("c"), "c")});
    const auto refused = answers.wait_for(1);
    EXPECT_EQ(refused[0].first, "c");
    EXPECT_EQ(refused[0].second.error().code, ErrorCode::kUnreachable);
    EXPECT_TRUE(refused[0].second.error().retryable);
    barrier.open();
    answers.wait_for(3);
    EXPECT_EQ(count_jobs(*store), 2U);
}

TEST_F(SqliteStoreTest, ACallerThatGivesUpIsToldWhetherItMayStillHappen) {
    const auto store = database_.open();
    Barrier barrier;
    store->submit({barrier.task()});
    barrier.wait_until_reached();
    const auto queued = store->write_sync([](Tables&) {}, 5ms);
    EXPECT_EQ(queued.error().applied, Applied::kNo);
    EXPECT_EQ(queued.error().code, ErrorCode::kUnreachable);
    barrier.open();

    const auto slow = std::make_shared<Barrier>();
    const auto running =
        store->write_sync([slow](Tables& tables) { slow->task().work(tables); }, 20ms);
    slow->open();
    EXPECT_EQ(running.error().applied, Applied::kMaybe);
}

TEST_F(SqliteStoreTest, ClosingRunsWhatIsQueued) {
    {
        const auto store = database_.open();
        std::vector<Task> tasks;
        for (int i = 0; i < 2000; ++i)
            tasks.push_back(insert(std::to_string(i)));
        store->submit(std::move(tasks));
    }
    EXPECT_EQ(count_jobs(*database_.open()), 2000U);
}

TEST_F(SqliteStoreTest, AReadSeesOneSnapshotAndMayNotWrite) {
    const auto store = database_.open();
    write(*store, insert("a").work);
    read(*store, [&](Tables& tables) {
        EXPECT_TRUE(tables.job("a"));
        write(*store, insert("b").work);
        EXPECT_FALSE(tables.job("b"));
    });
    EXPECT_EQ(count_jobs(*store), 2U);
    const auto refused = store->read(insert("c").work);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
}

TEST_F(SqliteStoreTest, ManyThreadsReadAndWrite) {
    const auto store = database_.open();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 25; ++i) {
                write(*store, insert(std::to_string(t) + "-" + std::to_string(i)).work);
                read(*store, [](Tables& tables) { static_cast<void>(tables.job("0-0")); });
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(count_jobs(*store), 200U);
}

// ---- other connections

class ForeignConnection {
 public:
    explicit ForeignConnection(const std::string& path) { sqlite3_open(path.c_str(), &db_); }
    ForeignConnection(const ForeignConnection&) = delete;
    ForeignConnection& operator=(const ForeignConnection&) = delete;
    ~ForeignConnection() { sqlite3_close(db_); }
    int run(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); }

 private:
    sqlite3* db_ = nullptr;
};

TEST_F(SqliteStoreTest, AForeignLockIsWaitedForAndThenReported) {
    SqliteOptions options = database_.options();
    options.busy_deadline = 50ms;
    const auto store = SqliteStore::open(std::move(options)).value();
    ForeignConnection foreign(database_.path());
    ASSERT_EQ(foreign.run("BEGIN IMMEDIATE"), SQLITE_OK);
    const auto refused = store->write_sync(insert("a").work, 20s);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(refused.error().applied, Applied::kNo);
    EXPECT_TRUE(refused.error().retryable);
    EXPECT_EQ(refused.error().backend_code, "SQLITE_BUSY");
    ASSERT_EQ(foreign.run("COMMIT"), SQLITE_OK);
    write(*store, insert("a").work);
}

TEST_F(SqliteStoreTest, AForeignLockThatEndsInTimeIsNotNoticed) {
    const auto store = database_.open();
    ForeignConnection foreign(database_.path());
    ASSERT_EQ(foreign.run("BEGIN IMMEDIATE"), SQLITE_OK);
    Answers answers;
    store->submit({answers.watched(insert("a"), "a")});
    ASSERT_EQ(foreign.run("COMMIT"), SQLITE_OK);
    EXPECT_TRUE(answers.wait_for(1)[0].second.ok());
}

TEST_F(SqliteStoreTest, WaitingEndsWithACommitOfThisProcessOrOfAForeignConnection) {
    const auto store = database_.open();
    ForeignConnection foreign(database_.path());
    ASSERT_EQ(foreign.run("PRAGMA wal_autocheckpoint = 0; CREATE TABLE mine(x)"), SQLITE_OK);
    const auto waits_for = [&](const std::function<void()>& change) {
        // Waits may end without a reason, so they are repeated until they last.
        Millis took{};
        do {
            const auto since = base::steady_now();
            store->wait_for_change(300ms);
            took = std::chrono::duration_cast<Millis>(base::steady_now() - since);
        } while (took < 300ms);
        std::thread other(change);
        const auto since = base::steady_now();
        store->wait_for_change(30s);
        took = std::chrono::duration_cast<Millis>(base::steady_now() - since);
        other.join();
        return took;
    };
    EXPECT_LT(waits_for([&] { write(*store, insert("a").work); }), 10s);
    EXPECT_LT(waits_for([&] { foreign.run("INSERT INTO mine VALUES(1)"); }), 10s);
}

TEST_F(SqliteStoreTest, AChangeBetweenTwoWaitsEndsTheSecond) {
    const auto store = database_.open();
    store->wait_for_change(0ms);
    write(*store, insert("a").work);
    const auto since = base::steady_now();
    store->wait_for_change(60s);
    EXPECT_LT(base::steady_now() - since, 30s);
}

TEST_F(SqliteStoreTest, TheLogShrinksWhenAReaderThatHeldItEnds) {
    SqliteOptions options = database_.options();
    options.log_limit_bytes = 256 * 1024;
    options.synchronous = Synchronous::kNormal;
    std::mutex mutex;
    std::vector<std::string> warnings;
    options.warn = [&](std::string_view text) {
        const std::lock_guard guard(mutex);
        warnings.emplace_back(text);
    };
    const auto store = SqliteStore::open(std::move(options)).value();
    int written = 0;
    const auto write_much = [&](const std::function<bool()>& enough) {
        while (!enough()) {
            write(*store, [&](Tables& tables) {
                JobRow row = job(std::to_string(written++));
                row.job.payload = std::string(100'000, 'x');
                tables.insert_job(row);
            });
        }
    };
    ForeignConnection reader(database_.path());
    ASSERT_EQ(reader.run("BEGIN; SELECT count(*) FROM sekali_jobs"), SQLITE_OK);
    write_much([&] {
        const std::lock_guard guard(mutex);
        return !warnings.empty();
    });
    EXPECT_NE(warnings[0].find("reader"), std::string::npos);
    EXPECT_GE(store->stats().log_bytes, 1 << 20);
    const auto size = [&] { return std::filesystem::file_size(database_.path() + "-wal"); };
    EXPECT_GE(size(), 1U << 20);
    ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
    write_much([&] { return store->stats().log_bytes < 1 << 20; });
    write(*store, insert("last").work);
    EXPECT_LE(size(), 4U * 256 * 1024 + (1U << 18));
}

// ---- time

class SqliteTimeTest : public SqliteStoreTest {
 protected:
    std::unique_ptr<SqliteStore> open() {
        SqliteOptions options = database_.options();
        options.clock.boot_id = [this] { return boot_; };
        options.clock.boot_ms = [this] { return boot_ms_.load(); };
        options.clock.wall_ms = [this] { return wall_ms_.load(); };
        return SqliteStore::open(std::move(options)).value();
    }
    StoreTime now(SqliteStore& store) {
        StoreTime now{};
        read(store, [&](Tables& tables) { now = tables.now(); });
        return now;
    }

    std::string boot_ = "boot-1";
    std::atomic<std::int64_t> boot_ms_{5'000};
    std::atomic<std::int64_t> wall_ms_{1'700'000'000'000};
};

TEST_F(SqliteTimeTest, StartsAtTheWallClockAndFollowsTheBootClockOnly) {
    auto store = open();
    EXPECT_EQ(now(*store), StoreTime{1'700'000'000'000ms});
    boot_ms_ += 1'000;
    wall_ms_ -= 3'600'000;
    EXPECT_EQ(now(*store), StoreTime{1'700'000'001'000ms});
    store.reset();
    EXPECT_EQ(now(*open()), StoreTime{1'700'000'001'000ms}) << "the same for who comes later";
}

TEST_F(SqliteTimeTest, ANewBootLapsesEveryLeaseAndNeverGoesBack) {
    StoreTime last{};
    {
        const auto store = open();
        boot_ms_ += 60'000;
        write(*store, [&](Tables& tables) {
            last = tables.now();
            const StoreTime until = last + 1h;
            JobRow row = job("running");
            row.state = engine::JobState::kRunning;
            row.owner = "w";
            row.lease_until = until;
            tables.insert_job(row);
            JobRow delayed = job("delayed");
            delayed.state = engine::JobState::kScheduled;
            delayed.run_at = until;
            tables.insert_job(delayed);
            engine::RecordRow record;
            record.id = {"default", "k", "running"};
            record.lease_until = until;
            tables.put_record(record);
            tables.put_lock({"default", "l", "w", "t", "", 1, until, "next", until});
        });
    }
    boot_ = "boot-2";
    boot_ms_ = 1'000;
    wall_ms_ = 1'600'000'000'000;
    const auto store = open();
    EXPECT_GE(now(*store), last) << "although the wall clock was set back";
    EXPECT_LE(now(*store), last + 10s);
    read(*store, [&](Tables& tables) {
        EXPECT_EQ(tables.lapsed_jobs("default", {"k"}, 0, 9).size(), 1U);
        EXPECT_EQ(tables.stale_records("default", 9).size(), 1U);
        EXPECT_TRUE(tables.held_locks("default").empty());
        EXPECT_EQ(tables.lock("default", "l")->reserved_until, StoreTime{});
        EXPECT_EQ(tables.lock("default", "l")->fence, 1U);
        EXPECT_EQ(tables.job("delayed")->run_at, last + 1h) << "a delay is no lease";
    });
}

TEST_F(SqliteTimeTest, ARolledBackTransactionDoesNotLoseTheBound) {
    StoreTime last{};
    {
        const auto store = open();
        boot_ms_ += 60'000;
        EXPECT_FALSE(store->write_sync([](Tables&) { throw std::runtime_error("no"); }, 9s).ok());
        write(*store, [&](Tables& tables) { last = tables.now(); });
    }
    boot_ = "boot-2";
    wall_ms_ = 0;
    EXPECT_GE(now(*open()), last);
}

}  // namespace
}  // namespace sekali::sqlite
