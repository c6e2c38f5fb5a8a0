#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "backends/sqlite/gate.hpp"
#include "base/clock.hpp"
#include "unit/sqlite/child.hpp"
#include "unit/sqlite/temp_database.hpp"

// What processes that share a database do to each other.
namespace sekali::sqlite {
namespace {

using engine::Millis;
using engine::OwnerFate;
using engine::Tables;
using namespace std::chrono_literals;

class SqliteProcessTest : public testing::Test {
 protected:
    /// Another process on the same database.
    std::unique_ptr<Child> probe(const std::string& command, std::vector<std::string> more = {}) {
        std::vector<std::string> arguments{SEKALI_SQLITE_PROBE, command, database_.path()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return std::make_unique<Child>(std::move(arguments));
    }
    static std::string shell(const std::string& path, const std::string& sql) {
        Child child({"sqlite3", path, sql});
        std::string output;
        for (const std::string& line : child.read_lines())
            output += line + "\n";
        EXPECT_EQ(child.wait(), 0) << sql;
        return output;
    }
    OwnerFate fate(const std::string& worker) {
        OwnerFate fate{};
        read(*store(), [&](Tables& tables) { fate = tables.owner_fate(worker); });
        return fate;
    }
    std::unique_ptr<SqliteStore>& store() {
        if (!store_) store_ = database_.open();
        return store_;
    }

    TempDatabase database_;
    std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteProcessTest, AWorkerIsAliveUntilItsProcessEnds) {
    EXPECT_EQ(fate("w"), OwnerFate::kUnknown);
    auto worker = probe("hold", {"w"});
    ASSERT_EQ(worker->read_line(), "held");
    EXPECT_EQ(fate("w"), OwnerFate::kAlive);
    worker->kill(SIGSTOP);
    EXPECT_EQ(fate("w"), OwnerFate::kAlive) << "a paused process lives";
    worker->kill(SIGKILL);
    EXPECT_EQ(worker->wait(), -SIGKILL);
    EXPECT_EQ(fate("w"), OwnerFate::kDead);
    write(*store(), [](Tables& tables) { tables.erase_worker("w"); });
    EXPECT_EQ(fate("w"), OwnerFate::kDead) << "records may still name it as their owner";
}

TEST_F(SqliteProcessTest, ThisProcessIsSeenToBeAliveByItself) {
    auto handle = store()->hold_liveness("me").value();
    EXPECT_EQ(fate("me"), OwnerFate::kAlive);
    EXPECT_EQ(::fcntl(handle.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    handle = LivenessHandle{};
    EXPECT_EQ(fate("me"), OwnerFate::kDead);
}

TEST_F(SqliteProcessTest, AGuardOutlivesItsWorkerVisibly) {
    auto worker = probe("hold-with-guard", {"w"});
    const auto guard = worker->read_line();
    ASSERT_TRUE(guard);
    worker->kill(SIGKILL);
    EXPECT_EQ(worker->wait(), -SIGKILL);
    EXPECT_EQ(fate("w"), OwnerFate::kAlive) << "its guard still ends its children";
    worker->close_input();
    // The guard's end shows as the end of the output that it shares.
    EXPECT_TRUE(worker->read_lines().empty());
    EXPECT_EQ(fate("w"), OwnerFate::kDead);
}

TEST_F(SqliteProcessTest, AReplacedLivenessFileProvesNothing) {
    {
        auto worker = probe("hold", {"w"});
        ASSERT_EQ(worker->read_line(), "held");
        store_.reset();
        std::filesystem::remove(database_.path() + "-alive");
        EXPECT_EQ(fate("w"), OwnerFate::kUnknown) << "the worker lives";
    }
    EXPECT_EQ(fate("w"), OwnerFate::kUnknown);
}

TEST_F(SqliteProcessTest, EightProcessesMigrateAtOnce) {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 8; ++i)
        children.push_back(probe("open"));
    for (auto& child : children)
        EXPECT_EQ(child->wait(), 0);
    EXPECT_EQ(shell(database_.path(), "SELECT value FROM sekali_meta WHERE name = 'schema'"),
              "1\n");
    EXPECT_EQ(shell(database_.path(), "PRAGMA integrity_check"), "ok\n");
}

TEST_F(SqliteProcessTest, FourBusyProcessesGetTheirTurns) {
    std::vector<std::unique_ptr<Child>> crowd;
    for (int i = 0; i < 4; ++i)
        crowd.push_back(probe("crowd", {"2000"}));
    for (auto& child : crowd)
        ASSERT_EQ(child->read_line(), "ready");
    for (auto& child : crowd)
        child->write_line("go");
    std::vector<std::size_t> commits;
    for (auto& child : crowd) {
        const auto line = child->read_line();
        ASSERT_TRUE(line);
        commits.push_back(std::stoul(*line));
        EXPECT_EQ(child->wait(), 0);
    }
    const auto [least, most] = std::minmax_element(commits.begin(), commits.end());
    EXPECT_GT(*least, 0U);
    EXPECT_LE(*most, 3 * *least) << *least << " to " << *most << " commits";
}

TEST_F(SqliteProcessTest, AKeptGateIsReportedAndNothingIsApplied) {
    SqliteOptions options = database_.options();
    options.busy_deadline = 30ms;
    store_ = SqliteStore::open(std::move(options)).value();
    Gate gate = Gate::open(database_.path() + "-gate").value();
    ASSERT_TRUE(gate.enter(base::steady_now() + 30s).value());
    const auto refused = store_->write_sync([](Tables&) {}, 30s);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(refused.error().applied, Applied::kNo);
    EXPECT_TRUE(refused.error().retryable);
    gate.leave();
    write(*store_, [](Tables&) {});
}

TEST_F(SqliteProcessTest, AGateEndsWithItsProcess) {
    store();
    auto crowd = probe("crowd", {"60000"});
    ASSERT_EQ(crowd->read_line(), "ready");
    crowd->write_line("go");
    write(*store(), [](Tables&) {});
    crowd->kill(SIGKILL);
    EXPECT_EQ(crowd->wait(), -SIGKILL);
    write(*store(), [](Tables&) {});
}

TEST_F(SqliteProcessTest, AnotherProcessWakesAWaitingOne) {
    store();
    auto watcher = probe("watch", {"2"});
    ASSERT_EQ(watcher->read_line(), "watching");
    EXPECT_EQ(probe("enqueue", {"1"})->wait(), 0);
    ASSERT_TRUE(watcher->read_line());
    // A foreign connection knows nothing of our files.
    const std::string copy_a_job =
        "PRAGMA wal_autocheckpoint = 0;"
        "CREATE TEMP TABLE copy AS SELECT * FROM sekali_jobs LIMIT 1;"
        "UPDATE copy SET seq = 1000, id = 'foreign'; INSERT INTO sekali_jobs SELECT * FROM copy";
    shell(database_.path(), copy_a_job);
    ASSERT_TRUE(watcher->read_line());
    EXPECT_EQ(watcher->wait(), 0);
}

/// Prints what a wake-up takes here; how long it may take is the benchmark's to say.
class SqliteWakeUp : public SqliteProcessTest {
 protected:
    static constexpr int kWakeUps = 50;

    /// `commit` writes a job and returns when that was durable, by the steady clock in ns.
    void measure(const std::string& name, int jobs_before,
                 const std::function<std::int64_t()>& commit) {
        store();
        auto watcher = probe("watch", {std::to_string(jobs_before + kWakeUps)});
        ASSERT_EQ(watcher->read_line(), "watching");
        std::vector<std::int64_t> took_us;
        for (int i = 0; i < kWakeUps; ++i) {
            const std::int64_t committed = commit();
            const auto awake = watcher->read_line();
            ASSERT_TRUE(awake);
            took_us.push_back((std::stoll(*awake) - committed) / 1000);
        }
        EXPECT_EQ(watcher->wait(), 0);
        std::sort(took_us.begin(), took_us.end());
        std::cout << "wake-up after a commit of " << name << ": p50 " << took_us[kWakeUps / 2]
                  << " us, p98 " << took_us[kWakeUps - 2] << " us, most " << took_us.back()
                  << " us\n";
    }
};

TEST_F(SqliteWakeUp, AfterACommitOfAnotherProcess) {
    auto producer = probe("enqueue-on-demand");
    ASSERT_EQ(producer->read_line(), "ready");
    measure("another process", 0, [&] {
        producer->write_line("one");
        return std::stoll(producer->read_line().value_or("0"));
    });
}

TEST_F(SqliteWakeUp, AfterACommitOfAForeignConnection) {
    store();
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(database_.path().c_str(), &db), SQLITE_OK);
    const auto run = [&](const char* sql) {
        EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db);
    };
    write(*store(), [](Tables& tables) {
        engine::JobRow row;
        row.job.id = row.job.key = "0";
        row.job.kind = "foreign";
        tables.insert_job(row);
    });
    run("PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 10000;"
        "CREATE TEMP TABLE copy AS SELECT * FROM sekali_jobs");
    measure("a foreign connection", 1, [&] {
        run("UPDATE copy SET seq = seq + 1, id = seq; INSERT INTO sekali_jobs SELECT * FROM copy");
        return std::int64_t{base::steady_now().time_since_epoch().count()};
    });
    sqlite3_close(db);
}

TEST_F(SqliteProcessTest, AnIdleProcessUsesNextToNoProcessorTime) {
    store();
    auto idle = probe("idle", {"3"});
    const auto used_ms = idle->read_line();
    ASSERT_TRUE(used_ms);
    std::cout << "idle for 3 s: " << *used_ms << " ms of processor time\n";
}

TEST_F(SqliteProcessTest, KillsDuringCommitsLoseNothingThatWasAcknowledged) {
    store();
    std::set<std::string> acknowledged;
    for (int round = 0; round < 12; ++round) {
        auto first = probe("enqueue", {"1000000"});
        auto second = probe("enqueue", {"1000000"});
        for (int i = 0; i < 5 * round + 1; ++i) {
            const auto line = first->read_line();
            ASSERT_TRUE(line);
            acknowledged.insert(*line);
        }
        for (auto* child : {first.get(), second.get()}) {
            child->kill(SIGKILL);
            for (const std::string& line : child->read_lines())
                acknowledged.insert(line);
            EXPECT_EQ(child->wait(), -SIGKILL);
        }
    }
    std::set<std::string> stored;
    read(*store(), [&](Tables& tables) {
        engine::JobFilter filter;
        filter.ns = "default";
        filter.limit = 1'000'000;
        for (const engine::JobRow& row : tables.list_jobs(filter).items)
            stored.insert(row.job.id);
    });
    EXPECT_TRUE(
        std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()));
    // An answer that was on its way when its process died is the only difference.
    EXPECT_LE(stored.size(), acknowledged.size() + 24);
    EXPECT_EQ(shell(database_.path(), "PRAGMA integrity_check"), "ok\n");
}

TEST_F(SqliteProcessTest, ThePlainShellReadsTheViewsWhileJobsAreWritten) {
    store();
    auto writer = probe("enqueue", {"1000000"});
    const auto id = writer->read_line();
    ASSERT_TRUE(id);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(shell(database_.path(),
                        "SELECT namespace, kind, queue, state, key = id, attempts "
                        "FROM sekali_v_jobs WHERE id = '" +
                            *id + "'"),
                  "default|probe|default|ready|1|0\n");
        EXPECT_NE(shell(database_.path(), "SELECT count(*) FROM sekali_v_jobs"), "0\n");
        for (const char* view : {"attempts", "events", "locks"}) {
            EXPECT_EQ(shell(database_.path(), "SELECT count(*) FROM sekali_v_" + std::string(view)),
                      "0\n");
        }
        ASSERT_TRUE(writer->read_line());
    }
    writer->kill(SIGKILL);
}

}  // namespace
}  // namespace sekali::sqlite
