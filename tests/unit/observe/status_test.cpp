#include "observe/status.hpp"

#include <gtest/gtest.h>

#include "fixture.hpp"

namespace sekali::observe {
namespace {

class StatusTest : public StoreFixture {
 protected:
    Status status() {
        return transact([](engine::Tables& tables) { return read_status(tables, "default", 10); });
    }
};

TEST_F(StatusTest, CountsAndNamesQueuesThatNobodyServes) {
    add_worker("w1");
    enqueue({});
    enqueue({}, Millis{1000});
    enqueue({.queue = "mail"});
    store_.advance(Millis{300});
    const Status now = status();
    EXPECT_EQ(now.workers, 1U);
    EXPECT_EQ(now.ready(), 2U);
    EXPECT_EQ(now.oldest_age(), Millis{300});
    EXPECT_EQ(now.unserved(), std::vector<std::string>{"mail"});
}

TEST_F(StatusTest, ChecksOnlyWhatIsLimited) {
    enqueue({});
    enqueue({});
    EXPECT_TRUE(check_status(status(), {}).empty());
    const auto results = check_status(
        status(), {.max_age = Millis{0}, .max_ready = 1, .max_held = 0, .min_workers = 1});
    ASSERT_EQ(results.size(), 4U);
    EXPECT_TRUE(results[0].ok);
    EXPECT_FALSE(results[1].ok);
    EXPECT_EQ(results[1].value, 2U);
    EXPECT_TRUE(results[2].ok);
    EXPECT_FALSE(results[3].ok);
}

TEST_F(StatusTest, CountsTheDead) {
    enqueue({});
    const auto delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = engine::Outcome::Kind::kPermanent});
    EXPECT_EQ(status().dead, 1U);
    EXPECT_FALSE(check_status(status(), {.max_dead = 0}).front().ok);
}

}  // namespace
}  // namespace sekali::observe
