#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include "redis/redis_server.hpp"
#include "sekali/lock.hpp"

namespace sekali {
namespace {

using namespace std::chrono_literals;
using testing::RedisServer;

constexpr auto kPatience = 30s;

/// One Sentinel that watches one group and needs nobody's vote.
class Sentinel {
 public:
    explicit Sentinel(const RedisServer& primary) : port_(testing::free_port()) {
        config_ = (primary.folder() / "sentinel.conf").string();
        std::ofstream(config_) << "port " << port_ << "\nbind 127.0.0.1\n"
                               << "sentinel monitor group 127.0.0.1 " << primary.port() << " 1\n"
                               << "sentinel down-after-milliseconds group 500\n"
                               << "sentinel failover-timeout group 2000\n";
        pid_ = testing::start_redis({"redis-sentinel", config_, "--sentinel"}, "+monitor");
    }
    ~Sentinel() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Sentinel(const Sentinel&) = delete;
    Sentinel& operator=(const Sentinel&) = delete;

    [[nodiscard]] std::string url(const std::string& group = "group") const {
        return "redis+sentinel://127.0.0.1:" + std::to_string(port_) + "/" + group;
    }

 private:
    std::uint16_t port_;
    std::string config_;
    pid_t pid_ = -1;
};

TEST(RedisSentinel, B07_LocksGoOnAtTheNewPrimary) {
    RedisServer primary({}, RedisServer::Listen::kTcp);
    RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(primary.port())},
                        RedisServer::Listen::kTcp);
    while (primary.ask({"INFO", "replication"}).text.find("state=online") == std::string::npos)
        ::usleep(20'000);  // replication tells nobody when it is in step
    const Sentinel sentinel(primary);
    LockClient locks = LockClient::open(sentinel.url()).value();
    auto held = locks.acquire("x", {.ttl = 2s}).value();
    const auto fence = held.fence();
    // It has heard of the replica before the primary dies.
    while (replica.ask({"INFO", "clients"}).text.find("connected_clients:1\r") != std::string::npos)
        ::usleep(20'000);  // Sentinel publishes this nowhere
    ASSERT_EQ(primary.ask({"WAIT", "1", "1000"}).integer, 1);
    primary.stop();
    const auto next = locks.lock("y", kPatience);
    ASSERT_TRUE(next.ok()) << next.error().message;
    static_cast<void>(held.release());
    const auto again = locks.lock("x", kPatience);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_GT(again->fence(), fence);
    EXPECT_NE(replica.ask({"ROLE"}).items.at(0).text, "slave");
}

TEST(RedisSentinel, AGroupThatNobodyKnowsIsNamed) {
    RedisServer primary({}, RedisServer::Listen::kTcp);
    const Sentinel sentinel(primary);
    LockClient locks = LockClient::open(sentinel.url("other")).value();
    const auto refused = locks.lock("x", 500ms);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);
    EXPECT_NE(refused.error().message.find("other"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace sekali
