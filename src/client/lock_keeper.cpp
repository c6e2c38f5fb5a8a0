#include "client/lock_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/inbox.hpp"

namespace sekali::client {
namespace {

using engine::LocalTime;
using engine::Millis;

/// A lock is renewed at a third of its life, and again after a twelfth where the store did not
/// answer.
constexpr int kRenewShare = 3;
constexpr int kRepeatShare = 12;
constexpr Millis kLongestLook{std::chrono::minutes{1}};

}  // namespace

LockKeeper::LockKeeper(std::shared_ptr<Backend> backend)
    : backend_(std::move(backend)), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

LockKeeper::~LockKeeper() = default;

void LockKeeper::keep(std::shared_ptr<HeldLock> lock, LocalTime asked) {
    {
        const std::lock_guard guard(shared_->mutex);
        lock->valid_until = asked + lock->ttl;
        lock->renew_at = asked + lock->ttl / kRenewShare;
        const std::string& token = lock->token;
        shared_->locks.emplace(token, std::move(lock));
    }
    shared_->changed.notify_one();
}

bool LockKeeper::forget(HeldLock& lock) {
    const std::lock_guard guard(shared_->mutex);
    shared_->locks.erase(lock.token);
    return !std::exchange(lock.over, true);
}

LocalTime LockKeeper::valid_until(const HeldLock& lock) const {
    const std::lock_guard guard(shared_->mutex);
    return lock.valid_until;
}

void LockKeeper::watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Locks lapsed;
        Locks due;
        LocalTime now = local_now();
        {
            std::unique_lock guard(shared_->mutex);
            const LocalTime look = next_look(*shared_);
            if (look > now) {
                const auto before = shared_->locks.size();
                shared_->changed.wait_for(guard, stop, look - now,
                                          [&] { return shared_->locks.size() != before; });
                now = local_now();
            }
            lapsed = take_lapsed(*shared_, now);
            due = take_due(*shared_, now);
        }
        // Outside of the mutex, because whoever listens may ask about the lock.
        for (const auto& lock : lapsed)
            lock->lost.request_stop();
        renew(due, now);
    }
}

LocalTime LockKeeper::next_look(const Shared& shared) {
    LocalTime look = local_now() + kLongestLook;
    for (const auto& [token, lock] : shared.locks) {
        look = std::min(look, lock->valid_until);
        if (lock->renewed && !lock->asking) look = std::min(look, lock->renew_at);
    }
    return look;
}

LockKeeper::Locks LockKeeper::take_lapsed(Shared& shared, LocalTime now) {
    Locks lapsed;
    std::erase_if(shared.locks, [&](const auto& entry) {
        const auto& lock = entry.second;
        if (lock->valid_until > now) return false;
        lock->over = true;
        lapsed.push_back(lock);
        return true;
    });
    return lapsed;
}

LockKeeper::Locks LockKeeper::take_due(Shared& shared, LocalTime now) {
    Locks due;
    for (const auto& [token, lock] : shared.locks) {
        if (!lock->renewed || lock->asking || lock->renew_at > now) continue;
        lock->asking = true;
        due.push_back(lock);
    }
    return due;
}

void LockKeeper::renew(const Locks& due, LocalTime now) {
    std::vector<engine::LockPort::Call> calls;
    for (const auto& lock : due) {
        calls.push_back(
            {engine::LockRenew{
                 .ns = lock->ns, .name = lock->name, .token = lock->token, .ttl = lock->ttl},
             [shared = shared_, lock, now](const Result<engine::LockReply>& reply) {
                 answered(*shared, lock, now, reply);
             }});
    }
    if (!calls.empty()) backend_->ports().submit(std::move(calls));
}

void LockKeeper::answered(Shared& shared, const std::shared_ptr<HeldLock>& lock, LocalTime asked,
                          const Result<engine::LockReply>& reply) {
    bool lost = false;
    {
        const std::lock_guard guard(shared.mutex);
        lock->asking = false;
        if (lock->over) return;
        if (!reply.ok()) {
            lock->renew_at = local_now() + lock->ttl / kRepeatShare;
        } else if (reply->kind == engine::LockReply::Kind::kAcquired) {
            lock->valid_until = asked + lock->ttl;
            lock->renew_at = asked + lock->ttl / kRenewShare;
        } else {
            lost = lock->over = true;
            shared.locks.erase(lock->token);
        }
    }
    shared.changed.notify_one();
    if (lost) lock->lost.request_stop();
}

}  // namespace sekali::client
