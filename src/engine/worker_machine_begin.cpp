#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

constexpr Millis kRefusedWait{1000};

}  // namespace

std::string lock_token_of(std::string_view worker, RunId run) {
    return std::string{worker} + "/" + std::to_string(run);
}

void WorkerMachine::Core::take_up(Run& run) {
    touched_.push_back(run.id);
    run.lock_token = lock_token_of(config_.worker, run.id);
    if (run.ref.lock_key.empty() || config_.locks_in_store) {
        send_begin(run);
        return;
    }
    enter(run, Stage::kLocking);
    run.locks.push_back({.name = run.ref.lock_key,
                         .token = run.lock_token,
                         .lease = Lease(run.setup->policy.lock_ttl, now_)});
    send_lock(run);
}

void WorkerMachine::Core::send_lock(Run& run) {
    LockAcquire command{.ns = config_.ns,
                        .name = run.ref.lock_key,
                        .owner = config_.worker,
                        .token = run.lock_token,
                        .ttl = run.setup->policy.lock_ttl};
    sent(run, send(LockCommand{std::move(command)}, {.purpose = Purpose::kRun, .subject = run.id}));
}

void WorkerMachine::Core::lock_answered(Run& run, const LockReply& reply) {
    if (stopping_) {
        give_back(run, std::nullopt);
        return;
    }
    if (reply.kind == LockReply::Kind::kAcquired) {
        run.locks.front().granted = true;
        send_begin(run);
        return;
    }
    // The store decides what that means, and parks the job behind its lock key if it is to wait.
    run.locks.clear();
    run.lock_refused = true;
    send_begin(run);
}

void WorkerMachine::Core::lock_failed(Run& run) {
    if (stopping_ || run.setup->on_lock_unavailable == OnLockUnavailable::kWait) {
        give_back(run, kRefusedWait);
        return;
    }
    run.lock_refused = run.lock_out_of_reach =
        run.setup->on_lock_unavailable == OnLockUnavailable::kFail;
    send_begin(run);
}

void WorkerMachine::Core::send_begin(Run& run) {
    if (run.stage != Stage::kBeginning) {
        enter(run, Stage::kBeginning);
        run.request = {};
    }
    Begin command;
    command.job = run.row.job;
    command.run = run.ref;
    command.policy = run.setup->policy;
    command.lease = config_.lease;
    command.attempts = run.row.attempts;
    command.may_take_over = trust_.whole_lease(now_);
    command.random = random_.next();
    command.lock_token = run.lock_token;
    command.lock_refused = run.lock_refused;
    if (run.lock_out_of_reach && run.setup->policy.on_busy == OnBusy::kWait) {
        command.policy.on_busy = OnBusy::kFail;  // the kind's `on_lock_unavailable` asks for it
    }
    command.adopt = !joint() && !config_.queue.custody;
    if (command.adopt) command.job.payload = run.payload;
    sent(run, send(StoreCommand{std::move(command)},
                   {.purpose = Purpose::kRun, .subject = run.id, .epoch = 0}));
}

/// A begin that may have been applied is asked for until its answer is known: a run that nobody
/// started must not look like one that vanished.
void WorkerMachine::Core::begin_failed(Run& run, const Error& error) {
    run.maybe_begun = run.maybe_begun || error.applied == Applied::kMaybe;
    if (run.maybe_begun) {
        retry_later(run.request);
    } else if (stopping_ || run.lost) {
        give_back(run, std::nullopt);
    } else if (error.retryable || error.code == ErrorCode::kUnreachable) {
        retry_later(run.request);
    } else {
        give_back(run, kRefusedWait);
    }
}

void WorkerMachine::Core::begin_answered(Run& run, BeginReply reply) {
    if (auto* started = std::get_if<Started>(&reply)) {
        begun(run, std::move(*started));
    } else {
        refused(run, std::move(reply));
    }
}

void WorkerMachine::Core::begun(Run& run, Started started) {
    run.ref.epoch = started.epoch;
    run.ref.fence = started.fence;
    run.started = std::move(started);
    run.begun_at = now_;
    run.record_lease.emplace(config_.lease, *run.request.first_sent);
    run.record_lease->sent(*run.request.first_sent);
    if (run.setup->max_hold && !run.ref.lock_key.empty()) {
        run.hold_until = *run.request.first_sent + *run.setup->max_hold;
    }
    run.look_at = now_ + kBetweenLooks;
    if (!joint() && !config_.queue.custody) {
        Errand errand;
        errand.steps.emplace_back(QueueCommand{Acknowledge{run.ref}});
        add_errand(std::move(errand));
    }
    if (run.record_lease->deadline() <= now_ && !run.lost) run.lost = StopReason::kLeaseLost;
    if (run.started->lock_lost && !run.lost) run.lost = StopReason::kLockLost;
    if (stopping_) {
        hand_back(run, StopReason::kShutdown);
    } else if (run.lost) {
        hand_back(run, *run.lost);
    } else if (run.started->probe_first) {
        ask_probe(run);
    } else {
        start_handler(run);
    }
}

void WorkerMachine::Core::refused(Run& run, BeginReply reply) {
    Errand errand;
    const bool gone = std::holds_alternative<Gone>(reply);
    if (!joint() && !config_.queue.custody) {
        errand.steps.emplace_back(QueueCommand{Acknowledge{run.ref}});
    } else if (!joint() && std::holds_alternative<Ended>(reply)) {
        errand.steps.emplace_back(QueueCommand{Acknowledge{run.ref}});
    } else if (!joint() && !gone) {
        const auto* parked = std::get_if<Parked>(&reply);
        const auto delay = parked != nullptr ? parked->delay : std::nullopt;
        errand.steps.emplace_back(QueueCommand{Return{run.ref, delay.value_or(config_.lease)}});
    }
    add_lock_releases(run, errand);
    add_errand(std::move(errand));
    run.refused = std::move(reply);
    close(run);
}

void WorkerMachine::Core::start_handler(Run& run) {
    enter(run, Stage::kRunning);
    run.request = {};
    run.alive = run.handled = true;
    run.handler_at = now_;
    run.deadline = now_ + run.setup->policy.timeout;
    action::StartHandler start{.run = run.id,
                               .ref = run.ref,
                               .delivery = {run.row},
                               .started = *run.started,
                               .deadline = *run.deadline};
    start.delivery.row.job.payload = std::exchange(run.payload, {});
    act(std::move(start));
}

void WorkerMachine::Core::ask_probe(Run& run) {
    enter(run, Stage::kProbing);
    run.request = {};
    run.alive = true;
    run.handler_at = now_;
    run.deadline = now_ + run.setup->policy.timeout;
    action::AskProbe ask{.run = run.id,
                         .ref = run.ref,
                         .delivery = {run.row},
                         .started = *run.started,
                         .deadline = *run.deadline};
    ask.delivery.row.job.payload = run.payload;
    act(std::move(ask));
}

void WorkerMachine::Core::handle(event::ProbeEnded& ended) {
    Run* run = find(ended.run);
    if (run == nullptr || !run->alive) return;
    run->alive = false;
    if (run->stage != Stage::kProbing && run->stage != Stage::kStuck) return;
    const bool told = ended.answer != Answer::Kind::kCannotTell;
    if (run->stop && *run->stop != StopReason::kTimeout && !told) {
        hand_back(*run, *run->stop);
        return;
    }
    Answer answer;
    answer.run = run->ref;
    answer.job = run->row.job;
    answer.policy = run->setup->policy;
    answer.kind = ended.answer;
    answer.result = std::move(ended.result);
    answer.resolves_job = answer.policy.whole_answer;
    run->answer = std::move(answer);
    enter(*run, Stage::kAnswering);
    run->request = {};
    send_answer(*run);
}

void WorkerMachine::Core::send_answer(Run& run) {
    sent(run, send(StoreCommand{*run.answer},
                   {.purpose = Purpose::kRun, .subject = run.id, .epoch = run.ref.epoch}));
}

void WorkerMachine::Core::answer_answered(Run& run, const StoreReply& reply) {
    if (const auto* settled = std::get_if<Settled>(&reply)) {
        run.settled = *settled;
        tell_outside(run);
        close(run);
    } else if (stopping_) {
        hand_back(run, StopReason::kShutdown);
    } else if (run.stop || run.leases_over) {
        hand_back(run, run.stop.value_or(StopReason::kLeaseLost));
    } else {
        start_handler(run);
    }
}

/// Ends a begun run whose handler never started, so that nothing of it can be unknown.
void WorkerMachine::Core::hand_back(Run& run, StopReason reason) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::kInterrupted;
    outcome.reason = to_string(reason);
    outcome.nothing_applied = true;
    settle(run, std::move(outcome));
}

}  // namespace sekali::engine
