#include "conformance/redis_queue.hpp"

#include "backends/redis/client.hpp"
#include "backends/redis/queue_jobs.hpp"
#include "backends/redis/queue_port.hpp"
#include "redis/redis_server.hpp"

namespace sekali::conformance {
namespace {

sekali::testing::RedisServer& shared_server() {
    static sekali::testing::RedisServer server;
    return server;
}

class RealRedisQueue final : public RedisQueue {
 public:
    RealRedisQueue()
        : server_(std::make_shared<redis::Client>(
              loop_, redis::parse_address(shared_server().url()).value(), nullptr)),
          port_(server_, kSettings),
          jobs_(server_, kSettings) {
        shared_server().ask({"FLUSHALL"});
        shared_server().ask({"SET", "clock", "1700000000000"});
    }
    ~RealRedisQueue() override { server_->close(); }

    engine::QueuePort& port() override { return port_; }
    void enqueue(const engine::EnqueueRequest& request) override {
        jobs_.enqueue({request}).at(0).value();
    }
    void pause(const std::string& queue, bool paused) override {
        jobs_.pause("default", queue, paused).value();
    }
    void advance(engine::Millis by) override {
        shared_server().ask({"INCRBY", "clock", std::to_string(by.count())});
    }

 private:
    static constexpr redis::QueueSettings kSettings{
        .clock = "local function clock() return tonumber(redis.call('get', 'clock')) end\n"};

    redis::Loop loop_;
    std::shared_ptr<redis::Client> server_;
    redis::QueuePort port_;
    redis::QueueJobs jobs_;
};

}  // namespace

std::unique_ptr<RedisQueue> make_redis_queue() {
    return std::make_unique<RealRedisQueue>();
}

}  // namespace sekali::conformance
