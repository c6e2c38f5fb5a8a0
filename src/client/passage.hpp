#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "engine/ports.hpp"

namespace sekali::client {

/// A few fault points, as rows of `base::kFaultPoints`.
class FaultPoints {
 public:
    void add(std::size_t fault_index) { indices_.at(count_++) = fault_index; }
    [[nodiscard]] std::span<const std::size_t> all() const {
        return std::span(indices_).first(count_);
    }

 private:
    std::array<std::size_t, 6> indices_{};
    std::size_t count_ = 0;
};

/// The fault points that one command passes on its way to a port and back. One command may stand
/// for several arrows of the protocol: a queue and locks that live in the store move in its
/// transaction.
class Passage {
 public:
    explicit Passage(const engine::QueueCommand& command);
    Passage(const engine::StoreCommand& command, bool joint_queue, bool locks_in_store);
    explicit Passage(const engine::LockCommand& command);

    /// The points just before the request is sent.
    [[nodiscard]] const FaultPoints& departing() const { return departing_; }
    /// The points when its answer is there; none for an error.
    [[nodiscard]] FaultPoints arriving(const Result<engine::QueueReply>& reply) const;
    [[nodiscard]] FaultPoints arriving(const Result<engine::StoreReply>& reply) const;
    [[nodiscard]] FaultPoints arriving(const Result<engine::LockReply>& reply) const;

 private:
    [[nodiscard]] FaultPoints settled(const engine::Settled& reply) const;

    FaultPoints departing_;
    FaultPoints arriving_;
    engine::Outcome::Kind outcome_ = engine::Outcome::Kind::kSuccess;
    bool acks_with_commit_ = false;
    bool unlocks_with_commit_ = false;
};

}  // namespace sekali::client
