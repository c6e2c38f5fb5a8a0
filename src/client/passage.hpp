#pragma once

#include <array>
#include <cstddef>

#include "engine/ports.hpp"

namespace sekali::client {

/// The fault points that one command passes on its way to a port and back. One command may stand
/// for several arrows of the protocol: a queue and locks that live in the store move in its
/// transaction.
class Passage {
 public:
    explicit Passage(const engine::QueueCommand& command);
    Passage(const engine::StoreCommand& command, bool joint_queue, bool locks_in_store);
    explicit Passage(const engine::LockCommand& command);

    /// To be called just before the request is sent; true when the test wants it to be lost.
    [[nodiscard]] bool depart() const { return departing_.reach(); }
    /// To be called when the answer is there; true when the test wants it to be lost.
    [[nodiscard]] bool arrive(const Result<engine::QueueReply>& reply) const;
    [[nodiscard]] bool arrive(const Result<engine::StoreReply>& reply) const;
    [[nodiscard]] bool arrive(const Result<engine::LockReply>& reply) const;

 private:
    class Points {
     public:
        void add(std::size_t fault_index) { indices_.at(count_++) = fault_index; }
        [[nodiscard]] bool reach() const;

     private:
        std::array<std::size_t, 6> indices_{};
        std::size_t count_ = 0;
    };
    [[nodiscard]] Points settled(const engine::Settled& reply) const;

    Points departing_;
    Points arriving_;
    engine::Outcome::Kind outcome_ = engine::Outcome::Kind::kSuccess;
    bool acks_with_commit_ = false;
    bool unlocks_with_commit_ = false;
};

}  // namespace sekali::client
