#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/address.hpp"
#include "backends/redis/client.hpp"
#include "backends/redis/loop.hpp"
#include "backends/redis/reply.hpp"

namespace sekali::testing {

/// A private Redis in a temporary folder, that ends with the test.
class RedisServer {
 public:
    enum class Listen : std::uint8_t { kUnix, kTcp };

    /// `options` are words of redis-server's command line, such as `--requirepass`, `secret`.
    explicit RedisServer(std::vector<std::string> options = {}, Listen listen = Listen::kUnix);
    ~RedisServer();
    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;

    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] std::string socket_path() const { return (folder_ / "redis.sock").string(); }

    /// Returns when it takes connections, on the same place as before.
    void start();
    void stop();  ///< At once, as by a crash.
    void freeze();
    void thaw();

    /// Asks it one thing and waits; an error reply is a `Reply` of that type.
    redis::Reply ask(std::vector<std::string> words);

 private:
    std::filesystem::path folder_;
    std::vector<std::string> options_;
    Listen listen_;
    std::uint16_t port_ = 0;
    pid_t pid_ = -1;
};

/// Starts a program of Redis and returns when it has said `sign`; it is killed with this process.
[[nodiscard]] pid_t start_redis(const std::vector<std::string>& words, const std::string& sign);

/// A port of the loopback address that nobody uses now.
[[nodiscard]] std::uint16_t free_port();

/// Sends one call and waits for its answer.
[[nodiscard]] Result<redis::Reply> ask(redis::Server& server, redis::Call call);

}  // namespace sekali::testing
