#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

constexpr Millis kBetweenRecoveries{1000};
constexpr Millis kLeavePatience{1000};

}  // namespace

// ---- errands

void WorkerMachine::Core::add_lock_releases(const Run& run, Errand& errand) {
    for (const HeldLock& lock : run.locks) {
        errand.steps.emplace_back(LockCommand{LockRelease{config_.ns, lock.name, lock.token}});
    }
}

void WorkerMachine::Core::add_errand(Errand errand) {
    if (errand.steps.empty()) return;
    errand.give_up_at = now_ + config_.lease;
    const std::uint64_t id = ++last_id_;
    send_errand(id, errands_.emplace(id, std::move(errand)).first->second);
}

void WorkerMachine::Core::send_errand(std::uint64_t id, Errand& errand) {
    const Waiter waiter{.purpose = Purpose::kErrand, .subject = id};
    const auto& step = errand.steps.at(errand.next);
    errand.request.retry_at.reset();
    if (const auto* command = std::get_if<QueueCommand>(&step)) {
        errand.request.tag = send(QueueCommand{*command}, waiter);
    } else {
        errand.request.tag = send(LockCommand{std::get<LockCommand>(step)}, waiter);
    }
}

void WorkerMachine::Core::errand_answered(const Waiter& waiter, bool ok) {
    const auto found = errands_.find(waiter.subject);
    if (found == errands_.end()) return;
    Errand& errand = found->second;
    errand.request.tag = 0;
    // A delivery of a queue without custody ends by its answer, or with the connection.
    const bool must_arrive = !joint() && !config_.queue.custody && !stopping_ &&
                             std::holds_alternative<QueueCommand>(errand.steps.at(errand.next));
    const bool give_up = !ok && now_ >= errand.give_up_at && !must_arrive;
    if (!ok && !give_up) {
        retry_later(errand.request);
        return;
    }
    errand.request.failures = 0;
    if (++errand.next < errand.steps.size()) {
        send_errand(found->first, errand);
    } else {
        errands_.erase(found);
    }
}

void WorkerMachine::Core::advance_errands() {
    for (auto& [id, errand] : errands_) {
        if (errand.request.retry_at && *errand.request.retry_at <= now_) send_errand(id, errand);
    }
}

// ---- heartbeat and recovery

void WorkerMachine::Core::heartbeat(bool leave) {
    Heartbeat command;
    command.worker.id = config_.worker;
    command.worker.ns = config_.ns;
    command.worker.host = config_.host;
    command.worker.pid = config_.pid;
    command.worker.queues = config_.queues;
    for (const auto& [kind, setup] : config_.kinds)
        command.worker.kinds.push_back(kind);
    command.worker.concurrency = static_cast<std::uint32_t>(config_.concurrency);
    command.worker.stopping = stopping_ || quiet_;
    command.lease = config_.lease;
    command.leave = leave;
    heartbeat_at_ = now_ + config_.lease / 3;
    heartbeat_in_flight_ = !leave;
    send(StoreCommand{std::move(command)},
         {.purpose = leave ? Purpose::kLeave : Purpose::kHeartbeat});
}

void WorkerMachine::Core::recover() {
    Recover command;
    command.ns = config_.ns;
    command.worker = config_.worker;
    for (const auto& [kind, setup] : config_.kinds) {
        command.kinds.push_back(kind);
        command.policies.emplace(kind, setup.policy);
    }
    command.after_seq = recover_after_;
    command.may_take_over = trust_.whole_lease(now_);
    recover_in_flight_ = true;
    send(StoreCommand{std::move(command)}, {.purpose = Purpose::kRecover});
}

void WorkerMachine::Core::recover_answered(const Result<StoreReply>& reply) {
    recover_in_flight_ = false;
    // Often enough that the answers alone show no gap above a third of the lease.
    const Millis interval = std::min(kBetweenRecoveries, config_.lease / 4);
    recover_at_ = now_ + interval;
    const auto* recovered = reply.ok() ? std::get_if<Recovered>(&*reply) : nullptr;
    if (recovered == nullptr) return;
    recover_after_ = recovered->next_seq;
    if (recover_after_ != 0) recover_at_ = now_;
    if (recovered->jobs > 0) something_ready();
}

// ---- the way out

void WorkerMachine::Core::handle(event::QuietRequested&) {
    if (quiet_ || stopping_) return;
    quiet_ = true;
    heartbeat_at_ = now_;  // so that lists show it
    give_back_unstarted();
}

void WorkerMachine::Core::handle(event::StopRequested&) {
    begin_stop(config_.grace);
}

void WorkerMachine::Core::handle(event::StopNow&) {
    begin_stop(now_, now_, now_ + kExitPatience);
}

/// What runs is asked to stop at four fifths and killed near the end, so that everything is handed
/// back before the grace is over.
void WorkerMachine::Core::begin_stop(Millis grace) {
    begin_stop(now_ + grace * 4 / 5, now_ + grace * 19 / 20, now_ + grace + kExitPatience);
}

void WorkerMachine::Core::begin_stop(LocalTime stop_at, LocalTime kill_at, LocalTime exit_by) {
    stop_at_ = stopping_ ? std::min(stop_at_, stop_at) : stop_at;
    kill_at_ = stopping_ ? std::min(kill_at_, kill_at) : kill_at;
    exit_by_ = stopping_ ? std::min(exit_by_, exit_by) : exit_by;
    if (stopping_) return;
    stopping_ = true;
    heartbeat_at_ = now_;  // so that lists show it
    give_back_unstarted();
}

void WorkerMachine::Core::give_back_unstarted() {
    for (auto next = runs_.begin(); next != runs_.end();) {
        Run& run = (next++)->second;
        const bool idle = run.request.tag == 0 && !run.maybe_begun;
        if (run.stage == Stage::kWaiting ||
            ((run.stage == Stage::kLocking || run.stage == Stage::kBeginning) && idle)) {
            give_back(run, std::nullopt);
        }
    }
}

void WorkerMachine::Core::advance_stop() {
    if (!stopping_) return;
    if (!stop_asked_ && stop_at_ <= now_) {
        stop_asked_ = true;
        for (auto& [id, run] : runs_)
            ask_stop(run, StopReason::kShutdown);
    }
    if (kill_at_ <= now_) {
        for (auto& [id, run] : runs_) {
            if (run.kill_at && !run.killed) run.kill_at = std::min(*run.kill_at, now_);
        }
    }
}

void WorkerMachine::Core::advance_exit() {
    if (!stopping_) return;
    settle_stuck();
    if (exit_by_ <= now_) {
        exit();
        return;
    }
    const bool claims_open = (claims_in_flight_ > 0 || claim_is_lost_) && !config_.queue.push;
    if (!runs_.empty() || !errands_.empty() || claims_open) return;
    if (!leave_by_) {
        leave_by_ = now_ + kLeavePatience;
        heartbeat(true);
    } else if (left_ || *leave_by_ <= now_) {
        exit();
    }
}

void WorkerMachine::Core::exit() {
    action::Exit last;
    last.drained = drained_;
    last.recycle = recycle_;
    last.unsettled = static_cast<std::size_t>(std::count_if(
        runs_.begin(), runs_.end(), [](const auto& entry) { return entry.second.started; }));
    exited_ = true;
    act(std::move(last));
}

}  // namespace sekali::engine
