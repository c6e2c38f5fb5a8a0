#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "engine/ports.hpp"

namespace sekali::sim {

/// A queue without custody, as AMQP's: it can neither delay nor find a job, and what is not
/// acknowledged when a connection breaks is delivered again.
class Broker {
 public:
    void publish(engine::Envelope job) { ready_.push_back(std::move(job)); }
    [[nodiscard]] engine::Claimed deliver(const engine::Claim& claim);
    /// False: that delivery is not, or no longer, this broker's.
    bool acknowledge(const engine::RunRef& run) { return take(run).has_value(); }
    bool give_back(const engine::RunRef& run);
    [[nodiscard]] bool knows(const engine::RunRef& run) const;
    void disconnect(const std::string& worker);
    [[nodiscard]] bool has(const std::string& job) const;

 private:
    struct Unacknowledged {
        std::string worker;
        engine::Envelope job;
    };
    std::optional<engine::Envelope> take(const engine::RunRef& run);

    std::deque<engine::Envelope> ready_;
    std::map<std::uint64_t, Unacknowledged> unacknowledged_;  ///< By delivery token.
    std::uint64_t deliveries_ = 0;
};

}  // namespace sekali::sim
