#include "client/shell_log.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/durations.hpp"

namespace sekali::client {
namespace {

using engine::Outcome;
using observe::LogLevel;

LogLevel level_of(LogSeverity severity) {
    switch (severity) {
        case LogSeverity::kDebug:
            return LogLevel::kDebug;
        case LogSeverity::kInfo:
            return LogLevel::kInfo;
        case LogSeverity::kWarning:
            return LogLevel::kWarning;
        case LogSeverity::kError:
            break;
    }
    return LogLevel::kError;
}

/// What kind of trouble an outcome is; empty where it is none.
std::string_view error_class(const Outcome& outcome) {
    switch (outcome.kind) {
        case Outcome::Kind::kRetry:
            return "retryable";
        case Outcome::Kind::kPermanent:
            return "permanent";
        case Outcome::Kind::kTimeout:
            return "timeout";
        case Outcome::Kind::kCrashed:
            return "crash";
        case Outcome::Kind::kInterrupted:
            return "interrupted";
        case Outcome::Kind::kHold:
            return "unknown";
        case Outcome::Kind::kSuccess:
        case Outcome::Kind::kSnooze:
        case Outcome::Kind::kCancel:
            break;
    }
    return "";
}

struct Ending {
    LogLevel level = LogLevel::kInfo;
    std::string_view result;
    std::string sentence;
};

Ending settled_ending(const engine::Settled& settled, const Outcome& outcome) {
    switch (settled.kind) {
        case engine::Settled::Kind::kSuperseded:
            return {LogLevel::kWarning, "superseded", "another run has taken the key over"};
        case engine::Settled::Kind::kLockFenced:
            return {LogLevel::kWarning, "lock_fenced", "another run has taken the lock over"};
        case engine::Settled::Kind::kEffectsFailed:
        case engine::Settled::Kind::kApplied:
            break;
    }
    const std::string_view state = engine::to_string(settled.state);
    const std::string& why = outcome.error.empty() ? outcome.reason : outcome.error;
    if (settled.state == engine::JobState::kSucceeded) return {LogLevel::kInfo, state, "succeeded"};
    if (settled.retry_in) {
        return {LogLevel::kWarning, state,
                fmt::format("runs again in {}: {}", base::format_duration(*settled.retry_in), why)};
    }
    const bool bad =
        settled.state == engine::JobState::kDead || settled.state == engine::JobState::kHeld;
    return {bad ? LogLevel::kError : LogLevel::kInfo, state, fmt::format("{}: {}", state, why)};
}

Ending refused_ending(const engine::BeginReply& refused) {
    if (const auto* parked = std::get_if<engine::Parked>(&refused)) {
        return {LogLevel::kDebug, "waiting", fmt::format("waits for {}", parked->name)};
    }
    if (const auto* ended = std::get_if<engine::Ended>(&refused)) {
        const std::string_view state = engine::to_string(ended->state);
        return {LogLevel::kInfo, state, fmt::format("{} without a run {}", state, ended->reason)};
    }
    if (std::holds_alternative<engine::HeldBack>(refused)) {
        return {LogLevel::kWarning, "held", "held: an earlier run's outcome is unknown"};
    }
    return {LogLevel::kDebug, "gone", "the claim is another worker's now"};
}

Ending ending_of(const engine::action::RunClosed& closed) {
    if (closed.settled) return settled_ending(*closed.settled, closed.outcome.value_or(Outcome{}));
    if (closed.refused) return refused_ending(*closed.refused);
    return {LogLevel::kDebug, "returned", "given back unstarted"};
}

}  // namespace

std::string ShellLog::token_of(const engine::RunRef& ref, engine::RunId run) const {
    return ref.lock_key.empty() ? "" : engine::lock_token_of(worker_, run);
}

observe::LogFields ShellLog::fields_of(const engine::RunRef& ref,
                                       const std::string& lock_token) const {
    return {.job_id = ref.job_id,
            .kind = ref.record.kind,
            .key = ref.record.key,
            .lock_key = ref.lock_key,
            .lock_token = lock_token,
            .epoch = ref.epoch,
            .worker = worker_};
}

void ShellLog::handler_started(const engine::action::StartHandler& start) {
    Running running{start.ref, start.delivery.row.job.queue};
    const std::string token = token_of(start.ref, start.run);
    observe::LogFields fields = fields_of(start.ref, token);
    fields.queue = running.queue;
    fields.attempt = start.started.attempt;
    log_.write(LogLevel::kDebug, "started", fields);
    running_.emplace(start.run, std::move(running));
}

void ShellLog::stop_asked(engine::RunId run, engine::StopReason reason) {
    const auto found = running_.find(run);
    if (found == running_.end()) return;
    const std::string token = token_of(found->second.ref, run);
    observe::LogFields fields = fields_of(found->second.ref, token);
    fields.queue = found->second.queue;
    log_.write(LogLevel::kWarning, fmt::format("asked to stop: {}", engine::to_string(reason)),
               fields);
}

void ShellLog::run_closed(const engine::action::RunClosed& closed) {
    const auto found = running_.extract(closed.run);
    const Ending ending = ending_of(closed);
    const std::string token = token_of(closed.ref, closed.run);
    observe::LogFields fields = fields_of(closed.ref, token);
    if (!found.empty()) {
        fields.queue = found.mapped().queue;
        fields.duration = closed.duration;
    }
    if (closed.attempt != 0) fields.attempt = closed.attempt;
    fields.result = ending.result;
    if (closed.outcome) fields.error_class = error_class(*closed.outcome);
    log_.write(ending.level, ending.sentence, fields);
}

void ShellLog::recycling(const engine::action::Recycle& recycle) {
    log_.write(LogLevel::kError, fmt::format("this process ends soon: {}", recycle.reason),
               fields_of(recycle.ref, token_of(recycle.ref, recycle.run)));
}

void ShellLog::store_answers(bool answers) {
    if (answers) {
        log_.write(LogLevel::kInfo, "the store answers again", {.worker = worker_});
    } else {
        log_.write(LogLevel::kError, "the store does not answer; nothing new is started",
                   {.worker = worker_});
    }
}

void ShellLog::handler_line(const internal::Run& run, LogSeverity severity,
                            std::string_view message) const {
    const std::string token = token_of(run.ref(), run.id());
    observe::LogFields fields = fields_of(run.ref(), token);
    fields.queue = run.facts().queue;
    fields.attempt = run.attempt();
    log_.write(level_of(severity), message, fields);
}

}  // namespace sekali::client
