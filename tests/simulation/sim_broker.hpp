#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "engine/ports.hpp"

namespace sekali::sim {

/// A queue without custody, as AMQP's: it can neither delay nor find a job, and what is not
/// acknowledged when a connection breaks is delivered again: so often, and then it lies among the
/// dead letters until somebody publishes it anew.
class Broker {
 public:
    /// `delivery_limit` 0: none.
    explicit Broker(std::size_t delivery_limit) : delivery_limit_(delivery_limit) {}

    void publish(engine::Envelope job) { ready_.push_back(std::move(job)); }
    [[nodiscard]] engine::Claimed deliver(const engine::Claim& claim);
    /// False: that delivery is not, or no longer, this broker's.
    bool acknowledge(const engine::RunRef& run) { return take(run).has_value(); }
    bool give_back(const engine::RunRef& run);
    [[nodiscard]] bool knows(const engine::RunRef& run) const;
    void disconnect(const std::string& worker);
    [[nodiscard]] bool has(const std::string& job) const;
    /// What a person does who finds dead letters and has mended their cause: there is no limit from
    /// here on. Returns how many there were.
    std::size_t publish_dead_letters();

 private:
    struct Unacknowledged {
        std::string worker;
        engine::Envelope job;
    };
    std::optional<engine::Envelope> take(const engine::RunRef& run);
    void deliver_again(engine::Envelope job);

    std::size_t delivery_limit_;
    std::map<std::string, std::size_t> delivered_;  ///< How often, by job id.
    std::deque<engine::Envelope> dead_letters_;
    std::deque<engine::Envelope> ready_;
    std::map<std::uint64_t, Unacknowledged> unacknowledged_;  ///< By delivery token.
    std::uint64_t deliveries_ = 0;
};

}  // namespace sekali::sim
