#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/postgres/diagnosis.hpp"
#include "backends/postgres/postgres_store.hpp"
#include "engine/operations.hpp"
#include "postgres/test_server.hpp"
#include "sekali/transaction.hpp"
#include "unit/postgres/relay.hpp"

namespace sekali::postgres {
namespace {

using namespace std::chrono_literals;
using engine::Tables;

std::string server_folder() {
    const std::string url = test_server_url();
    return url.substr(url.find("host=") + 5);
}

class StoreTest : public ::testing::Test {
 protected:
    std::unique_ptr<PostgresStore> open(PostgresOptions options) {
        return PostgresStore::open(std::move(options)).value();
    }
    std::unique_ptr<PostgresStore> open() { return open(schema.options()); }
    PostgresOptions through(const Relay& relay) const {
        PostgresOptions options = parse_url("postgres://sekali@/postgres?host=" + relay.folder() +
                                            "&schema=" + schema.name());
        return options;
    }
    static Result<void> run(PostgresStore& store, std::function<void(Tables&)> work) {
        std::promise<Result<void>> done;
        std::vector<engine::Task> tasks;
        tasks.push_back({.work = std::move(work),
                         .done = [&](Result<void> result) { done.set_value(std::move(result)); },
                         .in_order = true});
        store.submit(std::move(tasks));
        return done.get_future().get();
    }
    static engine::EnqueueRequest request(const std::string& id, const std::string& lock = {}) {
        engine::EnqueueRequest request;
        request.job.id = request.job.key = id;
        request.job.kind = "pay";
        request.job.payload = "\"written with " + id + "\"";
        request.job.lock_key = lock;
        return request;
    }
    static Result<void> enqueue(PostgresStore& store, const std::string& id) {
        return run(store, [id](Tables& tables) { engine::enqueue(tables, request(id)); });
    }
    std::int64_t number(const std::string& query) const {
        const auto connection = Connection::open(parse_url(schema.url()));
        const Sql sql{"", in_test_schema(query), "ask"};
        const ResultPtr result = connection->run_one({&sql, {}});
        return Cursor(result.get(), 0).take<std::int64_t>();
    }
    std::string in_test_schema(std::string text) const {
        for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at))
            text.replace(at, 1, "\"" + schema.name() + "\".");
        return text;
    }

    TestSchema schema;
};

TEST_F(StoreTest, ASchemaThatIsNotThereIsSaidAndMigrateMakesItOnce) {
    PostgresOptions options = schema.options();
    options.migrate = false;
    const auto missing = PostgresStore::open(options);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    EXPECT_NE(missing.error().hint.find("migrate"), std::string::npos);
    std::vector<std::thread> many;
    for (int i = 0; i < 8; ++i)
        many.emplace_back([this] {
            const auto opened = PostgresStore::open(schema.options());
            EXPECT_TRUE(opened.ok()) << opened.error().message;
        });
    for (std::thread& one : many)
        one.join();
    EXPECT_TRUE(PostgresStore::open(options).ok());
}

TEST_F(StoreTest, ANewerSchemaIsLeftAlone) {
    open();
    schema.execute(in_test_schema("UPDATE @meta SET version = 99"));
    const auto opened = PostgresStore::open(schema.options());
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::kRefused);
}

TEST_F(StoreTest, AServerThatIsAwayIsUnreachable) {
    PostgresOptions options = parse_url("postgres://sekali@/postgres?host=/nowhere");
    const auto opened = PostgresStore::open(options);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(opened.error().applied, Applied::kNo);
}

TEST_F(StoreTest, ACommitWhoseAnswerIsLostIsFoundOutAndNotRepeated) {
    open();
    Relay relay(server_folder());
    const auto store = open(through(relay));
    ASSERT_TRUE(enqueue(*store, "j1").ok());
    relay.break_at("written with j2", Relay::Break::kAnswer);
    const auto stored = enqueue(*store, "j2");
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(relay.breaks(), 1);
    EXPECT_EQ(number("SELECT count(*) FROM @jobs"), 2);
    EXPECT_EQ(number("SELECT max(seq) FROM @jobs"), 2) << "it was run once";
}

TEST_F(StoreTest, ALostAnswerTurnsNoFailureOfANeighbourIntoASuccess) {
    open();
    Relay relay(server_folder());
    const auto store = open(through(relay));
    ASSERT_TRUE(enqueue(*store, "j1").ok());
    relay.break_at("written with j2", Relay::Break::kAnswer);
    std::vector<std::promise<Result<void>>> done(2);
    std::vector<engine::Task> tasks;
    for (std::promise<Result<void>>& one : done) {
        tasks.push_back({.work =
                             [fails = &one == &done[0]](Tables& tables) {
                                 static_cast<void>(tables.job("j1"));
                                 if (fails) throw std::runtime_error("no");
                                 engine::enqueue(tables, request("j2"));
                             },
                         .done = [&one](Result<void> result) { one.set_value(std::move(result)); },
                         .in_order = true});
    }
    store->submit(std::move(tasks));
    EXPECT_FALSE(done[0].get_future().get().ok());
    EXPECT_TRUE(done[1].get_future().get().ok());
    EXPECT_EQ(relay.breaks(), 1);
}

TEST_F(StoreTest, ACommitThatNeverArrivedIsRunAgain) {
    open();
    Relay relay(server_folder());
    const auto store = open(through(relay));
    ASSERT_TRUE(enqueue(*store, "j1").ok());
    relay.break_at("written with j2", Relay::Break::kRequest);
    const auto stored = enqueue(*store, "j2");
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(relay.breaks(), 1);
    EXPECT_EQ(number("SELECT count(*) FROM @jobs"), 2);
}

TEST_F(StoreTest, WithoutAServerACommitInDoubtIsSaidToBeSo) {
    open();
    auto relay = std::make_unique<Relay>(server_folder());
    PostgresOptions options = through(*relay);
    options.patience = 300ms;
    const auto store = open(options);
    ASSERT_TRUE(enqueue(*store, "j1").ok());
    relay->break_at("written with j2", Relay::Break::kAnswer);
    // Whoever listens no more cannot be asked either.
    std::filesystem::remove(relay->folder() + "/.s.PGSQL.5432");
    const auto stored = enqueue(*store, "j2");
    ASSERT_FALSE(stored.ok());
    EXPECT_EQ(stored.error().applied, Applied::kMaybe);
    EXPECT_TRUE(stored.error().retryable);
}

TEST_F(StoreTest, AReadOnlyWindowIsWaitedOut) {
    open();
    schema.execute("CREATE ROLE r" + schema.name() + " SUPERUSER LOGIN; ALTER ROLE r" +
                   schema.name() + " SET default_transaction_read_only = on");
    PostgresOptions options =
        parse_url("postgres://r" + schema.name() + "@/postgres?host=" + server_folder() +
                  "&schema=" + schema.name());
    options.patience = 200ms;
    const auto refused = enqueue(*open(options), "j2");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().backend_code, "25006");
    EXPECT_EQ(refused.error().applied, Applied::kNo);
    EXPECT_TRUE(refused.error().retryable);
    options.patience = 20s;
    const auto patient = open(options);
    auto later = std::async(std::launch::async, [&] { return enqueue(*patient, "j2"); });
    EXPECT_EQ(later.wait_for(300ms), std::future_status::timeout);
    schema.execute("ALTER ROLE r" + schema.name() +
                   " RESET default_transaction_read_only;"
                   " DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE usename = 'r" +
                   schema.name() + "'; END $$");
    EXPECT_TRUE(later.get().ok());
    schema.execute("DROP ROLE r" + schema.name());
}

TEST_F(StoreTest, OtherDefaultsOfIsolationChangeNothing) {
    PostgresOptions options = schema.options();
    options.connection += "&options=-c%20default_transaction_isolation%3Dserializable";
    const auto store = open(options);
    ASSERT_TRUE(enqueue(*store, "j1").ok());
    EXPECT_TRUE(store->read([](Tables& tables) { EXPECT_TRUE(tables.job("j1")); }).ok());
}

TEST_F(StoreTest, ATaskThatFailsHurtsNoNeighbour) {
    const auto store = open();
    std::vector<std::promise<Result<void>>> done(3);
    std::vector<engine::Task> tasks;
    for (int i = 0; i < 3; ++i) {
        tasks.push_back({.work =
                             [i](Tables& tables) {
                                 engine::enqueue(tables, request("j" + std::to_string(i)));
                                 if (i == 1) {
                                     tables.put_queue({"default", "q", true});
                                     throw std::runtime_error("no");
                                 }
                             },
                         .done = [&done, i](Result<void> result) { done[i].set_value(result); }});
    }
    store->submit(std::move(tasks));
    EXPECT_TRUE(done[0].get_future().get().ok());
    EXPECT_FALSE(done[1].get_future().get().ok());
    EXPECT_TRUE(done[2].get_future().get().ok());
    EXPECT_EQ(number("SELECT count(*) FROM @jobs"), 2);
    EXPECT_EQ(number("SELECT count(*) FROM @queues"), 0);
}

/// How many notifications have come, waiting up to so long for one more.
int notifications(Connection& listener, std::chrono::milliseconds patience) {
    int count = 0;
    while (wait_for_socket(PQsocket(listener.handle()), false,
                           std::chrono::steady_clock::now() + patience)) {
        PQconsumeInput(listener.handle());
        while (PGnotify* notification = PQnotifies(listener.handle())) {
            ++count;
            PQfreemem(notification);
        }
    }
    return count;
}

TEST_F(StoreTest, ManyCommitsSendFewNotificationsAndTheLastOneIsTold) {
    const auto store = open();
    const auto listener = Connection::open(schema.options());
    listener->run_script("LISTEN \"sekali_" + schema.name() + "\"", "listen");
    const auto begin = std::chrono::steady_clock::now();
    constexpr int kCommits = 300;
    for (int i = 0; i < kCommits; ++i)
        ASSERT_TRUE(enqueue(*store, "j" + std::to_string(i)).ok());
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    const int came = notifications(*listener, 500ms);
    EXPECT_GE(came, 1);
    EXPECT_LE(came, took / 20ms + 2) << "in " << took.count() << " ms";
    EXPECT_LT(came, kCommits);
    // A single commit is told, too; one that changes nothing is not.
    ASSERT_TRUE(enqueue(*store, "last").ok());
    EXPECT_EQ(notifications(*listener, 500ms), 1);
    ASSERT_TRUE(run(*store, [](Tables& tables) { EXPECT_TRUE(tables.job("last")); }).ok());
    EXPECT_EQ(notifications(*listener, 200ms), 0);
}

TEST_F(StoreTest, ACommitThatFailsNotifiesNobody) {
    const auto store = open();
    const auto listener = Connection::open(schema.options());
    listener->run_script("LISTEN \"sekali_" + schema.name() + "\"", "listen");
    const auto failed = run(*store, [](Tables& tables) {
        engine::enqueue(tables, request("j1"));
        throw std::runtime_error("no");
    });
    EXPECT_FALSE(failed.ok());
    EXPECT_EQ(notifications(*listener, 200ms), 0);
}

TEST_F(StoreTest, AClaimLocksNoMoreThanItsLimit) {
    const auto store = open();
    ASSERT_TRUE(run(*store, [](Tables& tables) {
                    for (int i = 0; i < 500; ++i)
                        engine::enqueue(tables, request("j" + std::to_string(i)));
                }).ok());
    const engine::ClaimSpec spec{
        .ns = "default", .queues = {"default", "other"}, .kinds = {"pay", "mail"}, .limit = 7};
    ASSERT_TRUE(run(*store, [&](Tables& tables) {
                    EXPECT_EQ(tables.claimable(spec).size(), 7U);
                    EXPECT_EQ(number("SELECT 500 - count(*) FROM (SELECT 1 FROM @jobs"
                                     " FOR UPDATE SKIP LOCKED) AS free"),
                              7);
                }).ok());
}

TEST_F(StoreTest, UsersStatementsAreTyped) {
    const auto store = open();
    schema.execute(in_test_schema(
        "CREATE TABLE @own(id uuid, cents integer, rate numeric, at timestamptz, raw bytea,"
        " ok boolean, note text)"));
    const std::string table = "\"" + schema.name() + "\".own";
    ASSERT_TRUE(run(*store, [&](Tables& tables) {
                    const auto done = tables.run_effects([&](Transaction& tx) -> Result<void> {
                        EXPECT_EQ(tx.execute("insert into " + table +
                                                 " values ($1, $2, $3, $4, $5, $6, $7)",
                                             "01890000-0000-7000-8000-000000000001", 250, 0.25,
                                             "2026-01-02T03:04:05Z", Blob{std::string("\0\xff", 2)},
                                             true, nullptr),
                                  1);
                        for (auto [id, cents, sum, raw, ok, note] :
                             tx.query<std::string, std::int64_t, std::int64_t, Blob, bool,
                                      std::optional<std::string>>(
                                 "select id, cents, (select sum(cents) from " + table +
                                     "), raw, ok, note from " + table + " where cents = $1",
                                 250)) {
                            EXPECT_EQ(id, "01890000-0000-7000-8000-000000000001");
                            EXPECT_EQ(cents, 250);
                            EXPECT_EQ(sum, 250);
                            EXPECT_EQ(raw.bytes, std::string("\0\xff", 2));
                            EXPECT_TRUE(ok);
                            EXPECT_FALSE(note);
                        }
                        EXPECT_THROW(tx.execute("commit"), Failure);
                        return {};
                    });
                    EXPECT_TRUE(done.ok()) << done.error().message;
                }).ok());
    EXPECT_EQ(number("SELECT count(*) FROM @own"), 1);
}

TEST_F(StoreTest, TheSqlFunctionEnqueuesAsTheLibraryDoes) {
    const auto store = open();
    schema.execute(in_test_schema(
        "SELECT @enqueue('pay', '{}', id => 'j1', key => 'k', lock => 'l', \"unique\" => 'u')"));
    ASSERT_TRUE(run(*store, [](Tables& tables) {
                    engine::EnqueueRequest like = request("j2", "l");
                    like.job.key = "k2";
                    like.job.payload = "{}";
                    like.job.unique_key = "u2";
                    like.job.fingerprint =
                        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
                    engine::enqueue(tables, like);
                }).ok());
    EXPECT_EQ(number("SELECT count(DISTINCT (j.priority, j.named_end, j.state, j.waiting_for,"
                     " j.slot_held, j.queue, j.lock_key, j.fingerprint, j.fingerprint_rule,"
                     " j.owner, j.lease_until, j.max_attempts, j.payload, j.result, j.reason,"
                     " j.error, j.requested_by, j.unique_until, j.ns, j.kind)) FROM @jobs AS j"),
              1);
    EXPECT_EQ(number("SELECT count(*) FROM @enqueue('pay', '{}', \"unique\" => 'u') AS e"
                     " WHERE e.status = 'duplicate' AND e.winner = 'j1'"),
              1);
    EXPECT_EQ(number("SELECT count(*) FROM @enqueue('pay', '{}', id => 'j1', key => 'k') AS e"
                     " WHERE e.status = 'enqueued'"),
              1);
    EXPECT_EQ(number("SELECT count(*) FROM @jobs"), 2);
    EXPECT_THROW(schema.execute(in_test_schema("SELECT @enqueue('bad kind')")), Failure);
    EXPECT_THROW(schema.execute(in_test_schema("SELECT @enqueue('pay', '{')")), Failure);
}

TEST_F(StoreTest, RunsThatWereCutOffDoNotCountForTheTimeout) {
    const auto store = open();
    ASSERT_TRUE(run(*store, [](Tables& tables) {
                    engine::AttemptRow row;
                    row.ns = "default";
                    row.kind = "pay";
                    for (const auto& [outcome, took] :
                         {std::pair{"succeeded", 100ms}, std::pair{"failed", 200ms},
                          std::pair{"lapsed", 30'000ms}, std::pair{"crashed", 40'000ms}}) {
                        row.key = row.job_id = row.outcome = outcome;
                        row.finished_at = row.started_at + took;
                        tables.add_attempt(row);
                    }
                }).ok());
    const engine::RunHistory history = diagnose(schema.options(), "default").value().history;
    ASSERT_EQ(history.times.size(), 1);
    EXPECT_EQ(history.times.front().runs, 2);
    EXPECT_EQ(history.times.front().p99, 200ms);
    EXPECT_EQ(history.times.front().longest, 200ms);
    EXPECT_EQ(history.runs, 4);
    EXPECT_EQ(history.lapses, 1);
}

}  // namespace
}  // namespace sekali::postgres
