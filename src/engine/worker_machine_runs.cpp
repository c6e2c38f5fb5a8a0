#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

constexpr Millis kKillPatience{5000};
constexpr Millis kKillPatienceStopping{500};

std::string_view still_running(StopReason reason) {
    switch (reason) {
        case StopReason::kTimeout:
            return "timed out, still running";
        case StopReason::kCancel:
            return "cancelled, still running";
        case StopReason::kLeaseLost:
            return "lease lost, still running";
        case StopReason::kLockLost:
            return "lock lost, still running";
        case StopReason::kShutdown:
            return "stopped, still running";
    }
    return "still running";
}

}  // namespace

void WorkerMachine::Core::ask_stop(Run& run, StopReason reason) {
    if (!run.alive || run.stop) return;
    run.stop = reason;
    run.kill_at = now_ + run.setup->policy.grace;
    act(action::AskStop{run.id, reason});
}

/// Timeout, `max_hold` and the grace after a stop; false when that closed the run. A handler that
/// waits for its commit has done its work: what keeps it is the store, and stopping it would gain
/// nothing.
bool WorkerMachine::Core::advance_limits(Run& run) {
    if (!run.alive || run.committing || run.stage == Stage::kStuck) return true;
    if (run.deadline && *run.deadline <= now_) {
        run.deadline.reset();
        ask_stop(run, StopReason::kTimeout);
    }
    if (run.hold_until && *run.hold_until <= now_) {
        run.hold_until.reset();
        if (!run.leases_over && run.stage != Stage::kLingering) lose(run, StopReason::kLockLost);
    }
    if (!run.kill_at || *run.kill_at > now_) return true;
    if (run.setup->killable && !run.killed) {
        run.killed = true;
        run.kill_at = now_ + (stopping_ ? kKillPatienceStopping : kKillPatience);
        act(action::KillRun{run.id});
        return true;
    }
    return stuck(run);
}

/// A handler that cannot be ended; false when that closed the run.
bool WorkerMachine::Core::stuck(Run& run) {
    run.kill_at.reset();
    if (!stopping_ && !recycle_) {
        recycle_ = true;  // the stop begins when every run has had its turn
        act(action::Recycle{run.id, run.ref, std::string(still_running(*run.stop))});
    }
    if (run.stage != Stage::kLingering) {
        enter(run, Stage::kStuck);
        return true;
    }
    close(run);  // its end is durable; only its thread is left
    return false;
}

/// The last thing before the exit: until then the leases of a handler that will not end are kept,
/// so that no second run starts beside it.
void WorkerMachine::Core::settle_stuck() {
    const bool others = std::any_of(runs_.begin(), runs_.end(), [](const auto& entry) {
        return entry.second.stage != Stage::kStuck;
    });
    if (others && now_ < kill_at_) return;
    for (auto& [id, run] : runs_) {
        if (run.stage != Stage::kStuck || run.committing) continue;
        Outcome outcome;
        outcome.process_gone = false;
        outcome.nothing_applied = !run.handled;
        outcome.error = still_running(*run.stop);
        settle(run, outcome_after_stop(run, std::move(outcome)));
    }
}

void WorkerMachine::Core::handle(event::CommitRequested& request) {
    Run* run = find(request.run);
    const bool open = run != nullptr && !run->committing &&
                      (run->stage == Stage::kRunning || run->stage == Stage::kStuck);
    if (!open) {
        Settled lost;
        lost.kind = Settled::Kind::kSuperseded;
        act(action::CompleteCommit{request.run, std::move(lost)});
        return;
    }
    Outcome outcome;
    outcome.kind = Outcome::Kind::kSuccess;
    outcome.result = std::move(request.result);
    run->settle = make_settle(*run, std::move(outcome));
    run->settle->effects = std::move(request.effects);
    run->committing = true;
    run->request = {};
    send_settle(*run);
}

void WorkerMachine::Core::handle(event::LockTaken& taken) {
    HeldLock lock{.name = std::move(taken.name),
                  .token = std::move(taken.token),
                  .fence = taken.fence,
                  .lease = Lease(taken.ttl, taken.asked),
                  .granted = true,
                  .extra = true};
    Run* run = find(taken.run);
    if (run != nullptr && (run->stage == Stage::kRunning || run->stage == Stage::kStuck)) {
        run->locks.push_back(std::move(lock));
        return;
    }
    Errand errand;
    errand.steps.emplace_back(LockCommand{LockRelease{config_.ns, lock.name, lock.token}});
    add_errand(std::move(errand));
}

void WorkerMachine::Core::handle(event::HandlerEnded& ended) {
    Run* run = find(ended.run);
    if (run == nullptr || !run->alive) return;
    run->alive = false;
    run->kill_at.reset();
    if (run->stage == Stage::kLingering) {
        close(*run);
    } else if (run->committing) {
        run->outcome = std::move(ended.outcome);
    } else if (run->stage == Stage::kRunning || run->stage == Stage::kStuck) {
        settle(*run, outcome_after_stop(*run, std::move(ended.outcome)));
    }
}

/// A handler that was asked to stop and ended without an answer of its own was ended by the stop.
Outcome WorkerMachine::Core::outcome_after_stop(const Run& run, Outcome outcome) const {
    using Kind = Outcome::Kind;
    const bool own_answer = outcome.process_gone &&
                            (outcome.kind == Kind::kSuccess || outcome.kind == Kind::kPermanent ||
                             outcome.kind == Kind::kCancel || outcome.kind == Kind::kHold);
    if (!run.stop || own_answer) return outcome;
    if (outcome.kind == Kind::kSnooze && *run.stop == StopReason::kShutdown) return outcome;
    const bool timed_out = *run.stop == StopReason::kTimeout && run.handled;
    outcome.kind = timed_out ? Kind::kTimeout : Kind::kInterrupted;
    outcome.reason = to_string(*run.stop);
    outcome.delay.reset();
    return outcome;
}

Settle WorkerMachine::Core::make_settle(const Run& run, Outcome outcome) {
    Settle settle;
    settle.run = run.ref;
    settle.job = run.row.job;
    settle.policy = run.setup->policy;
    settle.outcome = std::move(outcome);
    settle.random = random_.next();
    settle.ran_for = run.handled ? now_ - run.handler_at : Millis{0};
    for (const HeldLock& lock : run.locks) {
        if (lock.extra) settle.extra_locks.push_back({lock.name, lock.fence});
    }
    return settle;
}

void WorkerMachine::Core::settle(Run& run, Outcome outcome) {
    run.outcome = outcome;
    run.settle = make_settle(run, std::move(outcome));
    enter(run, Stage::kSettling);
    run.request = {};
    send_settle(run);
}

void WorkerMachine::Core::send_settle(Run& run) {
    sent(run, send(StoreCommand{*run.settle},
                   {.purpose = Purpose::kRun, .subject = run.id, .epoch = run.ref.epoch}));
}

void WorkerMachine::Core::settle_answered(Run& run, const Settled& settled) {
    run.settled = settled;
    tell_outside(run);
    close(run);
}

void WorkerMachine::Core::commit_answered(Run& run, const Settled& settled) {
    run.committing = false;
    act(action::CompleteCommit{run.id, settled});
    if (settled.kind == Settled::Kind::kEffectsFailed) {
        run.settle.reset();
        if (!run.alive) settle(run, outcome_after_stop(run, std::move(*run.outcome)));
        return;
    }
    run.outcome = std::move(run.settle->outcome);
    run.settled = settled;
    enter(run, Stage::kLingering);
    run.leases_over = true;
    tell_outside(run);
    if (!run.alive) close(run);
}

void WorkerMachine::Core::store_answered_run(Run& run, Result<StoreReply> reply) {
    if (run.stage == Stage::kBeginning) {
        if (!reply.ok()) {
            begin_failed(run, reply.error());
        } else if (auto* begin = std::get_if<BeginReply>(&*reply)) {
            begin_answered(run, std::move(*begin));
        } else {
            retry_later(run.request);
        }
        return;
    }
    if (!reply.ok()) {
        // Never dropped: whether it is still accepted is for the guard in the store to decide.
        retry_later(run.request);
    } else if (run.stage == Stage::kAnswering) {
        answer_answered(run, *reply);
    } else if (const auto* settled = std::get_if<Settled>(&*reply)) {
        if (run.committing) {
            commit_answered(run, *settled);
        } else {
            settle_answered(run, *settled);
        }
    } else {
        retry_later(run.request);
    }
}

void WorkerMachine::Core::resend(Run& run) {
    switch (run.stage) {
        case Stage::kLocking:
            send_lock(run);
            break;
        case Stage::kBeginning:
            send_begin(run);
            break;
        case Stage::kAnswering:
            send_answer(run);
            break;
        default:
            send_settle(run);
            break;
    }
}

/// Acknowledgement first, then the unlock: a waiter on the lock finds everything in its place.
void WorkerMachine::Core::tell_outside(Run& run) {
    Errand errand;
    const bool mine = run.settled->kind != Settled::Kind::kSuperseded;
    if (!joint() && config_.queue.custody && mine) {
        if (is_final(run.settled->state)) {
            errand.steps.emplace_back(QueueCommand{Acknowledge{run.ref}});
        } else {
            const bool waits =
                run.settled->state == JobState::kHeld || run.settled->state == JobState::kWaiting;
            auto delay = run.settled->retry_in;
            if (waits && !delay) delay = config_.lease;
            errand.steps.emplace_back(QueueCommand{Return{run.ref, delay}});
        }
    }
    add_lock_releases(run, errand);
    add_errand(std::move(errand));
}

void WorkerMachine::Core::close(Run& run) {
    action::RunClosed closed;
    closed.run = run.id;
    closed.ref = run.ref;
    if (run.handled) {
        closed.attempt = run.started->attempt;
        closed.duration = now_ - run.handler_at;
    }
    closed.outcome = std::move(run.outcome);
    closed.settled = std::move(run.settled);
    closed.refused = std::move(run.refused);
    closed.stopped = run.stop;
    if (run.started) note_run_time(now_ - run.begun_at);
    // An end may have made the next one ready; what was only given back would come again at once.
    if (closed.settled || closed.refused) something_ready();
    if (solo_ == run.id) solo_ = 0;
    act(std::move(closed));
    --staged(run.stage);
    wake_at(run, std::nullopt);
    runs_.erase(run.id);
}

}  // namespace sekali::engine
