#include <gtest/gtest.h>

#include <latch>
#include <stop_token>
#include <string>
#include <thread>

#include "sekali/lock.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::ErrorCode;
using sekali::LockClient;

LockClient memory_locks() {
    return LockClient::open("memory:").value();
}

TEST(LockClient, OneHolderAtATime) {
    auto locks = memory_locks();
    auto held = locks.acquire("deploy").value();
    EXPECT_EQ(held.name(), "deploy");
    EXPECT_FALSE(held.token().empty());
    EXPECT_GT(held.valid_until(), std::chrono::steady_clock::now() + 20s);
    const auto second = locks.acquire("deploy");
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    EXPECT_TRUE(locks.acquire("other").ok());
    EXPECT_TRUE(held.release().ok());
    EXPECT_TRUE(held.release().ok());
    EXPECT_TRUE(locks.acquire("deploy").ok());
}

TEST(LockClient, FenceGrowsWithEveryGrantAndTokensDiffer) {
    auto locks = memory_locks();
    auto first = locks.acquire("x").value();
    const auto fence = first.fence();
    const auto token = first.token();
    ASSERT_TRUE(first.release().ok());
    const auto second = locks.acquire("x").value();
    EXPECT_GT(second.fence(), fence);
    EXPECT_NE(second.token(), token);
}

TEST(LockClient, DestructorReleases) {
    auto locks = memory_locks();
    { const auto held = locks.acquire("x").value(); }
    auto again = locks.acquire("x").value();
    again = locks.acquire("y").value();
    EXPECT_TRUE(locks.acquire("x").ok());
}

TEST(LockClient, WaitsForARelease) {
    auto locks = memory_locks();
    auto held = locks.acquire("x").value();
    std::latch waiting(1);
    std::jthread waiter([&] {
        waiting.count_down();
        const auto got = locks.acquire("x", {.wait = std::nullopt});
        EXPECT_TRUE(got.ok());
    });
    waiting.wait();
    ASSERT_TRUE(held.release().ok());
}

TEST(LockClient, WaitEndsWithItsTimeAndWithItsStopToken) {
    auto locks = memory_locks();
    const auto held = locks.acquire("x").value();
    EXPECT_EQ(locks.acquire("x", {.wait = 50ms}).error().code, ErrorCode::kConflict);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(locks.acquire("x", {.wait = std::nullopt, .stop = stop.get_token()}).error().code,
              ErrorCode::kCancelled);
}

TEST(LockClient, RenewsBeyondItsLife) {
    auto locks = memory_locks();
    const auto held = locks.acquire("x", {.ttl = 500ms}).value();
    const auto first = held.valid_until();
    EXPECT_FALSE(locks.acquire("x", {.wait = 1200ms}).ok());
    EXPECT_GE(held.valid_until(), first + 600ms);
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_FALSE(locks.acquire("x").ok());
}

TEST(LockClient, TellsWhenItLapses) {
    auto locks = memory_locks();
    auto held = locks.acquire("x", {.ttl = 500ms, .renew = false}).value();
    std::latch lost(1);
    const std::stop_callback on_lost(held.stop_token(), [&] { lost.count_down(); });
    lost.wait();
    const auto other = locks.acquire("x", {.wait = 2s});
    EXPECT_TRUE(other.ok());
    EXPECT_EQ(held.release().error().code, ErrorCode::kConflict);
    EXPECT_FALSE(other->stop_token().stop_requested());
}

TEST(LockClient, RefusesBadNamesAndLives) {
    auto locks = memory_locks();
    EXPECT_EQ(locks.acquire("").error().code, ErrorCode::kUsage);
    EXPECT_EQ(locks.acquire("a\nb").error().code, ErrorCode::kUsage);
    EXPECT_EQ(locks.acquire("x", {.ttl = 100ms}).error().code, ErrorCode::kUsage);
    EXPECT_EQ(locks.acquire("x", {.wait = -1ms}).error().code, ErrorCode::kUsage);
    EXPECT_FALSE(LockClient::open("memory:", "not a namespace").ok());
    EXPECT_FALSE(LockClient::open("postgres://x").ok());
}

}  // namespace
