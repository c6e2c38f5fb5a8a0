#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

void earlier(std::optional<LocalTime>& least, const std::optional<LocalTime>& at) {
    if (at && (!least || *at < *least)) least = at;
}

}  // namespace

/// Whether it is still worth renewing: a lost lease, or an end that is durable, ends it.
bool WorkerMachine::Core::keeps_leases(const Run& run) const {
    return !run.leases_over && run.stage != Stage::kLingering;
}

void WorkerMachine::Core::advance_leases(Run& run) {
    if (!keeps_leases(run)) return;
    renew_due(run);
    // While the begin is asked for, its answer decides about the claim.
    const bool asking = run.stage == Stage::kBeginning && (run.request.tag != 0 || run.maybe_begun);
    const bool lease_over = (run.record_lease && !asking && run.record_lease->deadline() <= now_) ||
                            (run.delivery_lease && run.delivery_lease->deadline() <= now_);
    const bool lock_over = std::any_of(run.locks.begin(), run.locks.end(), [&](const auto& lock) {
        return lock.granted && lock.lease.deadline() <= now_;
    });
    if (lease_over || lock_over) {
        lose(run, lease_over ? StopReason::kLeaseLost : StopReason::kLockLost);
    }
}

void WorkerMachine::Core::renew_due(Run& run) {
    const Waiter waiter{.subject = run.id, .epoch = run.ref.epoch};
    auto for_purpose = [&](Purpose purpose) {
        Waiter copy = waiter;
        copy.purpose = purpose;
        return copy;
    };
    // A begin sets the lease by itself, and a renewal of the bare claim would say nothing about it.
    if (run.record_lease && run.stage != Stage::kBeginning &&
        run.record_lease->renew_at() <= now_) {
        run.record_lease->sent(now_);
        send(StoreCommand{Renew{run.ref, config_.lease}}, for_purpose(Purpose::kRenew));
    } else if (run.look_at && *run.look_at <= now_ && run.alive && !run.stop) {
        run.look_at.reset();
        send(StoreCommand{Renew{run.ref, config_.lease, true}}, for_purpose(Purpose::kLook));
    }
    if (run.delivery_lease && run.delivery_lease->renew_at() <= now_) {
        run.delivery_lease->sent(now_);
        send(QueueCommand{Extend{run.ref, config_.lease}}, for_purpose(Purpose::kExtend));
    }
    for (HeldLock& lock : run.locks) {
        if (!lock.granted || lock.lease.renew_at() > now_) continue;
        lock.lease.sent(now_);
        Waiter of_lock = for_purpose(Purpose::kRenewLock);
        of_lock.lock_token = lock.token;
        send(LockCommand{LockRenew{config_.ns, lock.name, lock.token, lock.lease.length()}},
             std::move(of_lock));
    }
}

void WorkerMachine::Core::renew_answered(const Waiter& waiter, const Result<StoreReply>& reply) {
    Run* run = find(waiter.subject);
    if (run == nullptr || !keeps_leases(*run) || run->ref.epoch != waiter.epoch) return;
    if (waiter.purpose == Purpose::kLook) run->look_at = now_ + kBetweenLooks;
    const auto* renewed = reply.ok() ? std::get_if<Renewed>(&*reply) : nullptr;
    if (renewed == nullptr) {
        if (waiter.purpose == Purpose::kRenew) run->record_lease->failed(now_);
        return;
    }
    // An end that was sent may have been applied already; then there is no lease to keep.
    const bool ending = run->committing || run->stage == Stage::kSettling ||
                        run->stage == Stage::kAnswering || run->stage == Stage::kBeginning;
    if (!renewed->kept || !renewed->lock_kept) {
        if (!ending) lose(*run, renewed->kept ? StopReason::kLockLost : StopReason::kLeaseLost);
        return;
    }
    if (waiter.purpose == Purpose::kRenew) run->record_lease->kept(waiter.sent);
    if (renewed->cancel && !run->committing) ask_stop(*run, StopReason::kCancel);
}

void WorkerMachine::Core::extend_answered(const Waiter& waiter, const Result<QueueReply>& reply) {
    Run* run = find(waiter.subject);
    if (run == nullptr || !run->delivery_lease) return;
    if (reply.ok()) {
        run->delivery_lease->kept(waiter.sent);
    } else {
        run->delivery_lease->failed(now_);
    }
}

void WorkerMachine::Core::lock_renew_answered(const Waiter& waiter,
                                              const Result<LockReply>& reply) {
    Run* run = find(waiter.subject);
    if (run == nullptr || !keeps_leases(*run)) return;
    const auto lock = std::find_if(run->locks.begin(), run->locks.end(), [&](const auto& held) {
        return held.token == waiter.lock_token;
    });
    if (lock == run->locks.end()) return;
    if (!reply.ok()) {
        lock->lease.failed(now_);
    } else if (reply->kind == LockReply::Kind::kAcquired) {
        lock->lease.kept(waiter.sent);
    } else {
        lose(*run, StopReason::kLockLost);
    }
}

/// One lease is over: none of the run's is renewed any more, and whatever runs is told.
void WorkerMachine::Core::lose(Run& run, StopReason reason) {
    run.leases_over = true;
    run.lost = reason;
    switch (run.stage) {
        case Stage::kWaiting:
            give_back(run, std::nullopt);
            break;
        case Stage::kLocking:
        case Stage::kBeginning:
            if (run.request.tag == 0 && !run.maybe_begun) give_back(run, std::nullopt);
            break;
        case Stage::kProbing:
        case Stage::kRunning:
            ask_stop(run, reason);
            break;
        default:
            break;
    }
}

/// Every time that is named here is acted upon in `advance`, or the timer would spin.
std::optional<LocalTime> WorkerMachine::Core::next_wake(const Run& run) const {
    std::optional<LocalTime> wake = run.request.retry_at;
    if (run.stage == Stage::kWaiting && !run.row.suspect) earlier(wake, idle_claim_at(run));
    if (run.alive && !run.committing && run.stage != Stage::kStuck) {
        earlier(wake, run.deadline);
        earlier(wake, run.hold_until);
        earlier(wake, run.kill_at);
    }
    if (!keeps_leases(run)) return wake;
    if (run.alive && !run.stop) earlier(wake, run.look_at);
    const bool asking = run.stage == Stage::kBeginning && (run.request.tag != 0 || run.maybe_begun);
    if (run.record_lease && run.stage != Stage::kBeginning) {
        earlier(wake, run.record_lease->renew_at());
    }
    if (run.record_lease && !asking) earlier(wake, run.record_lease->deadline());
    if (run.delivery_lease) {
        earlier(wake, run.delivery_lease->renew_at());
        earlier(wake, run.delivery_lease->deadline());
    }
    for (const HeldLock& lock : run.locks) {
        if (!lock.granted) continue;
        earlier(wake, lock.lease.renew_at());
        earlier(wake, lock.lease.deadline());
    }
    return wake;
}

}  // namespace sekali::engine
