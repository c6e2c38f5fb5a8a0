#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "sekali/client.hpp"
#include "sekali/sqlite.hpp"

namespace {

using sekali::ErrorCode;
using sekali::RawJob;

struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
};

/// A program that has a database of its own and lets sekali's jobs into it.
class Within : public testing::Test {
 protected:
    Within() {
        std::string folder = testing::TempDir() + "sekali-within-XXXXXX";
        EXPECT_NE(::mkdtemp(folder.data()), nullptr);
        folder_ = folder;
        client.emplace(sekali::Client::open("sqlite:" + path()).value());
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
        own.reset(db);
        run("create table orders(id text primary key)");
    }
    ~Within() override {
        own.reset();
        client.reset();
        std::filesystem::remove_all(folder_);
    }
    [[nodiscard]] std::string path() const { return folder_ + "/jobs.db"; }
    void run(const char* sql) const {
        ASSERT_EQ(sqlite3_exec(own.get(), sql, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(own.get());
    }

    std::string folder_;
    std::optional<sekali::Client> client;
    std::unique_ptr<sqlite3, Close> own;
};

TEST_F(Within, TheJobExistsOnceTheUserHasCommitted) {
    run("begin immediate");
    run("insert into orders values ('1001')");
    const auto job =
        client->enqueue(sekali::sqlite::within(own.get()), RawJob{"note", "[1]"}).value();
    EXPECT_EQ(client->show(job.id).error().code, ErrorCode::kNotFound);
    run("commit");
    EXPECT_EQ(client->show(job.id).value().payload, "[1]");
    EXPECT_EQ(client->show(job.id).value().state, "ready");
}

TEST_F(Within, NothingIsLeftOfARollback) {
    run("begin immediate");
    const auto job =
        client->enqueue(sekali::sqlite::within(own.get()), RawJob{"note", "1"}, {.unique = "u"})
            .value();
    run("rollback");
    EXPECT_EQ(client->show(job.id).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(client->enqueue(RawJob{"note", "1"}, {.unique = "u"}).value().status,
              sekali::Enqueued::Status::kEnqueued);
}

TEST_F(Within, SeveralJobsAndStatementsShareTheTransaction) {
    run("begin immediate");
    auto tx = sekali::sqlite::within(own.get());
    const auto first = client->enqueue(tx, RawJob{"note", "1"}, {.unique = "u"}).value();
    const auto second = client->enqueue(tx, RawJob{"note", "2"}, {.unique = "u"}).value();
    EXPECT_EQ(second.status, sekali::Enqueued::Status::kDuplicate);
    EXPECT_EQ(second.winner, first.id);
    EXPECT_EQ(tx.execute("insert into orders values ($1)", "7"), 1);
    std::string seen;
    for (auto [id] : tx.query<std::string>("select id from orders"))
        seen += id;
    EXPECT_EQ(seen, "7");
    run("commit");
    EXPECT_TRUE(client->show(first.id).ok());
}

TEST_F(Within, WithoutATransactionItIsRefused) {
    const auto refused = client->enqueue(sekali::sqlite::within(own.get()), RawJob{"note", "1"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_EQ(refused.error().message, "no transaction is open on this connection");
}

TEST_F(Within, TheClientRunsTransactionsOfItsOwn) {
    const auto enqueue = [&](bool fail) {
        return client->transact([&](sekali::Transaction& tx) {
            tx.execute("insert into orders values ($1)", fail ? "bad" : "good");
            client->enqueue(tx, RawJob{"note", "1"}, {.key = fail ? "bad" : "good"}).value();
            if (fail) throw std::runtime_error("no");
        });
    };
    EXPECT_THROW(static_cast<void>(enqueue(true)), std::runtime_error);
    EXPECT_TRUE(enqueue(false).ok());
    std::string seen;
    client
        ->transact([&](sekali::Transaction& tx) {
            seen.clear();
            for (auto [id] : tx.query<std::string>("select id from orders"))
                seen += id;
        })
        .value();
    EXPECT_EQ(seen, "good");
}

}  // namespace
