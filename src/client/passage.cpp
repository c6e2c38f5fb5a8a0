#include "client/passage.hpp"

#include <algorithm>
#include <variant>

#include "base/faults.hpp"

namespace sekali::client {
namespace {

using base::fault_index;
using Kind = engine::Outcome::Kind;

std::size_t departure_of(Kind outcome) {
    switch (outcome) {
        case Kind::kSuccess:
            return fault_index("commit.before");
        case Kind::kPermanent:
            return fault_index("dead.before");
        case Kind::kSnooze:
            return fault_index("snooze.before");
        case Kind::kCancel:
            return fault_index("cancel.before");
        case Kind::kInterrupted:
            return fault_index("release.before");
        case Kind::kRetry:
        case Kind::kTimeout:
        case Kind::kCrashed:
        case Kind::kHold:
            break;
    }
    return fault_index("retry.before");
}

std::size_t arrival_of(Kind outcome) {
    if (outcome == Kind::kSnooze) return fault_index("snooze.after");
    if (outcome == Kind::kInterrupted) return fault_index("release.after");
    return fault_index("retry.after");
}

}  // namespace

Passage::Passage(const engine::QueueCommand& command) {
    if (std::holds_alternative<engine::Claim>(command)) {
        departing_.add(fault_index("claim.before"));
        arriving_.add(fault_index("claim.after"));
    } else if (std::holds_alternative<engine::Acknowledge>(command)) {
        departing_.add(fault_index("ack.before"));
        arriving_.add(fault_index("ack.after"));
    } else if (std::holds_alternative<engine::Return>(command)) {
        departing_.add(fault_index("release.before"));
        arriving_.add(fault_index("release.after"));
    } else {
        departing_.add(fault_index("renew.before"));
        arriving_.add(fault_index("renew.after"));
    }
}

Passage::Passage(const engine::StoreCommand& command, bool joint_queue, bool locks_in_store) {
    if (const auto* begin = std::get_if<engine::Begin>(&command)) {
        const bool takes_lock = locks_in_store && !begin->job.lock_key.empty();
        if (takes_lock) departing_.add(fault_index("lock.before"));
        departing_.add(fault_index("begin.before"));
        if (takes_lock) arriving_.add(fault_index("lock.after"));
        arriving_.add(fault_index("begin.after"));
    } else if (const auto* settle = std::get_if<engine::Settle>(&command)) {
        outcome_ = settle->outcome.kind;
        acks_with_commit_ = joint_queue;
        unlocks_with_commit_ = locks_in_store && !settle->run.lock_key.empty();
        departing_.add(departure_of(outcome_));
    } else if (std::holds_alternative<engine::Renew>(command)) {
        departing_.add(fault_index("renew.before"));
        arriving_.add(fault_index("renew.after"));
    } else if (std::holds_alternative<engine::Recover>(command)) {
        departing_.add(fault_index("recover.before"));
        arriving_.add(fault_index("recover.after"));
    }
}

Passage::Passage(const engine::LockCommand& command) {
    if (std::holds_alternative<engine::LockAcquire>(command)) {
        departing_.add(fault_index("lock.before"));
        arriving_.add(fault_index("lock.after"));
    } else if (std::holds_alternative<engine::LockRelease>(command)) {
        departing_.add(fault_index("unlock.before"));
        arriving_.add(fault_index("unlock.after"));
    } else {
        departing_.add(fault_index("renew.before"));
        arriving_.add(fault_index("renew.after"));
    }
}

FaultPoints Passage::arriving(const Result<engine::QueueReply>& reply) const {
    if (!reply.ok()) return {};
    FaultPoints points = arriving_;
    const auto* claimed = std::get_if<engine::Claimed>(&*reply);
    if (claimed == nullptr) return points;
    const bool begins = std::any_of(claimed->deliveries.begin(), claimed->deliveries.end(),
                                    [](const auto& delivery) { return delivery.begun; });
    if (begins) points.add(fault_index("begin.after"));
    return points;
}

FaultPoints Passage::arriving(const Result<engine::LockReply>& reply) const {
    return reply.ok() ? arriving_ : FaultPoints();
}

FaultPoints Passage::arriving(const Result<engine::StoreReply>& reply) const {
    if (!reply.ok()) return {};
    const auto* answer = std::get_if<engine::Settled>(&*reply);
    return answer != nullptr ? settled(*answer) : arriving_;
}

FaultPoints Passage::settled(const engine::Settled& reply) const {
    FaultPoints points;
    if (reply.kind != engine::Settled::Kind::kApplied) return points;
    switch (reply.state) {
        case engine::JobState::kSucceeded:
            points.add(fault_index("commit.after"));
            break;
        case engine::JobState::kDead:
            points.add(fault_index("dead.after"));
            break;
        case engine::JobState::kCancelled:
            points.add(fault_index("cancel.after"));
            break;
        default:
            points.add(arrival_of(outcome_));
            return points;
    }
    if (acks_with_commit_) {
        points.add(fault_index("ack.before"));
        points.add(fault_index("ack.after"));
    }
    if (unlocks_with_commit_) {
        points.add(fault_index("unlock.before"));
        points.add(fault_index("unlock.after"));
    }
    return points;
}

}  // namespace sekali::client
