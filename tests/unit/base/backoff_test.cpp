#include "base/backoff.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace sekali {
namespace {

using std::chrono::milliseconds;

RetryPolicy without_jitter() {
    RetryPolicy policy;
    policy.jitter = 0;
    return policy;
}

TEST(Backoff, GrowsByTheFactorUpToTheCap) {
    const RetryPolicy policy = without_jitter();
    EXPECT_EQ(backoff_delay(policy, 1, 0.5), milliseconds(1'000));
    EXPECT_EQ(backoff_delay(policy, 2, 0.5), milliseconds(2'000));
    EXPECT_EQ(backoff_delay(policy, 10, 0.5), milliseconds(512'000));
    EXPECT_EQ(backoff_delay(policy, 11, 0.5), policy.cap);
    EXPECT_EQ(backoff_delay(policy, 0, 0.5), milliseconds(1'000));
}

TEST(Backoff, JitterTakesAwayAShare) {
    RetryPolicy policy;
    policy.jitter = 0.5;
    EXPECT_EQ(backoff_delay(policy, 1, 0), milliseconds(1'000));
    EXPECT_EQ(backoff_delay(policy, 1, 0.5), milliseconds(750));
    EXPECT_EQ(backoff_delay(policy, 1, 1), milliseconds(500));
}

TEST(Backoff, NeverOverflows) {
    constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
    RetryPolicy policy = without_jitter();
    EXPECT_EQ(backoff_delay(policy, kLast, 0), policy.cap);
    policy.base = milliseconds(0);
    EXPECT_LE(backoff_delay(policy, kLast, 0), policy.cap);
    policy.base = policy.cap = milliseconds::max();
    EXPECT_EQ(backoff_delay(policy, kLast, 0), milliseconds::max());
    EXPECT_EQ(backoff_delay(policy, 1, 0), milliseconds::max());
}

RC_GTEST_PROP(BackoffProperty, StaysBetweenZeroAndTheCap, ()) {
    RetryPolicy policy;
    policy.base = milliseconds(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000));
    policy.cap = policy.base + milliseconds(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000));
    policy.factor = 1 + *rc::gen::inRange(0, 9'900) / 100.0;
    policy.jitter = *rc::gen::inRange(0, 101) / 100.0;
    const double random = *rc::gen::inRange(0, 1'000) / 1'000.0;
    const auto attempt = *rc::gen::arbitrary<std::uint64_t>();
    const milliseconds delay = backoff_delay(policy, attempt, random);
    RC_ASSERT(delay >= milliseconds(0));
    RC_ASSERT(delay <= policy.cap);
    policy.jitter = 0;
    RC_ASSERT(backoff_delay(policy, attempt, random) >= delay);
}

TEST(Backoff, OverridesReplaceOnlyWhatTheySay) {
    RetryOverrides overrides;
    overrides.factor = 3;
    overrides.max_age = std::chrono::hours(1);
    const RetryPolicy policy = apply({}, overrides);
    EXPECT_EQ(policy.factor, 3);
    EXPECT_EQ(policy.max_age, std::chrono::hours(1));
    EXPECT_EQ(policy.base, RetryPolicy{}.base);
    EXPECT_EQ(policy.max_attempts, RetryPolicy{}.max_attempts);
}

}  // namespace
}  // namespace sekali
