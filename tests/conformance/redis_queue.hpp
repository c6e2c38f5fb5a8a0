#pragma once

#include <memory>
#include <string>

#include "engine/operations.hpp"
#include "engine/ports.hpp"

namespace sekali::conformance {

/// Queues on a real Redis, by a clock of the test's.
class RedisQueue {
 public:
    virtual ~RedisQueue() = default;
    [[nodiscard]] virtual engine::QueuePort& port() = 0;
    virtual void enqueue(const engine::EnqueueRequest& request) = 0;
    virtual void pause(const std::string& queue, bool paused) = 0;
    virtual void advance(engine::Millis by) = 0;
};

[[nodiscard]] std::unique_ptr<RedisQueue> make_redis_queue();

}  // namespace sekali::conformance
