#include "process/exec_outcome.hpp"

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "base/limits.hpp"
#include "process/text.hpp"

namespace sekali::process {
namespace {

std::string describe_signal(int signal) {
    std::string text = "signal " + std::to_string(signal);
    if (const char* name = ::sigabbrev_np(signal)) text += std::string(" (SIG") + name + ")";
    return text;
}

/// stderr speaks for the handler; an end without a word is told by its status.
std::string error_text(const ExecEnd& end) {
    const std::size_t last = end.stderr_tail.find_last_not_of(" \t\r\n");
    if (last == std::string_view::npos) return describe_wait_status(end.wait_status);
    return utf8_tail(end.stderr_tail.substr(0, last + 1), base::kMaxErrorBytes);
}

bool sent_by_us(int signal, const StopRecord& stop) {
    return (signal == SIGTERM && stop.term_sent) || (signal == SIGKILL && stop.kill_sent);
}

/// The handler's own words on its control descriptor, which come with exit status 0 or 75.
void apply_directive(const ControlReport& control, ExecOutcome& outcome) {
    if (!control.directive) return;
    if (const auto* snooze = std::get_if<Snooze>(&*control.directive)) {
        outcome.result = ExecResult::kSnooze;
        outcome.nothing_applied = true;
        outcome.delay = snooze->delay;
    } else if (const auto* cancel = std::get_if<CancelJob>(&*control.directive)) {
        outcome.result = ExecResult::kCancel;
        outcome.reason = cancel->reason;
    } else if (const auto* retry = std::get_if<RetryIn>(&*control.directive)) {
        outcome.result = ExecResult::kRetryable;
        outcome.nothing_applied = true;
        outcome.delay = retry->delay;
    }
}

void map_exit_status(int status, const ControlReport& control, ExecOutcome& outcome) {
    if (status == 0 || status == kExitRetry) {
        outcome.nothing_applied = status == kExitRetry;
        outcome.result = status == 0          ? ExecResult::kSuccess
                         : outcome.stopped_by ? ExecResult::kStopped
                                              : ExecResult::kRetryable;
        apply_directive(control, outcome);
        return;
    }
    if (status == kExitPermanent) {
        outcome.result = ExecResult::kPermanent;
        return;
    }
    outcome.result = outcome.stopped_by ? ExecResult::kStopped : ExecResult::kRetryable;
    if (control.directive) {
        const auto* retry = std::get_if<RetryIn>(&*control.directive);
        if (retry != nullptr) outcome.delay = retry->delay;
    }
}

}  // namespace

std::string describe_wait_status(int wait_status) {
    if (WIFSIGNALED(wait_status)) return "killed by " + describe_signal(WTERMSIG(wait_status));
    return "exit status " + std::to_string(WEXITSTATUS(wait_status));
}

ExecOutcome map_exec_end(const ExecEnd& end, const ControlReport& control, const StopRecord& stop) {
    ExecOutcome outcome;
    outcome.stopped_by = stop.reason;
    if (end.guard_lost) {
        outcome.result = ExecResult::kGuardLost;
        outcome.error = "killed because the guard process of its worker died";
        return outcome;
    }
    if (WIFSIGNALED(end.wait_status)) {
        outcome.result = sent_by_us(WTERMSIG(end.wait_status), stop) ? ExecResult::kStopped
                                                                     : ExecResult::kCrashed;
    } else {
        map_exit_status(WEXITSTATUS(end.wait_status), control, outcome);
    }
    const bool says_all = outcome.result == ExecResult::kSuccess ||
                          outcome.result == ExecResult::kSnooze ||
                          outcome.result == ExecResult::kCancel;
    if (!says_all) outcome.error = error_text(end);
    return outcome;
}

ExecOutcome map_spawn_failure(std::string_view program, int errno_value) {
    ExecOutcome outcome;
    outcome.result = ExecResult::kNotStarted;
    outcome.nothing_applied = true;
    outcome.error = "cannot run " + valid_utf8(program) + ": " + std::strerror(errno_value);
    return outcome;
}

}  // namespace sekali::process
