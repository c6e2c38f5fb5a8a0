#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "base/assert.hpp"
#include "base/ids.hpp"

namespace sekali::base {
namespace {

TEST(Clock, BootTimeNeverFalls) {
    const std::int64_t first = boot_ms();
    EXPECT_GT(first, 0);
    EXPECT_GE(boot_ms(), first);
}

TEST(Clock, WallTimeIsThatOfTheSystemClock) {
    const auto before = std::chrono::system_clock::now().time_since_epoch();
    const std::chrono::milliseconds wall(wall_ms());
    const auto after = std::chrono::system_clock::now().time_since_epoch();
    EXPECT_GE(wall, std::chrono::floor<std::chrono::milliseconds>(before));
    EXPECT_LE(wall, after);
}

TEST(Clock, BootIdIsStable) {
    EXPECT_TRUE(is_uuid(boot_id())) << boot_id();
    EXPECT_EQ(boot_id(), boot_id());
}

TEST(AssertDeathTest, StaysOnAndNamesThePlace) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    SEKALI_ASSERT(1 + 1 == 2, "sums hold");
    EXPECT_DEATH(SEKALI_ASSERT(1 + 1 == 3, "sums hold"),
                 "sekali: clock_test.cpp:[0-9]+: sums hold \\(1 \\+ 1 == 3 does not hold\\)");
}

}  // namespace
}  // namespace sekali::base
