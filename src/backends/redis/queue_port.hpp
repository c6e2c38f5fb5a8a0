#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/queue_scripts.hpp"
#include "backends/redis/server.hpp"
#include "engine/ports.hpp"

namespace sekali::redis {

struct QueueSettings {
    /// How long a job that ended is remembered; dead ones until somebody drops or retries them.
    Millis keep_ended{std::chrono::hours{24}};
    std::string_view clock = kServerClock;
};

/// The queues of a Redis, which has custody of their jobs: it delays, finds and gives them out
/// again when their lease is over, by its own clock. What a job's counters come to is for others
/// to say. Thread-safe. Its server is closed before it goes.
class QueuePort final : public engine::QueuePort {
 public:
    QueuePort(std::shared_ptr<Server> server, const QueueSettings& settings);

    [[nodiscard]] engine::QueueTraits traits() const override {
        return {.joint = false, .custody = true, .push = false};
    }
    /// Extensions go first, claims last.
    void submit(std::vector<Call> calls) override;

    /// Calls `ready` when a job of the queue may have become ready, and when that may have been
    /// missed. One listener for each queue. Only on the loop's thread.
    void listen(std::string_view ns, std::string_view queue, std::function<void()> ready);
    void forget(std::string_view ns, std::string_view queue);

 private:
    using Done = std::function<void(Result<engine::QueueReply>)>;
    struct Claiming;
    struct Batch;
    struct Batches;
    struct Place {
        std::string queue;  ///< The queue's key.
        std::string channel;
        std::uint64_t delivery = 0;
    };
    struct Memory;

    void claim(const std::shared_ptr<Claiming>& claiming);
    void claimed(Claiming& claiming, const std::string& queue, const Reply& reply);
    void sort_in(Batches& batches, const Place& place, const engine::QueueCommand& command,
                 Done done) const;
    [[nodiscard]] redis::Call call_of(Batch batch) const;

    std::shared_ptr<Server> server_;
    const std::shared_ptr<const QueueScripts> scripts_;
    const Millis keep_ended_;
    std::atomic<std::size_t> turn_{0};
    const std::shared_ptr<Memory> memory_;
};

}  // namespace sekali::redis
