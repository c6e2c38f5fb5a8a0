#include "client/lock_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/ids.hpp"
#include "client/inbox.hpp"

namespace sekali::client {
namespace {

using engine::LocalTime;
using engine::Millis;

/// A lock is renewed at a third of its life, many at different times shortly before; and again
/// after a twelfth where the service did not answer.
constexpr int kRenewShare = 3;
constexpr int kSpreadShare = 12;
constexpr int kRepeatShare = 12;
/// A holder hears of the end of its lock while there is still time to stop.
constexpr int kTellShare = 20;
/// What falls due within this time goes out in one batch.
constexpr Millis kGather{10};
constexpr Millis kLongestLook{std::chrono::minutes{1}};

}  // namespace

LockKeeper::LockKeeper(std::shared_ptr<LockService> service)
    : service_(std::move(service)), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

LockKeeper::~LockKeeper() = default;

/// The service has granted `life`, of which `certain` is sure, to a request from `asked`.
void LockKeeper::granted(Shared& shared, HeldLock& lock, LocalTime asked, Millis certain,
                         Millis life) {
    lock.valid_until = asked + certain;
    lock.tell_at = lock.valid_until - life / kTellShare;
    std::uniform_int_distribution<Millis::rep> spread(0, life.count() / kSpreadShare);
    lock.renew_at = asked + life / kRenewShare - Millis{spread(shared.random)};
    if (lock.hold_until && asked + life + kGather >= *lock.hold_until) lock.renewed = false;
}

void LockKeeper::schedule(Shared& shared, const LockRef& lock) {
    const bool renews = lock->renewed && !lock->asking;
    const LocalTime next = renews ? std::min(lock->renew_at, lock->tell_at) : lock->tell_at;
    lock->agenda_key = {next, shared.next_number++};
    shared.agenda.emplace(lock->agenda_key, lock);
    if (shared.agenda.begin()->second == lock) shared.changed.notify_one();
}

void LockKeeper::keep(LockRef lock, LocalTime asked) {
    const std::lock_guard guard(shared_->mutex);
    granted(*shared_, *lock, asked, service_->certain(lock->ttl), lock->ttl);
    schedule(*shared_, lock);
}

bool LockKeeper::forget(HeldLock& lock) {
    const std::lock_guard guard(shared_->mutex);
    shared_->agenda.erase(lock.agenda_key);
    return !std::exchange(lock.over, true);
}

LocalTime LockKeeper::valid_until(const HeldLock& lock) const {
    const std::lock_guard guard(shared_->mutex);
    return lock.valid_until;
}

void LockKeeper::watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        std::vector<LockRef> lapsed;
        std::vector<Renewal> due;
        LocalTime now = local_now();
        {
            std::unique_lock guard(shared_->mutex);
            const auto& agenda = shared_->agenda;
            const LocalTime first =
                agenda.empty() ? now + kLongestLook : agenda.begin()->first.first;
            if (first > now) {
                shared_->changed.wait_for(guard, stop, first - now, [&] {
                    return !agenda.empty() && agenda.begin()->first.first < first;
                });
                now = local_now();
            }
            look(lapsed, due, now);
        }
        // Outside of the mutex, because whoever listens may ask about the lock.
        for (const LockRef& lock : lapsed)
            lock->lost.request_stop();
        submit(due, now);
    }
}

void LockKeeper::look(std::vector<LockRef>& lapsed, std::vector<Renewal>& due, LocalTime now) {
    auto& agenda = shared_->agenda;
    std::vector<LockRef> waiting;
    while (!agenda.empty() && agenda.begin()->first.first <= now + kGather) {
        LockRef lock = std::move(agenda.extract(agenda.begin()).mapped());
        if (lock->tell_at <= now) {
            lock->over = true;
            lapsed.push_back(std::move(lock));
            continue;
        }
        if (lock->renewed && !lock->asking && lock->renew_at <= now + kGather) {
            lock->asking = true;
            Millis life = lock->ttl;
            if (lock->hold_until) life = std::min(life, *lock->hold_until - now);
            due.push_back({lock, life});
        }
        waiting.push_back(std::move(lock));
    }
    for (const LockRef& lock : waiting)
        schedule(*shared_, lock);
}

void LockKeeper::submit(const std::vector<Renewal>& due, LocalTime now) {
    std::vector<engine::LockPort::Call> calls;
    calls.reserve(due.size());
    for (const auto& [lock, life] : due) {
        const Millis certain = service_->certain(life);
        calls.push_back(
            {engine::LockRenew{.ns = lock->ns,
                               .name = lock->name,
                               .token = lock->token,
                               .ttl = life,
                               .permit = lock->permit},
             [shared = shared_, lock, now, life, certain](const Result<engine::LockReply>& reply) {
                 bool lost = false;
                 {
                     const std::lock_guard guard(shared->mutex);
                     if (lock->over) return;
                     lock->asking = false;
                     shared->agenda.erase(lock->agenda_key);
                     if (!reply.ok()) {
                         lock->renew_at = local_now() + lock->ttl / kRepeatShare;
                     } else if (reply->kind == engine::LockReply::Kind::kAcquired) {
                         granted(*shared, *lock, now, certain, life);
                     } else {
                         lost = lock->over = true;
                     }
                     if (!lost) schedule(*shared, lock);
                 }
                 if (lost) lock->lost.request_stop();
             }});
    }
    if (!calls.empty()) service_->port().submit(std::move(calls));
}

}  // namespace sekali::client
