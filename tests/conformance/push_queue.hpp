#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/ports.hpp"

namespace sekali::conformance {

/// A broker that pushes, as AMQP does: it cannot delay, park or find a job, its deliveries have no
/// lease, and what is not acknowledged when a connection breaks is delivered again. A claim is
/// credit, answered as soon as there is a message for it. A delivery token is never used twice,
/// also where a message was published twice. `submit` only queues and `step` answers on the
/// caller's thread. Not thread-safe.
class PushQueue final : public engine::QueuePort {
 public:
    [[nodiscard]] engine::QueueTraits traits() const override {
        return {.joint = false, .custody = false, .push = true};
    }
    void submit(std::vector<Call> calls) override {
        for (Call& call : calls)
            submitted_.push_back(std::move(call));
    }

    void publish(engine::Envelope job) { ready_.push_back(std::move(job)); }

    /// Answers what can be answered; false when nothing could be. Answers may submit again.
    bool step() {
        std::vector<std::pair<Call, Result<engine::QueueReply>>> answers;
        std::deque<Call> waiting;
        while (!submitted_.empty()) {
            Call call = std::move(submitted_.front());
            submitted_.pop_front();
            if (const auto* claim = std::get_if<engine::Claim>(&call.command)) {
                engine::Claimed claimed = deliver(*claim);
                if (claimed.deliveries.empty()) {
                    waiting.push_back(std::move(call));
                } else {
                    answers.emplace_back(std::move(call), engine::QueueReply{std::move(claimed)});
                }
            } else {
                Result<engine::QueueReply> reply = answer(call.command);
                answers.emplace_back(std::move(call), std::move(reply));
            }
        }
        submitted_ = std::move(waiting);
        for (auto& [call, reply] : answers)
            call.done(std::move(reply));
        return !answers.empty();
    }

    /// The worker's connection breaks: what it has not acknowledged goes to the head of the queue.
    void disconnect(const std::string& worker) {
        for (auto entry = unacked_.rbegin(); entry != unacked_.rend(); ++entry) {
            if (entry->second.worker == worker) ready_.push_front(entry->second.job);
        }
        std::erase_if(unacked_, [&](const auto& entry) { return entry.second.worker == worker; });
        withdraw_credit(worker);
    }
    /// The worker wants no more: its open claims are forgotten, unanswered.
    void withdraw_credit(const std::string& worker) {
        std::erase_if(submitted_, [&](const Call& call) {
            const auto* claim = std::get_if<engine::Claim>(&call.command);
            return claim != nullptr && claim->worker == worker;
        });
    }
    /// The connection breaks under the next acknowledgement, before the broker has read it.
    void lose_next_ack() { ++acks_to_lose_; }

    [[nodiscard]] std::size_t ready() const { return ready_.size(); }
    [[nodiscard]] std::size_t unacked() const { return unacked_.size(); }

 private:
    struct Unacked {
        std::string worker;
        engine::Envelope job;
    };

    static bool is_for(const engine::Envelope& job, const engine::ClaimSpec& spec) {
        for (const std::string& queue : spec.queues) {
            if (job.ns == spec.ns && job.queue == queue) return true;
        }
        return false;
    }

    engine::Claimed deliver(const engine::Claim& claim) {
        engine::Claimed claimed;
        for (auto next = ready_.begin(); next != ready_.end();) {
            if (claimed.deliveries.size() == claim.spec.limit) {
                claimed.more = true;
                break;
            }
            if (!is_for(*next, claim.spec)) {
                ++next;
                continue;
            }
            engine::JobRow row;
            row.job = std::move(*next);
            row.state = engine::JobState::kRunning;
            row.owner = claim.worker;
            row.deliveries = ++last_token_;
            next = ready_.erase(next);
            unacked_[row.deliveries] = {claim.worker, row.job};
            claimed.deliveries.push_back({std::move(row)});
        }
        return claimed;
    }

    Result<engine::QueueReply> answer(const engine::QueueCommand& command) {
        if (const auto* back = std::get_if<engine::Return>(&command)) {
            if (back->delay) {
                return Error{.code = ErrorCode::kUsage,
                             .message = "this queue cannot delay: the store takes what waits"};
            }
            if (auto job = take(back->run)) ready_.push_front(*std::move(job));
            return engine::QueueReply{engine::Done{}};
        }
        if (const auto* acknowledge = std::get_if<engine::Acknowledge>(&command)) {
            if (acks_to_lose_ > 0) {
                --acks_to_lose_;
                disconnect(acknowledge->run.worker);
                return Error{.code = ErrorCode::kUnreachable,
                             .message = "the connection broke",
                             .applied = Applied::kMaybe,
                             .retryable = true};
            }
            take(acknowledge->run);
        }
        return engine::QueueReply{engine::Done{}};
    }

    /// A tag of an earlier connection is never sent to the broker (it would be another message's).
    std::optional<engine::Envelope> take(const engine::RunRef& run) {
        const auto found = unacked_.find(run.delivery);
        if (found == unacked_.end() || found->second.worker != run.worker) return std::nullopt;
        engine::Envelope job = std::move(found->second.job);
        unacked_.erase(found);
        return job;
    }

    std::deque<engine::Envelope> ready_;
    std::map<std::uint64_t, Unacked> unacked_;  ///< By delivery token.
    std::uint64_t last_token_ = 0;
    std::deque<Call> submitted_;
    std::size_t acks_to_lose_ = 0;
};

}  // namespace sekali::conformance
