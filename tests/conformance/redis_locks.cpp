#include "conformance/redis_locks.hpp"

#include <string>

#include "backends/redis/client.hpp"
#include "backends/redis/lock_port.hpp"
#include "redis/redis_server.hpp"

namespace sekali::conformance {
namespace {

/// Time passes for a key when its life gets shorter.
constexpr const char* kAge = R"lua(
for _, key in ipairs(redis.call('keys', '*')) do
    local left = redis.call('pttl', key)
    if left >= 0 then redis.call('pexpire', key, left - ARGV[1]) end
end
)lua";

sekali::testing::RedisServer& shared_server() {
    static sekali::testing::RedisServer server;
    return server;
}

class RedisLocks final : public LockBackend {
 public:
    explicit RedisLocks(redis::LockProfile profile)
        : port_(std::make_shared<redis::Client>(
                    loop_, redis::parse_address(shared_server().url()).value(), nullptr),
                {.profile = profile}) {
        shared_server().ask({"FLUSHALL"});
    }
    engine::LockPort& port() override { return port_; }
    void pump() override {}
    void advance(engine::Millis by) override {
        shared_server().ask({"EVAL", kAge, "0", std::to_string(by.count())});
    }

 private:
    redis::Loop loop_;
    redis::LockPort port_;
};

}  // namespace

std::unique_ptr<LockBackend> make_redis_locks(redis::LockProfile profile) {
    return std::make_unique<RedisLocks>(profile);
}

}  // namespace sekali::conformance
