#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <string>

#include "backends/postgres/postgres_store.hpp"
#include "postgres/test_server.hpp"
#include "sekali/client.hpp"
#include "sekali/postgres.hpp"

namespace {

using sekali::Enqueued;
using sekali::ErrorCode;
using sekali::RawJob;
using sekali::Transaction;
using sekali::postgres::PostgresStore;
using sekali::postgres::TestSchema;

struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
};

/// A program that has a database of its own and lets sekali's jobs into it.
class PostgresWithin : public testing::Test {
 protected:
    PostgresWithin()
        : store(PostgresStore::open(schema.options()).value()),
          client(sekali::Client::open(schema.url()).value()),
          own(PQconnectdb(sekali::postgres::test_server_url().c_str())) {
        run("create table " + table() + "(id text primary key)");
    }
    [[nodiscard]] std::string table() const { return "\"" + schema.name() + "\".orders"; }
    [[nodiscard]] Transaction within() const {
        return sekali::postgres::within(own.get(), schema.name());
    }
    void run(const std::string& sql) const {
        PGresult* result = PQexec(own.get(), sql.c_str());
        EXPECT_EQ(PQresultStatus(result), PGRES_COMMAND_OK) << PQresultErrorMessage(result);
        PQclear(result);
    }

    TestSchema schema;
    std::unique_ptr<PostgresStore> store;
    sekali::Client client;
    std::unique_ptr<PGconn, Finish> own;
};

TEST_F(PostgresWithin, TheJobExistsOnceTheUserHasCommitted) {
    run("begin");
    run("insert into " + table() + " values ('1001')");
    const auto job = client.enqueue(within(), RawJob{"note", "[1]"}).value();
    EXPECT_EQ(client.show(job.id).error().code, ErrorCode::kNotFound);
    run("commit");
    EXPECT_EQ(client.show(job.id).value().payload, "[1]");
    EXPECT_EQ(client.show(job.id).value().state, "ready");
}

TEST_F(PostgresWithin, NothingIsLeftOfARollback) {
    run("begin");
    const auto job = client.enqueue(within(), RawJob{"note", "1"}, {.unique = "u"}).value();
    run("rollback");
    EXPECT_EQ(client.show(job.id).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(client.enqueue(RawJob{"note", "1"}, {.unique = "u"}).value().status,
              Enqueued::Status::kEnqueued);
}

TEST_F(PostgresWithin, SeveralJobsAndStatementsShareTheTransaction) {
    run("begin");
    auto tx = within();
    const auto first = client.enqueue(tx, RawJob{"note", "1"}, {.unique = "u"}).value();
    const auto second = client.enqueue(tx, RawJob{"note", "2"}, {.unique = "u"}).value();
    EXPECT_EQ(second.status, Enqueued::Status::kDuplicate);
    EXPECT_EQ(second.winner, first.id);
    EXPECT_EQ(tx.execute("insert into " + table() + " values ($1)", "7"), 1);
    std::string seen;
    for (auto [id] : tx.query<std::string>("select id from " + table()))
        seen += id;
    EXPECT_EQ(seen, "7");
    run("commit");
    EXPECT_TRUE(client.show(first.id).ok());
}

TEST_F(PostgresWithin, WithoutATransactionItIsRefused) {
    const auto refused = client.enqueue(within(), RawJob{"note", "1"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_EQ(refused.error().message, "no transaction is open on this connection");
}

TEST_F(PostgresWithin, AnOpenTransactionKeepsNobodyFromTheJobThatWon) {
    const auto winner = client.enqueue(RawJob{"note", "1"}, {.key = "k", .unique = "u"}).value();
    run("begin");
    const auto refused = client.enqueue(within(), RawJob{"note", "1"}, {.unique = "u"}).value();
    EXPECT_EQ(refused.winner, winner.id);
    EXPECT_TRUE(client.cancel(winner.id, "while the other is open").ok());
    run("commit");
    EXPECT_EQ(client.show(winner.id).value().state, "cancelled");
}

TEST_F(PostgresWithin, AReplacementTakesThePlaceOfTheJobThatWaits) {
    const auto before = client.enqueue(RawJob{"note", "1"}, {.unique = "u"}).value();
    run("begin");
    const auto after = client
                           .enqueue(within(), RawJob{"note", "2"},
                                    {.unique = "u", .on_duplicate = sekali::OnDuplicate::kReplace})
                           .value();
    EXPECT_EQ(after.status, Enqueued::Status::kReplaced);
    EXPECT_EQ(client.show(before.id).value().state, "ready");
    run("commit");
    EXPECT_EQ(client.show(before.id).value().state, "cancelled");
    EXPECT_EQ(client.show(after.id).value().state, "ready");
}

TEST_F(PostgresWithin, TheClientRunsTransactionsOfItsOwn) {
    const auto enqueue = [&](bool fail) {
        return client.transact([&](Transaction& tx) {
            tx.execute("insert into " + table() + " values ($1)", fail ? "bad" : "good");
            client.enqueue(tx, RawJob{"note", "1"}, {.key = fail ? "bad" : "good"}).value();
            if (fail) throw std::runtime_error("no");
        });
    };
    EXPECT_THROW(static_cast<void>(enqueue(true)), std::runtime_error);
    EXPECT_TRUE(enqueue(false).ok());
    std::string seen;
    client
        .transact([&](Transaction& tx) {
            seen.clear();
            for (auto [id] : tx.query<std::string>("select id from " + table()))
                seen += id;
        })
        .value();
    EXPECT_EQ(seen, "good");
}

}  // namespace
