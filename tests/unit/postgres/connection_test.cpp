#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/postgres_store.hpp"
#include "backends/postgres/sql.hpp"
#include "postgres/test_server.hpp"
#include "sekali/client.hpp"
#include "sekali/postgres.hpp"

namespace sekali::postgres {
namespace {

/// A handler's effects on the connection itself.
class RawConnection : public testing::Test {
 protected:
    RawConnection() {
        schema_.execute(
            in_test_schema("CREATE TABLE @own(key text, UNIQUE(key) DEFERRABLE"
                           " INITIALLY DEFERRED)"));
    }
    [[nodiscard]] std::string in_test_schema(const std::string& sql) const {
        return in_schema(sql, schema_.name());
    }
    [[nodiscard]] std::int64_t rows() const {
        const auto connection = Connection::open(parse_url(schema_.url()));
        const Sql count{"", in_test_schema("SELECT count(*) FROM @own"), "count"};
        return Cursor(connection->run_one({&count, {}}).get(), 0).take<std::int64_t>();
    }
    ExecStatusType run(PGconn* connection, const std::string& sql) const {
        PGresult* result = PQexec(connection, in_test_schema(sql).c_str());
        const ExecStatusType status = PQresultStatus(result);
        PQclear(result);
        return status;
    }
    /// What a commit with these effects answers.
    Result<void> commit(const std::function<void(PGconn*)>& effects) {
        return client_.transact(
            [&](Transaction& transaction) { effects(connection_of(transaction)); });
    }
    void expect_refused(const std::function<void(PGconn*)>& effects, const std::string& why) {
        const auto refused = commit(effects);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
        EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
        // Whoever comes next finds everything in order.
        const auto before = rows();
        EXPECT_TRUE(
            commit([&](PGconn* connection) {
                EXPECT_EQ(run(connection, "INSERT INTO @own SELECT 'next-' || count(*) FROM @own"),
                          PGRES_COMMAND_OK);
            }).ok());
        EXPECT_EQ(rows(), before + 1);
    }

    const TestSchema schema_;
    const std::unique_ptr<PostgresStore> store_ = PostgresStore::open(schema_.options()).value();
    Client client_ = Client::open(schema_.url()).value();
};

TEST_F(RawConnection, WritesWithTheRest) {
    const auto both = client_.transact([&](Transaction& transaction) {
        transaction.execute(in_test_schema("INSERT INTO @own VALUES ($1)"), "a");
        PGconn* connection = connection_of(transaction);
        EXPECT_EQ(PQpipelineStatus(connection), PQ_PIPELINE_OFF);
        EXPECT_EQ(PQtransactionStatus(connection), PQTRANS_INTRANS);
        EXPECT_EQ(run(connection, "INSERT INTO @own VALUES ('b')"), PGRES_COMMAND_OK);
        EXPECT_EQ(run(connection,
                      "SAVEPOINT mine; INSERT INTO @own VALUES ('c');"
                      "ROLLBACK TO mine; RELEASE mine"),
                  PGRES_COMMAND_OK);
        client_.enqueue(transaction, RawJob{"note", "1"}, {.key = "k"}).value();
    });
    EXPECT_TRUE(both.ok()) << both.error().message;
    EXPECT_EQ(rows(), 2);
}

TEST_F(RawConnection, WhatThrowsUndoesAll) {
    EXPECT_THROW(static_cast<void>(commit([&](PGconn* connection) {
                     run(connection, "INSERT INTO @own VALUES ('a')");
                     throw std::runtime_error("no");
                 })),
                 std::runtime_error);
    EXPECT_EQ(rows(), 0);
}

TEST_F(RawConnection, ACommitOfTheUsersIsFound) {
    expect_refused([&](PGconn* connection) { run(connection, "COMMIT"); }, "has ended it");
    expect_refused(
        [&](PGconn* connection) {
            run(connection, "INSERT INTO @own VALUES ('gone')");
            run(connection, "ROLLBACK");
        },
        "has ended it");
    expect_refused(
        [&](PGconn* connection) {
            run(connection, "COMMIT");
            run(connection, "BEGIN");
        },
        "has ended it");
}

TEST_F(RawConnection, WhatIsLeftUnfinishedIsFound) {
    expect_refused(
        [&](PGconn* connection) {
            EXPECT_EQ(PQsendQuery(connection, "SELECT generate_series(1, 10000)"), 1);
        },
        "unfinished");
    expect_refused(
        [&](PGconn* connection) {
            EXPECT_EQ(run(connection, "COPY @own FROM STDIN"), PGRES_COPY_IN);
        },
        "unfinished");
    expect_refused(
        [&](PGconn* connection) {
            EXPECT_EQ(run(connection, "COPY @own TO STDOUT"), PGRES_COPY_OUT);
        },
        "unfinished");
    expect_refused(
        [&](PGconn* connection) {
            PQenterPipelineMode(connection);
            PQsendQueryParams(connection, "SELECT 1", 0, nullptr, nullptr, nullptr, nullptr, 0);
        },
        "unfinished");
    expect_refused(
        [&](PGconn* connection) { EXPECT_EQ(run(connection, "SELECT 1 / 0"), PGRES_FATAL_ERROR); },
        "had failed");
}

TEST_F(RawConnection, NeighboursDoNotShareItsTransaction) {
    std::atomic<int> ok{0};
    std::vector<std::jthread> many;
    for (int i = 0; i < 8; ++i) {
        many.emplace_back([&, i] {
            for (int n = 0; n < 20; ++n) {
                const std::string key = std::to_string(i) + "-" + std::to_string(n);
                const auto done =
                    i == 0 ? commit([&](PGconn* connection) { run(connection, "ROLLBACK"); })
                           : client_.transact([&](Transaction& transaction) {
                                 transaction.execute(in_test_schema("INSERT INTO @own VALUES ($1)"),
                                                     key);
                             });
                if (done.ok()) ++ok;
            }
        });
    }
    many.clear();
    EXPECT_EQ(ok, 7 * 20);
    EXPECT_EQ(rows(), 7 * 20);
}

TEST_F(RawConnection, OtherStoresHaveNone) {
    auto memory = Client::open("memory:").value();
    const auto refused = [&] {
        static_cast<void>(memory.transact(
            [](Transaction& transaction) { static_cast<void>(connection_of(transaction)); }));
    };
    EXPECT_THROW(refused(), Failure);
}

// What is checked only by the commit is found there, without knowing whose it is.
TEST_F(RawConnection, ConstraintsThatAreCheckedLateFailTheirOwnCommit) {
    const auto write = [&](const std::string& key) {
        return client_.transact([&](Transaction& transaction) {
            transaction.execute(in_test_schema("INSERT INTO @own VALUES ($1)"), key);
        });
    };
    EXPECT_TRUE(write("a").ok());
    const auto again = write("a");
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().backend_code, "23505");
    schema_.execute(
        in_test_schema("CREATE TABLE @parent(id int PRIMARY KEY); CREATE TABLE @child("
                       "id int REFERENCES @parent DEFERRABLE INITIALLY DEFERRED)"));
    const auto orphan = client_.transact([&](Transaction& transaction) {
        transaction.execute(in_test_schema("INSERT INTO @child VALUES (1)"));
    });
    ASSERT_FALSE(orphan.ok());
    EXPECT_EQ(orphan.error().backend_code, "23503");
    EXPECT_EQ(rows(), 1);
}

}  // namespace
}  // namespace sekali::postgres
