#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <thread>
#include <vector>

#include "redis/redis_server.hpp"
#include "sekali/lock.hpp"

namespace sekali {
namespace {

using namespace std::chrono_literals;
using redis::Reply;
using std::chrono::steady_clock;
using testing::RedisServer;

constexpr auto kPatience = 20s;
/// A waiter that looks by itself takes longer than this; one that is woken never does.
constexpr auto kWoken = 1s;

/// Returns when the token fires; false when it does not in time.
bool fires(const std::stop_token& token) {
    std::promise<void> fired;
    const std::stop_callback callback(token, [&] { fired.set_value(); });
    return fired.get_future().wait_for(kPatience) == std::future_status::ready;
}

std::string profile_name(LockProfile profile) {
    return profile == LockProfile::kRedisson ? "redisson" : "string";
}

class RedisLocks : public ::testing::TestWithParam<LockProfile> {
 protected:
    LockClient client(const LockClientOptions& more = {}) {
        LockClientOptions options = more;
        options.profile = GetParam();
        return LockClient::open(server_.url(), options).value();
    }
    std::string holder_of(const std::string& key) {
        if (GetParam() == LockProfile::kString) return server_.ask({"GET", key}).text;
        const Reply fields = server_.ask({"HKEYS", key});
        return fields.items.empty() ? "" : fields.items.front().text;
    }
    std::int64_t number(std::vector<std::string> words) {
        return server_.ask(std::move(words)).integer;
    }
    /// As another program would take it.
    void take_elsewhere(const std::string& key, const std::string& owner) {
        if (GetParam() == LockProfile::kString) {
            server_.ask({"SET", key, owner, "PX", "30000"});
        } else {
            server_.ask({"HSET", key, owner, "1"});
            server_.ask({"PEXPIRE", key, "30000"});
        }
    }

    RedisServer server_;
};

TEST_P(RedisLocks, OneHolderAmongClients) {
    LockClient one = client();
    LockClient other = client();
    auto held = one.try_lock("x").value();
    const auto busy = other.try_lock("x");
    ASSERT_FALSE(busy.ok());
    EXPECT_EQ(busy.error().code, ErrorCode::kConflict);
    EXPECT_NE(busy.error().message.find(held.token()), std::string::npos) << busy.error().message;
    EXPECT_TRUE(other.try_lock("y").ok());
    EXPECT_TRUE(held.release().ok());
    EXPECT_TRUE(other.try_lock("x").ok());
}

TEST_P(RedisLocks, IsWrittenAsOthersReadIt) {
    LockClient locks = client({.prefix = ""});
    const auto held = locks.try_lock("order:7").value();
    EXPECT_EQ(held.token().size(), std::string("01890a5d-ac96-774b-bcce-b302099a8057:1").size());
    EXPECT_EQ(holder_of("order:7"), held.token());
    if (GetParam() == LockProfile::kRedisson) {
        const Reply hash = server_.ask({"HGETALL", "order:7"});
        ASSERT_EQ(hash.items.size(), 2U);
        EXPECT_EQ(hash.items[1].text, "1");
        EXPECT_EQ(server_.ask({"GET", "redisson_lock_token:{order:7}"}).text,
                  std::to_string(held.fence()));
    }
    const auto life = number({"PTTL", "order:7"});
    EXPECT_GT(life, 20'000);
    EXPECT_LE(life, 30'000);
}

TEST_P(RedisLocks, NamesOfNamespacesAreTheirOwn) {
    LockClient blue = client({.ns = "blue"});
    LockClient red = client({.ns = "red"});
    const auto held = blue.try_lock("x").value();
    EXPECT_TRUE(red.try_lock("x").ok());
    EXPECT_EQ(holder_of("sekali:blue:lock:x"), held.token());
}

TEST_P(RedisLocks, B01_NoKeyIsEverWithoutAnEnd) {
    LockClient locks = client();
    const auto held = locks.try_lock("x").value();
    const auto permit = locks.acquire("s", {.permits = 2}).value();
    for (const Reply& key : server_.ask({"KEYS", "*"}).items)
        EXPECT_GT(number({"PTTL", key.text}), 0) << key.text;
}

TEST_P(RedisLocks, AWaiterIsWokenByTheRelease) {
    LockClient one = client();
    LockClient other = client();
    auto held = one.try_lock("x").value();
    std::promise<steady_clock::time_point> got;
    std::jthread waiter([&] {
        const auto lock = other.lock("x");
        EXPECT_TRUE(lock.ok());
        got.set_value(steady_clock::now());
    });
    const std::string channel = GetParam() == LockProfile::kString
                                    ? "sekali_lock__channel:{sekali:default:lock:x}"
                                    : "redisson_lock__channel:{sekali:default:lock:x}";
    while (server_.ask({"PUBSUB", "NUMSUB", channel}).items.at(1).integer == 0)
        std::this_thread::yield();
    const auto freed = steady_clock::now();
    EXPECT_TRUE(held.release().ok());
    EXPECT_LT(got.get_future().get() - freed, kWoken);
}

TEST_P(RedisLocks, WaitingEndsWithItsTimeAndWithItsStopToken) {
    LockClient locks = client();
    const auto held = locks.try_lock("x").value();
    const auto late = locks.lock("x", 100ms);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kConflict);
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(locks.lock("x", std::nullopt, stop.get_token()).error().code, ErrorCode::kCancelled);
    EXPECT_EQ(server_.ask({"PUBSUB", "CHANNELS"}).items.size(), 0U);
}

TEST_P(RedisLocks, WaitersOfOneProcessSendOneToAskForThem) {
    LockClient one = client();
    LockClient other = client();
    auto held = one.try_lock("x").value();
    server_.ask({"CONFIG", "RESETSTAT"});
    constexpr int kWaiters = 50;
    std::atomic<int> entered = 0;
    std::atomic<int> inside = 0;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < kWaiters; ++i) {
        waiters.emplace_back([&] {
            auto lock = other.lock("x").value();
            EXPECT_EQ(++inside, 1);
            ++entered;
            --inside;
            EXPECT_TRUE(lock.release().ok());
        });
    }
    EXPECT_TRUE(held.release().ok());
    waiters.clear();
    EXPECT_EQ(entered, kWaiters);
    const std::string stats = server_.ask({"INFO", "commandstats"}).text;
    const auto at = stats.find("cmdstat_evalsha:calls=");
    ASSERT_NE(at, std::string::npos);
    // An acquire and a release for each, and a few that found it busy; 50 that ask at each
    // release would be 1,300.
    EXPECT_LT(std::stoi(stats.substr(at + 22)), 6 * kWaiters) << stats;
}

TEST_P(RedisLocks, AHolderThatVanishesIsFollowedWhenItsLifeEnds) {
    LockClient locks = client({.prefix = ""});
    take_elsewhere("x", "0188a5eb-0000-7000-8000-000000000000:1");
    server_.ask({"PEXPIRE", "x", "300"});
    const auto begin = steady_clock::now();
    EXPECT_TRUE(locks.lock("x", kPatience).ok());
    EXPECT_LT(steady_clock::now() - begin, kWoken);
}

TEST_P(RedisLocks, AHolderThatPublishesNothingIsFollowedSoon) {
    LockClient locks = client({.prefix = ""});
    take_elsewhere("x", "laravel-owner-16");
    std::jthread releaser([&] { server_.ask({"DEL", "x"}); });
    const auto begin = steady_clock::now();
    EXPECT_TRUE(locks.lock("x", kPatience).ok());
    EXPECT_LT(steady_clock::now() - begin, kWoken);
}

TEST_P(RedisLocks, AKeyOfTheOtherProfileIsReported) {
    LockClient locks = client({.prefix = ""});
    if (GetParam() == LockProfile::kString) {
        server_.ask({"HSET", "x", "someone", "1"});
    } else {
        server_.ask({"SET", "x", "someone"});
    }
    const auto refused = locks.lock("x");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_NE(refused.error().message.find("profile"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().hint.find("--lock-profile"), std::string::npos);
}

TEST_P(RedisLocks, TheFenceGrowsAlsoWhenTheServerHasLostIt) {
    LockClient locks = client();
    std::uint64_t last = 0;
    for (int i = 0; i < 6; ++i) {
        auto held = locks.try_lock("x").value();
        EXPECT_GT(held.fence(), last);
        last = held.fence();
        ASSERT_TRUE(held.release().ok());
        if (i % 2 == 1) server_.ask({"FLUSHALL"});
    }
}

TEST_P(RedisLocks, RenewalKeepsItAndStopsWithTheRelease) {
    LockClient locks = client();
    LockClient other = client();
    auto held = locks.acquire("x", {.ttl = 500ms}).value();
    const auto first = held.valid_until();
    EXPECT_EQ(other.lock("x", 1200ms).error().code, ErrorCode::kConflict);
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_GT(held.valid_until(), first);
    EXPECT_TRUE(held.release().ok());
    EXPECT_EQ(number({"EXISTS", "sekali:default:lock:x"}), 0);
}

TEST_P(RedisLocks, WithoutRenewalTheHolderIsToldBeforeItEnds) {
    LockClient locks = client();
    auto held = locks.acquire("x", {.ttl = 500ms, .renew = false}).value();
    ASSERT_TRUE(fires(held.stop_token()));
    EXPECT_LT(steady_clock::now(), held.valid_until() + 10ms);
    static_cast<void>(held.release());
}

TEST_P(RedisLocks, MaxHoldEndsItHoweverOftenItWasRenewed) {
    LockClient locks = client();
    const auto begin = steady_clock::now();
    auto held = locks.acquire("x", {.ttl = 500ms, .max_hold = 900ms}).value();
    ASSERT_TRUE(fires(held.stop_token()));
    EXPECT_GT(steady_clock::now() - begin, 600ms);
    EXPECT_LE(held.valid_until() - begin, 950ms);
    LockClient other = client();
    EXPECT_TRUE(other.lock("x", kPatience).ok());
}

TEST_P(RedisLocks, ALostLockIsToldAndReleasesNothingOfAnothers) {
    LockClient locks = client();
    auto held = locks.acquire("x", {.ttl = 500ms}).value();
    server_.ask({"FLUSHALL"});
    take_elsewhere("sekali:default:lock:x", "another");
    ASSERT_TRUE(fires(held.stop_token()));
    const auto released = held.release();
    ASSERT_FALSE(released.ok());
    EXPECT_EQ(released.error().code, ErrorCode::kConflict);
    EXPECT_EQ(holder_of("sekali:default:lock:x"), "another");
}

TEST_P(RedisLocks, C05_AServerThatFallsSilentIsToldBeforeTheLifeEnds) {
    LockClient locks = client();
    auto held = locks.acquire("x", {.ttl = 800ms}).value();
    server_.freeze();
    ASSERT_TRUE(fires(held.stop_token()));
    EXPECT_LT(steady_clock::now(), held.valid_until());
    server_.thaw();
    static_cast<void>(held.release());
}

TEST_P(RedisLocks, ARenewalThatFailsOnceIsNotTheEnd) {
    LockClient locks = client();
    auto held = locks.acquire("x", {.ttl = 2s}).value();
    const auto first = held.valid_until();
    server_.ask({"SCRIPT", "FLUSH", "SYNC"});
    server_.ask({"CLIENT", "KILL", "TYPE", "normal"});
    LockClient other = client();
    EXPECT_EQ(other.lock("x", 2500ms).error().code, ErrorCode::kConflict);
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_GT(held.valid_until(), first);
}

TEST_P(RedisLocks, AnAnswerThatIsLostIsNoGrantThatStays) {
    // A short patience, so that the frozen server's late grant finds nobody who waits for it.
    LockClientOptions options;
    options.profile = GetParam();
    LockClient locks = LockClient::open(server_.url() + "?timeout=100ms", options).value();
    ASSERT_TRUE(locks.try_lock("warm").ok());
    server_.freeze();
    const auto unknown = locks.try_lock("x");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(unknown.error().applied, Applied::kMaybe);
    server_.thaw();
    LockClient other = client();
    EXPECT_TRUE(other.lock("x", kPatience).ok());
}

TEST_P(RedisLocks, NobodyThereIsUnreachable) {
    LockClient locks = client();
    server_.stop();
    const auto refused = locks.lock("x", 200ms);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(refused.error().applied, Applied::kNo);
}

TEST_P(RedisLocks, AServerThatIsBackIsUsed) {
    LockClient locks = client();
    server_.stop();
    auto waiting = std::async(std::launch::async, [&] { return locks.lock("x").ok(); });
    server_.start();
    EXPECT_TRUE(waiting.get());
}

TEST_P(RedisLocks, SemaphoreHasItsPermits) {
    LockClient locks = client();
    LockClient other = client();
    auto one = locks.acquire("s", {.permits = 2}).value();
    auto two = other.acquire("s", {.permits = 2}).value();
    EXPECT_EQ(locks.acquire("s", {.permits = 2}).error().code, ErrorCode::kConflict);
    EXPECT_EQ(server_.ask({"GET", "sekali:default:lock:s"}).text, "0");
    auto waiting = std::async(std::launch::async, [&] {
        return other.acquire("s", {.wait = kPatience, .permits = 2}).ok();
    });
    while (server_.ask({"PUBSUB", "NUMSUB", "redisson_sc:{sekali:default:lock:s}"})
               .items.at(1)
               .integer == 0)
        std::this_thread::yield();
    const auto freed = steady_clock::now();
    EXPECT_TRUE(one.release().ok());
    EXPECT_TRUE(waiting.get());
    EXPECT_LT(steady_clock::now() - freed, kWoken);
    EXPECT_TRUE(two.release().ok());
    EXPECT_EQ(server_.ask({"GET", "sekali:default:lock:s"}).text, "2");
}

TEST_P(RedisLocks, APermitOfACrashedHolderComesBack) {
    LockClient locks = client();
    auto lost = locks.acquire("s", {.ttl = 500ms, .renew = false, .permits = 1}).value();
    const auto next = locks.acquire("s", {.wait = kPatience, .permits = 1});
    EXPECT_TRUE(next.ok());
    EXPECT_EQ(lost.release().error().code, ErrorCode::kConflict);
}

TEST_P(RedisLocks, PermitsAreRenewed) {
    LockClient locks = client();
    auto held = locks.acquire("s", {.ttl = 500ms, .permits = 1}).value();
    EXPECT_EQ(locks.acquire("s", {.wait = 1200ms, .permits = 1}).error().code,
              ErrorCode::kConflict);
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_TRUE(held.release().ok());
}

TEST_P(RedisLocks, ManyCallersOnOneBalanceAddUp) {
    constexpr int kClients = 4;
    constexpr int kCalls = 50;
    int balance = 0;
    std::vector<LockClient> clients;
    for (int i = 0; i < kClients; ++i)
        clients.push_back(client());
    {
        std::vector<std::jthread> threads;
        for (LockClient& locks : clients) {
            threads.emplace_back([&] {
                for (int i = 0; i < kCalls; ++i) {
                    auto held = locks.lock("balance").value();
                    const int before = balance;
                    std::this_thread::yield();
                    balance = before + 1;
                    EXPECT_TRUE(held.release().ok());
                }
            });
        }
    }
    EXPECT_EQ(balance, kClients * kCalls);
}

TEST_P(RedisLocks, WaitsThatAreEndedAtAnyMomentLeaveNothingBehind) {
    LockClient locks = client();
    LockClient other = client();
    constexpr int kThreads = 8;
    constexpr int kRounds = 150;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back([&, thread] {
                LockClient& mine = thread % 2 == 0 ? locks : other;
                for (int i = 0; i < kRounds; ++i) {
                    std::stop_source stop;
                    std::jthread canceller;
                    if (i % 3 == 0) canceller = std::jthread([&] { stop.request_stop(); });
                    const auto wait = i % 3 == 1 ? std::optional{1ms} : std::optional{5000ms};
                    auto held = mine.lock("x" + std::to_string(i % 4), wait, stop.get_token());
                    if (!held.ok()) {
                        EXPECT_NE(held.error().code, ErrorCode::kInternal);
                    }
                }
            });
        }
    }
    // Requests on their way are answered before these.
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(locks.lock("x" + std::to_string(i), kPatience).ok());
        EXPECT_TRUE(other.lock("x" + std::to_string(i), kPatience).ok());
    }
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(number({"EXISTS", "sekali:default:lock:x" + std::to_string(i)}), 0);
    }
    while (!server_.ask({"PUBSUB", "CHANNELS"}).items.empty())
        std::this_thread::yield();
}

INSTANTIATE_TEST_SUITE_P(With, RedisLocks,
                         ::testing::Values(LockProfile::kRedisson, LockProfile::kString),
                         [](const auto& instance) { return profile_name(instance.param); });

}  // namespace
}  // namespace sekali
