#include "backends/redis/lock_lines.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "backends/redis/open.hpp"
#include "base/clock.hpp"
#include "redis/redis_server.hpp"

namespace sekali::redis {
namespace {

constexpr int kThreads = 8;
constexpr int kWishes = 12'500;
constexpr int kNames = 5;

/// Takes, gives up and gives back at any moment, until all its wishes have ended.
class Stress {
 public:
    explicit Stress(const std::string& url)
        : opened_(open_server(url).value()),
          port_(std::make_shared<LockPort>(opened_.server, LockSettings{})),
          lines_(port_) {}

    void run() {
        {
            std::vector<std::jthread> threads;
            for (int thread = 0; thread < kThreads; ++thread)
                threads.emplace_back([this, thread] { wish(thread); });
        }
        ended_.wait();
    }
    [[nodiscard]] std::size_t lines_left() { return lines_.size(); }
    [[nodiscard]] int granted() const { return granted_; }

 private:
    void wish(int thread) {
        for (int i = 0; i < kWishes; ++i) {
            LockWish wish;
            wish.request = {"default",
                            "x" + std::to_string(i % kNames),
                            {},
                            std::to_string(thread) + ":" + std::to_string(i),
                            std::chrono::seconds{30}};
            if (i % 4 == 0) wish.until = base::steady_now() + Millis{i % 7};
            wish.done = [this, request = wish.request](const Result<LockWish::Grant>& grant) {
                if (grant.ok()) release(request);
                ended_.count_down();
            };
            const auto id = lines_.wait(std::move(wish));
            if (i % 3 == 0) lines_.cancel(id);
        }
    }
    void release(const engine::LockAcquire& held) {
        ++granted_;
        std::vector<engine::LockPort::Call> calls;
        calls.push_back({engine::LockRelease{held.ns, held.name, held.token},
                         [](const Result<engine::LockReply>&) {}});
        port_->submit(std::move(calls));
    }

    std::latch ended_{kThreads * kWishes};
    std::atomic<int> granted_ = 0;
    OpenServer opened_;
    std::shared_ptr<LockPort> port_;
    LockLines lines_;
};

TEST(LockLines, WishesThatEndAtAnyMomentLeaveNothingBehind) {
    sekali::testing::RedisServer server;
    {
        Stress stress(server.url());
        stress.run();
        EXPECT_GT(stress.granted(), 0);
        EXPECT_EQ(stress.lines_left(), 0U);
    }
    // What was granted to a wish that had ended was freed before the lines were gone.
    EXPECT_EQ(server.ask({"KEYS", "sekali:default:lock:*"}).items.size(), 0U);
    while (!server.ask({"PUBSUB", "CHANNELS"}).items.empty())
        std::this_thread::yield();
}

}  // namespace
}  // namespace sekali::redis
