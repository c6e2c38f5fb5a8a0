#include <gtest/gtest.h>

#include "sekali/transaction.hpp"
#include "unit/sqlite/temp_database.hpp"

// Handlers' own writes: what they may do, and what is left of them when they fail.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::Tables;

class SqliteEffectsTest : public testing::Test {
 protected:
    SqliteEffectsTest() {
        effects([](Transaction& tx) {
            tx.execute("CREATE TABLE payments(id TEXT PRIMARY KEY, cents INTEGER, note BLOB)");
        }).value();
    }
    /// Runs effects in a transaction that commits, and returns what became of them.
    Result<void> effects(const std::function<void(Transaction&)>& body) {
        Result<void> result;
        write(*store_, [&](Tables& tables) {
            result = tables.run_effects([&](Transaction& tx) {
                body(tx);
                return Result<void>{};
            });
        });
        return result;
    }
    /// What the store says when the whole transaction has to fail.
    Result<void> whole(const std::function<void(Transaction&)>& body) {
        return store_->write_sync(
            [&](Tables& tables) {
                const auto ignored = tables.run_effects([&](Transaction& tx) {
                    body(tx);
                    return Result<void>{};
                });
            },
            std::chrono::seconds{20});
    }
    std::int64_t count() {
        std::int64_t rows = 0;
        effects([&](Transaction& tx) {
            for (auto [n] : tx.query<std::int64_t>("SELECT count(*) FROM payments"))
                rows = n;
        }).value();
        return rows;
    }

    TempDatabase database_;
    std::unique_ptr<SqliteStore> store_ = database_.open();
};

TEST_F(SqliteEffectsTest, PlaceholdersAreNumberedWhereverTheyStand) {
    effects([](Transaction& tx) {
        EXPECT_EQ(tx.execute("INSERT INTO payments(cents, id, note) VALUES($2, $1, $3)", "a", 250,
                             Blob{std::string("\0\xff", 2)}),
                  1);
        EXPECT_EQ(tx.execute("INSERT INTO payments VALUES($1, $2, $1)", "b", nullptr), 1);
        for (auto [id, cents, note] : tx.query<std::string, std::int64_t, Blob>(
                 "SELECT id, cents, note FROM payments WHERE $2 = $2 AND id = $1", "a", 7)) {
            EXPECT_EQ(id, "a");
            EXPECT_EQ(cents, 250);
            EXPECT_EQ(note.bytes, std::string("\0\xff", 2));
        }
        EXPECT_EQ(tx.execute("UPDATE payments SET cents = 1 WHERE id = $1", "none"), 0);
        EXPECT_EQ(tx.execute("CREATE TABLE other(x)"), 0);
    }).value();
    EXPECT_EQ(count(), 2);
}

TEST_F(SqliteEffectsTest, QueriesMayBeNestedAlsoOfTheSameText) {
    effects([](Transaction& tx) {
        for (const char* id : {"a", "b", "c"})
            tx.execute("INSERT INTO payments(id) VALUES($1)", id);
        int pairs = 0;
        for (auto [outer] : tx.query<std::string>("SELECT id FROM payments")) {
            for (auto [inner] : tx.query<std::string>("SELECT id FROM payments"))
                pairs += outer == inner ? 1 : 0;
        }
        EXPECT_EQ(pairs, 3);
    }).value();
}

TEST_F(SqliteEffectsTest, WhatFailsIsUndoneAndTheTransactionGoesOn) {
    write(*store_, [&](Tables& tables) {
        JobRow row;
        row.job.id = row.job.key = "kept";
        row.job.kind = "k";
        tables.insert_job(row);
        const auto failed = tables.run_effects([](Transaction& tx) {
            tx.execute("INSERT INTO payments(id) VALUES('a')");
            tx.execute("INSERT INTO payments(id) VALUES('a')");
            return Result<void>{};
        });
        ASSERT_FALSE(failed.ok());
        EXPECT_EQ(failed.error().backend_code, "SQLITE_CONSTRAINT_PRIMARYKEY");
        const auto refused_by_user = tables.run_effects([](Transaction& tx) {
            tx.execute("INSERT INTO payments(id) VALUES('b')");
            return Result<void>(Error{.code = ErrorCode::kUsage, .message = "mine"});
        });
        EXPECT_EQ(refused_by_user.error().message, "mine");
        const auto thrown = tables.run_effects([](Transaction& tx) -> Result<void> {
            tx.execute("INSERT INTO payments(id) VALUES('c')");
            throw std::logic_error("thrown");
        });
        EXPECT_EQ(thrown.error().message, "thrown");
        row.job.id = row.job.key = "kept too";
        EXPECT_TRUE(tables.insert_job(row));
    });
    EXPECT_EQ(count(), 0);
    read(*store_, [](Tables& tables) {
        EXPECT_TRUE(tables.job("kept"));
        EXPECT_TRUE(tables.job("kept too"));
    });
}

TEST_F(SqliteEffectsTest, JobsOfFailedEffectsAreUndoneAndLeaveNothingLearned) {
    write(*store_, [&](Tables& tables) {
        const auto failed = tables.run_effects([&](Transaction&) -> Result<void> {
            JobRow row;
            row.job.id = row.job.key = "a";
            row.job.kind = "k";
            tables.insert_job(row);
            throw std::logic_error("no");
        });
        EXPECT_FALSE(failed.ok());
        JobRow row;
        row.job.id = row.job.key = "b";
        row.job.kind = "k";
        EXPECT_TRUE(tables.insert_job(row));
        EXPECT_FALSE(tables.job("a"));
        row.attempts = 5;
        tables.update_job(row);
        EXPECT_EQ(tables.job("b")->attempts, 5U);
    });
}

TEST_F(SqliteEffectsTest, NothingMayEndTheTransactionOrTouchOurRows) {
    for (const char* sql : {"COMMIT",
                            "ROLLBACK",
                            "BEGIN",
                            "END",
                            "SAVEPOINT x",
                            "RELEASE sekali_effects",
                            "ROLLBACK TO sekali_effects",
                            "ATTACH ':memory:' AS other",
                            "DETACH main",
                            "PRAGMA synchronous = OFF",
                            "PRAGMA table_info(payments)",
                            "DELETE FROM sekali_jobs",
                            "UPDATE sekali_records SET epoch = 1",
                            "INSERT INTO Sekali_Meta VALUES('a', 1)",
                            "DROP TABLE sekali_jobs",
                            "ALTER TABLE sekali_jobs ADD COLUMN x",
                            "CREATE INDEX i ON sekali_jobs(id)",
                            "DROP INDEX sekali_jobs_ready",
                            "CREATE TRIGGER t AFTER INSERT ON sekali_jobs BEGIN SELECT 1; END",
                            "CREATE TEMP TABLE sekali_jobs(x)",
                            "CREATE TEMP TABLE t(x)",
                            "CREATE TABLE sekali_mine(x)",
                            "DROP VIEW sekali_v_jobs"}) {
        const auto result = effects([&](Transaction& tx) { tx.execute(sql); });
        ASSERT_FALSE(result.ok()) << sql;
        EXPECT_EQ(result.error().code, ErrorCode::kRefused) << sql;
        EXPECT_EQ(result.error().backend_code, "SQLITE_AUTH") << sql;
        EXPECT_FALSE(result.error().message.empty());
    }
    effects([](Transaction& tx) {
        for (auto [n] : tx.query<std::int64_t>("SELECT count(*) FROM sekali_v_jobs"))
            EXPECT_EQ(n, 0);
    }).value();
}

TEST_F(SqliteEffectsTest, OurStatementsWorkAfterTheUserChangedTheSchema) {
    write(*store_, [&](Tables& tables) {
        JobRow row;
        row.job.id = row.job.key = "a";
        row.job.kind = "k";
        tables.insert_job(row);
        tables
            .run_effects([&](Transaction& tx) {
                tx.execute("CREATE TABLE more(x)");
                row.job.id = row.job.key = "b";
                tables.insert_job(row);
                tx.execute("INSERT INTO more VALUES(1)");
                return Result<void>{};
            })
            .value();
        row.attempts = 1;
        tables.update_job(row);
    });
    read(*store_, [](Tables& tables) { EXPECT_EQ(tables.job("b")->attempts, 1U); });
}

TEST_F(SqliteEffectsTest, AStatementThatEndsTheTransactionFailsItsTaskAlone) {
    effects([](Transaction& tx) { tx.execute("INSERT INTO payments(id) VALUES('a')"); }).value();
    const auto lost = whole(
        [](Transaction& tx) { tx.execute("INSERT OR ROLLBACK INTO payments(id) VALUES('a')"); });
    ASSERT_FALSE(lost.ok());
    EXPECT_NE(lost.error().hint.find("OR ROLLBACK"), std::string::npos);
    const auto hidden = whole([](Transaction& tx) {
        try {
            tx.execute("INSERT OR ROLLBACK INTO payments(id) VALUES('a')");
        } catch (const Failure&) {
            // A handler that swallows the error must not make the rest of the group autocommit.
        }
    });
    EXPECT_FALSE(hidden.ok());
    EXPECT_EQ(count(), 1);
}

TEST_F(SqliteEffectsTest, MistakesAreNamed) {
    const auto message = [&](const std::function<void(Transaction&)>& body) {
        const auto result = effects(body);
        EXPECT_EQ(result.error().code, ErrorCode::kUsage);
        return result.error().message;
    };
    EXPECT_NE(message([](Transaction& tx) { tx.execute("SELECT ?", 1); }).find("\"?\""),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) { tx.execute("SELECT :a", 1); }).find("$1"),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) { tx.execute("SELECT $1, $3", 1, 2); }).find("$3"),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) { tx.execute("SELECT $1", 1, 2); }).find("2 arguments"),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) { tx.execute("SELECT 1; SELECT 2"); }).find("SELECT 2"),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) { tx.execute(" -- nothing"); }).find("empty"),
              std::string::npos);
    EXPECT_NE(message([](Transaction& tx) {
                  tx.execute("INSERT INTO nowhere VALUES(1)");
              }).find("nowhere"),
              std::string::npos);
    effects([](Transaction& tx) { tx.execute("SELECT 1; "); }).value();
}

}  // namespace
}  // namespace sekali::sqlite
