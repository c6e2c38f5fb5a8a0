#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "backends/postgres/postgres_store.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/sql.hpp"
#include "engine/tables.hpp"
#include "postgres/test_server.hpp"
#include "sekali/client.hpp"

// Every schema that was ever released is upgraded with all that stands in it. A fixture is what
// pg_dump said of one, with @ in place of the schema's name.
namespace sekali::postgres {
namespace {

class Upgrade : public testing::TestWithParam<std::int64_t> {
 protected:
    void SetUp() override {
        std::ifstream file(SEKALI_POSTGRES_FIXTURES "/v" + std::to_string(GetParam()) + ".sql");
        ASSERT_TRUE(file) << "there is no fixture of version " << GetParam();
        const std::string sql(std::istreambuf_iterator<char>(file), {});
        schema_.execute("CREATE SCHEMA \"" + schema_.name() + "\"");
        schema_.execute(in_schema(sql, schema_.name()));
    }

    static void expect_everything(engine::Tables& tables) {
        const auto live = tables.job("live-1");
        ASSERT_TRUE(live);
        EXPECT_EQ(live->job.key, "payment:1");
        EXPECT_EQ(live->job.lock_key, "order:1");
        EXPECT_EQ(tables.payload("live-1"), "{\"order\":1}");
        const auto dead = tables.finished_job("dead-1");
        ASSERT_TRUE(dead);
        EXPECT_EQ(dead->state, engine::JobState::kDead);
        EXPECT_EQ(tables.payload("dead-1"), "{\"order\":2}");
        const engine::RecordKey key{"default", "payment.charge", "payment:2"};
        ASSERT_TRUE(tables.record(key));
        EXPECT_EQ(tables.record(key)->epoch, 3U);
        EXPECT_EQ(tables.steps(key).size(), 1U);
        ASSERT_EQ(tables.attempts_of_key(key).size(), 1U);
        EXPECT_EQ(tables.attempts_of_key(key).front().error, "it failed");
        EXPECT_EQ(tables.events_of_key(key).size(), 1U);
        ASSERT_TRUE(tables.lock("default", "order:1"));
        EXPECT_EQ(tables.lock("default", "order:1")->fence, 5U);
        ASSERT_TRUE(tables.worker("worker-1"));
        EXPECT_EQ(tables.worker("worker-1")->kinds, std::vector<std::string>{"payment.charge"});
        ASSERT_TRUE(tables.queue("default", "slow"));
        EXPECT_TRUE(tables.queue("default", "slow")->paused);
        EXPECT_EQ(tables.epoch_floor(), 7U);
    }

    TestSchema schema_;
};

TEST_P(Upgrade, KeepsEverything) {
    const auto store = PostgresStore::open(schema_.options()).value();
    const auto read = store->read(expect_everything);
    EXPECT_TRUE(read.ok()) << read.error().message;
    auto client = Client::open(schema_.url()).value();
    EXPECT_EQ(client.show("dead-1").value().error, "it failed");
}

TEST_P(Upgrade, TakesNewJobsAndKnowsTheOldOnes) {
    static_cast<void>(PostgresStore::open(schema_.options()).value());
    auto client = Client::open(schema_.url()).value();
    const auto refused =
        client.enqueue(RawJob{"payment.charge", "{}"}, {.key = "new", .unique = "u1"}).value();
    EXPECT_EQ(refused.winner, "live-1");
    const auto taken = client.enqueue(RawJob{"payment.charge", "{}"}, {.key = "new"}).value();
    EXPECT_EQ(client.show(taken.id).value().state, "ready");
    schema_.execute(in_schema("SELECT @enqueue('payment.charge', '1')", schema_.name()));
}

TEST_P(Upgrade, IsNotDoneByItself) {
    schema_.execute(in_schema(
        "UPDATE @meta SET version = least(version, " + std::to_string(newest_schema() - 1) + ")",
        schema_.name()));
    const auto opened = Client::open(schema_.url());
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().hint.find("migrate"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(FromEveryVersion, Upgrade,
                         testing::Range(std::int64_t{1}, newest_schema() + 1),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

}  // namespace
}  // namespace sekali::postgres
