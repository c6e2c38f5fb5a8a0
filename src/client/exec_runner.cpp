#include "client/exec_runner.hpp"

#include <fmt/format.h>

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/faults.hpp"
#include "base/limits.hpp"
#include "client/outcomes.hpp"

namespace sekali::client {
namespace {

using engine::Answer;
using engine::Outcome;

/// A probe's exit status for "it did not happen"; 0 is "it happened".
constexpr int kExitDidNotHappen = 4;

process::StopReason reason_for(engine::StopReason reason) {
    switch (reason) {
        case engine::StopReason::kTimeout:
            return process::StopReason::kTimeout;
        case engine::StopReason::kCancel:
            return process::StopReason::kCancel;
        case engine::StopReason::kShutdown:
            return process::StopReason::kShutdown;
        case engine::StopReason::kLeaseLost:
        case engine::StopReason::kLockLost:
            break;
    }
    return process::StopReason::kLeaseLost;
}

std::string_view interruption_name(std::optional<process::StopReason> reason) {
    switch (reason.value_or(process::StopReason::kLeaseLost)) {
        case process::StopReason::kCancel:
            return "cancelled";
        case process::StopReason::kShutdown:
            return "shutdown";
        default:
            return "lease_lost";
    }
}

Outcome::Kind kind_of(const process::ExecOutcome& end) {
    switch (end.result) {
        case process::ExecResult::kSuccess:
            return Outcome::Kind::kSuccess;
        case process::ExecResult::kPermanent:
            return Outcome::Kind::kPermanent;
        case process::ExecResult::kSnooze:
            return Outcome::Kind::kSnooze;
        case process::ExecResult::kCancel:
            return Outcome::Kind::kCancel;
        case process::ExecResult::kCrashed:
            return Outcome::Kind::kCrashed;
        case process::ExecResult::kGuardLost:
            return Outcome::Kind::kInterrupted;
        case process::ExecResult::kStopped:
            return end.stopped_by == process::StopReason::kTimeout ? Outcome::Kind::kTimeout
                                                                   : Outcome::Kind::kInterrupted;
        case process::ExecResult::kRetryable:
        case process::ExecResult::kNotStarted:
            break;
    }
    return Outcome::Kind::kRetry;
}

Outcome outcome_of(const process::ExecOutcome& end, bool all_gone) {
    Outcome outcome;
    outcome.kind = kind_of(end);
    outcome.error = end.error;
    outcome.reason = end.reason;
    outcome.nothing_applied = end.nothing_applied;
    outcome.process_gone = all_gone;
    outcome.delay = end.delay;
    if (end.result == process::ExecResult::kGuardLost) {
        outcome.reason = "guard_lost";
    } else if (outcome.kind == Outcome::Kind::kInterrupted) {
        outcome.reason = interruption_name(end.stopped_by);
    }
    return outcome;
}

Answer::Kind answer_of(const process::ExecOutcome& end, int wait_status) {
    if (end.result == process::ExecResult::kSuccess) return Answer::Kind::kHappened;
    const bool exited = end.result == process::ExecResult::kRetryable && WIFEXITED(wait_status);
    if (exited && WEXITSTATUS(wait_status) == kExitDidNotHappen) return Answer::Kind::kDidNot;
    return Answer::Kind::kCannotTell;
}

/// Whether this worker could not start a program, rather than this program not be started.
bool is_shortage(int errno_value) {
    switch (errno_value) {
        case EAGAIN:
        case ECANCELED:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return true;
        default:
            return false;
    }
}

/// A shortage is the worker's, not the job's: it is handed back and no attempt is spent.
Outcome not_started(std::string error, bool shortage) {
    Outcome outcome = failed_run(std::move(error), true);
    if (!shortage) return outcome;
    outcome.kind = Outcome::Kind::kInterrupted;
    outcome.reason = "not_started";
    return outcome;
}

}  // namespace

ExecRunner::ExecRunner(process::Guard& guard, std::map<std::string, ExecKind, std::less<>> kinds,
                       StoreAddress store, std::shared_ptr<Inbox> inbox,
                       std::function<void()> on_guard_lost)
    : guard_(guard),
      kinds_(std::move(kinds)),
      store_(std::move(store)),
      inbox_(std::move(inbox)),
      on_guard_lost_(std::move(on_guard_lost)) {}

void ExecRunner::start(engine::action::StartHandler request) {
    const auto kind = kinds_.find(request.delivery.row.job.kind);
    SEKALI_ASSERT(kind != kinds_.end(), "an exec handler was started whose kind has no command");
    if (SEKALI_FAULT("handler.before")) {
        inbox_->push(engine::event::HandlerEnded{request.run, failed_run(kFailedByTest, false)});
        return;
    }
    launch({request.run, Role::kHandler, kind->second.handler}, request.ref, request.delivery,
           request.started, request.deadline);
}

void ExecRunner::probe(engine::action::AskProbe request) {
    const auto kind = kinds_.find(request.delivery.row.job.kind);
    SEKALI_ASSERT(kind != kinds_.end(), "an exec handler is asked about whose kind has no command");
    if (kind->second.probe.empty()) {
        inbox_->push(engine::event::ProbeEnded{request.run, Answer::Kind::kCannotTell, {}});
        return;
    }
    launch({request.run, Role::kProbe, kind->second.probe}, request.ref, request.delivery,
           request.started, request.deadline);
}

void ExecRunner::launch(Launch what, const engine::RunRef& ref, const engine::Delivery& delivery,
                        const engine::Started& started, engine::LocalTime deadline) {
    process::SpawnRequest request;
    request.argv = std::move(what.argv);
    request.env =
        child_environment({.ref = ref,
                           .queue = delivery.row.job.queue,
                           .attempt = started.attempt,
                           .deadline_ms = base::wall_ms() + (deadline - local_now()).count()},
                          store_);
    request.stdin_bytes = delivery.row.job.payload;
    request.stdout_cap = base::kMaxResultBytes;
    request.stderr_tail_cap = base::kMaxErrorBytes;
    request.attempt_id = fmt::format("{}:{}", ref.job_id, ref.epoch);
    // Held over the spawn, because its events may come before it returns.
    const std::lock_guard guard(mutex_);
    const auto id = guard_.spawn(std::move(request));
    Child child{.run = what.run, .role = what.role, .stop = {}, .exited = {}};
    if (id.ok()) {
        children_.emplace(*id, std::move(child));
    } else if (what.role == Role::kProbe) {
        inbox_->push(engine::event::ProbeEnded{what.run, Answer::Kind::kCannotTell, {}});
    } else {
        inbox_->push(engine::event::HandlerEnded{
            what.run, not_started(id.error().message, id.error().retryable)});
    }
}

void ExecRunner::ask_stop(engine::RunId run, engine::StopReason reason) {
    const std::lock_guard guard(mutex_);
    for (auto& [id, child] : children_) {
        if (child.run != run) continue;
        if (!child.stop.reason) child.stop.reason = reason_for(reason);
        child.stop.term_sent = true;
        guard_.signal_group(id, SIGTERM);
    }
}

void ExecRunner::kill(engine::RunId run) {
    const std::lock_guard guard(mutex_);
    for (auto& [id, child] : children_) {
        if (child.run != run) continue;
        child.stop.kill_sent = true;
        guard_.signal_group(id, SIGKILL);
    }
}

void ExecRunner::on_guard_event(process::GuardEvent event) {
    if (auto* exited = std::get_if<process::ChildExited>(&event)) {
        on_exit(std::move(*exited));
    } else if (const auto* gone = std::get_if<process::ChildGone>(&event)) {
        on_gone(gone->id, true);
    } else if (const auto* failed = std::get_if<process::SpawnFailed>(&event)) {
        on_spawn_failure(*failed);
    } else if (const auto* guard_lost = std::get_if<process::GuardLost>(&event)) {
        lose_all(guard_lost->all_gone);
    }
}

void ExecRunner::on_exit(process::ChildExited exited) {
    const std::lock_guard guard(mutex_);
    const auto found = children_.find(exited.id);
    if (found == children_.end()) return;
    if (!exited.all_gone) {
        found->second.exited = std::move(exited);
        return;
    }
    finish(found->second, std::move(exited), true);
    children_.erase(found);
}

void ExecRunner::on_gone(process::ChildId id, bool all_gone) {
    const std::lock_guard guard(mutex_);
    const auto found = children_.find(id);
    if (found == children_.end() || !found->second.exited) return;
    finish(found->second, std::move(*found->second.exited), all_gone);
    children_.erase(found);
}

void ExecRunner::on_spawn_failure(const process::SpawnFailed& failed) {
    const std::lock_guard guard(mutex_);
    const auto found = children_.find(failed.id);
    if (found == children_.end()) return;
    const Child& child = found->second;
    if (child.role == Role::kProbe) {
        inbox_->push(engine::event::ProbeEnded{child.run, Answer::Kind::kCannotTell, {}});
    } else {
        inbox_->push(engine::event::HandlerEnded{
            child.run, not_started(failed.message, is_shortage(failed.errno_value))});
    }
    children_.erase(found);
}

void ExecRunner::lose_all(bool all_gone) {
    {
        const std::lock_guard guard(mutex_);
        for (auto& [id, child] : children_) {
            process::ChildExited lost;
            lost.id = id;
            lost.guard_lost = true;
            finish(child, child.exited ? std::move(*child.exited) : std::move(lost), all_gone);
        }
        children_.clear();
    }
    on_guard_lost_();
}

void ExecRunner::finish(const Child& child, process::ChildExited exited, bool all_gone) {
    const process::ExecOutcome end =
        process::map_exec_end({.wait_status = exited.wait_status,
                               .guard_lost = exited.guard_lost,
                               .stderr_tail = exited.output.stderr_tail},
                              exited.output.control, child.stop);
    if (child.role == Role::kProbe) {
        inbox_->push(engine::event::ProbeEnded{
            child.run, answer_of(end, exited.wait_status),
            capped_result(exited.output.stdout_bytes, exited.output.stdout_total)});
        return;
    }
    Outcome outcome = outcome_of(end, all_gone);
    if (outcome.kind == Outcome::Kind::kSuccess)
        outcome.result = capped_result(exited.output.stdout_bytes, exited.output.stdout_total);
    if (SEKALI_FAULT("handler.after")) {
        outcome = failed_run(kFailedByTest, false);
    }
    inbox_->push(engine::event::HandlerEnded{child.run, std::move(outcome)});
}

}  // namespace sekali::client
