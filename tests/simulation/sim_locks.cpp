#include "simulation/sim_locks.hpp"

#include <variant>

namespace sekali::sim {

using engine::LockReply;

LockReply LockService::execute(const engine::LockCommand& command, Millis now) {
    const Millis own{static_cast<Millis::rep>(static_cast<double>(now.count()) * clock_rate_)};
    if (const auto* wanted = std::get_if<engine::LockAcquire>(&command)) {
        return acquire(*wanted, own);
    }
    if (const auto* renewed = std::get_if<engine::LockRenew>(&command)) {
        return renew(*renewed, own);
    }
    return release(std::get<engine::LockRelease>(command), own);
}

bool LockService::knows(const engine::LockCommand& command) const {
    return std::visit([this](const auto& one) { return tokens_.contains(one.token); }, command);
}

LockService::Grant* LockService::live(const std::string& name, Millis now) {
    const auto found = grants_.find(name);
    return found == grants_.end() || found->second.until <= now ? nullptr : &found->second;
}

LockReply LockService::acquire(const engine::LockAcquire& request, Millis now) {
    tokens_.insert(request.token);
    const Grant* grant = live(request.name, now);
    LockReply reply;
    if (grant != nullptr && grant->token != request.token) {
        reply.holder = grant->owner;
        reply.remaining = grant->until - now;
        return reply;
    }
    grants_[request.name] = {request.owner, request.token, now + request.ttl};
    reply.kind = LockReply::Kind::kAcquired;
    return reply;
}

LockReply LockService::renew(const engine::LockRenew& request, Millis now) {
    Grant* grant = live(request.name, now);
    LockReply reply;
    reply.kind = LockReply::Kind::kLost;
    if (grant == nullptr || grant->token != request.token) return reply;
    grant->until = now + request.ttl;
    reply.kind = LockReply::Kind::kAcquired;
    return reply;
}

LockReply LockService::release(const engine::LockRelease& request, Millis now) {
    const Grant* grant = live(request.name, now);
    LockReply reply;
    reply.kind = LockReply::Kind::kLost;
    if (grant == nullptr || grant->token != request.token) return reply;
    grants_.erase(request.name);
    reply.kind = LockReply::Kind::kReleased;
    return reply;
}

}  // namespace sekali::sim
