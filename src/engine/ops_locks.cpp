#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

LockReply busy(Tables& tables, const LockRow& lock) {
    LockReply reply;
    reply.kind = LockReply::Kind::kBusy;
    reply.fence = lock.fence;
    reply.holder = lock.owner.empty() ? lock.reserved_for : lock.owner;
    const StoreTime until = lock.owner.empty() ? lock.reserved_until : lock.lease_until;
    reply.remaining = std::max(Millis{0}, until - tables.now());
    return reply;
}

}  // namespace

LockReply acquire_lock(Tables& tables, const LockAcquire& request) {
    LockRow lock;
    if (auto known = tables.lock(request.ns, request.name)) {
        lock = *known;
    } else {
        lock.ns = request.ns;
        lock.name = request.name;
        lock.fence = tables.fence_floor();
    }
    const bool own = !lock.token.empty() && lock.token == request.token;
    if (!own) {
        if (lock_is_live(tables, lock)) return busy(tables, lock);
        const bool lapsed = !lock.owner.empty() && !owner_is_gone(tables, lock.owner);
        if (lapsed && !request.may_take_over) return busy(tables, lock);
        if (!lock.reserved_for.empty() && lock.reserved_until > tables.now()) {
            return busy(tables, lock);
        }
        ++lock.fence;
    }
    lock.owner = request.owner;
    lock.token = request.token;
    lock.job_id.clear();
    lock.lease_until = tables.now() + request.ttl;
    lock.reserved_for.clear();
    lock.reserved_until = StoreTime{};
    tables.put_lock(lock);
    LockReply reply;
    reply.kind = LockReply::Kind::kAcquired;
    reply.fence = lock.fence;
    return reply;
}

LockReply renew_lock(Tables& tables, const LockRenew& request) {
    LockReply reply;
    auto lock = tables.lock(request.ns, request.name);
    if (!lock || lock->token != request.token) {
        reply.kind = LockReply::Kind::kLost;
        return reply;
    }
    lock->lease_until = tables.now() + request.ttl;
    tables.put_lock(*lock);
    reply.kind = LockReply::Kind::kAcquired;
    reply.fence = lock->fence;
    return reply;
}

LockReply release_lock(Tables& tables, const LockRelease& request) {
    LockReply reply;
    auto lock = tables.lock(request.ns, request.name);
    if (!lock || lock->token != request.token) {
        reply.kind = LockReply::Kind::kLost;
        return reply;
    }
    lock->owner.clear();
    lock->token.clear();
    lock->lease_until = tables.now();
    tables.put_lock(*lock);
    wake_for_lock(tables, request.ns, request.name);
    reply.kind = LockReply::Kind::kReleased;
    return reply;
}

bool break_lock(Tables& tables, std::string_view ns, std::string_view name) {
    auto lock = tables.lock(ns, name);
    if (!lock || lock->owner.empty()) return false;
    lock->owner.clear();
    lock->token.clear();
    lock->job_id.clear();
    lock->lease_until = tables.now();
    ++lock->fence;
    tables.put_lock(*lock);
    wake_for_lock(tables, ns, name);
    return true;
}

}  // namespace sekali::engine
