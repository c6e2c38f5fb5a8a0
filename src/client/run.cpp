#include "client/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/outcomes.hpp"
#include "client/step_key.hpp"

namespace sekali::internal {
namespace {

using base::fault_index;
using engine::Millis;
using engine::StepIntentReply;
using Kind = engine::Outcome::Kind;

/// Between two tries to reach a store that does not answer.
constexpr Millis kFirstPause{50};
constexpr Millis kLongestPause{1000};
/// Between two looks for a lock that another holds.
constexpr Millis kLockPause{100};
/// A job that found a lock of `ctx.lock` busy comes back no sooner.
constexpr Millis kLeastSnooze{1000};
/// Longest result of a step: it must be read back whole, so it is refused rather than cut.
constexpr std::size_t kMaxStepResultBytes = 1024 * 1024;

[[noreturn]] void misuse(std::string message) {
    throw Failure(base::usage_error(std::move(message)));
}

engine::Outcome ended(Kind kind, std::string reason, std::string error) {
    engine::Outcome outcome;
    outcome.kind = kind;
    outcome.reason = std::move(reason);
    outcome.error = std::move(error);
    return outcome;
}

std::string_view reason_of(std::optional<engine::StopReason> stopped) {
    switch (stopped.value_or(engine::StopReason::kLeaseLost)) {
        case engine::StopReason::kCancel:
            return "cancelled";
        case engine::StopReason::kShutdown:
            return "shutdown";
        case engine::StopReason::kLockLost:
            return "lock_lost";
        case engine::StopReason::kTimeout:
        case engine::StopReason::kLeaseLost:
            break;
    }
    return "lease_lost";
}

}  // namespace

JobFacts facts_of(engine::Envelope&& job) {
    return {.id = std::move(job.id),
            .kind = std::move(job.kind),
            .queue = std::move(job.queue),
            .key = std::move(job.key),
            .lock_key = std::move(job.lock_key),
            .unique_key = std::move(job.unique_key),
            .payload = std::move(job.payload),
            .priority = job.priority};
}

/// The effects of a commit and what they threw, where the port's thread finds them.
struct Run::Effects {
    Run& run;
    const std::function<void(Transaction&)>& write;
    std::exception_ptr thrown;

    Result<void> operator()(Transaction& tx) {
        thrown = nullptr;
        run.in_effects_ = true;
        try {
            write(tx);
        } catch (...) {
            thrown = std::current_exception();
        }
        run.in_effects_ = false;
        if (thrown) return base::usage_error("the effects of the commit threw");
        if (run.host_.reach(fault_index("commit.inside"))) return client::failed_by_test();
        return {};
    }
};

Run::Run(engine::action::StartHandler start, Millis lock_ttl, RunHost& host)
    : start_(std::move(start)),
      facts_(facts_of(std::move(start_.delivery.row.job))),
      deadline_(std::chrono::steady_clock::now() + (start_.deadline - host.now())),
      lock_ttl_(lock_ttl),
      host_(host) {}

void Run::ask_stop(engine::StopReason reason) {
    {
        const std::lock_guard guard(mutex_);
        if (!stopped_) stopped_ = reason;
    }
    if (reason == engine::StopReason::kLeaseLost || reason == engine::StopReason::kLockLost) {
        lost_ = true;
    }
    stop_.request_stop();
}

engine::Outcome Run::perform(const std::function<Outcome(Context&)>& handler) {
    Context context(*this);
    try {
        const Outcome returned = handler(context);
        if (left_) return left_outcome();
        return outcome_of(returned);
    } catch (const LeaveRun&) {
        return left_outcome();
    } catch (const RetryableError& error) {
        if (left_) return left_outcome();
        return outcome_of(sekali::retry(error.what(), error.after()));
    } catch (const PermanentError& error) {
        if (left_) return left_outcome();
        return outcome_of(sekali::fail(error.what()));
    } catch (const Failure& failure) {
        if (!left_ && failure.error().code == ErrorCode::kUsage) {
            return outcome_of(sekali::fail(failure.what()));
        }
        return thrown_outcome(failure.what());
    } catch (const std::exception& error) {
        return thrown_outcome(error.what());
    } catch (...) {
        return thrown_outcome("the handler threw something that is no std::exception");
    }
}

engine::Outcome Run::outcome_of(const Outcome& returned) const {
    engine::Outcome outcome;
    const std::string text = base::make_storable(returned.text(), base::kMaxErrorBytes);
    switch (returned.kind()) {
        case Outcome::Kind::kSuccess:
        case Outcome::Kind::kCommitted:
            outcome.result = base::make_storable(returned.text(), base::kMaxResultBytes);
            return outcome;
        case Outcome::Kind::kRetry:
            outcome = client::failed_run(text, true);
            outcome.delay = returned.delay();
            return outcome;
        case Outcome::Kind::kFail:
            return ended(Kind::kPermanent, {}, text);
        case Outcome::Kind::kSnooze:
            outcome.kind = Kind::kSnooze;
            outcome.delay = returned.delay();
            outcome.nothing_applied = true;
            return outcome;
        case Outcome::Kind::kCancel:
            break;
    }
    return ended(Kind::kCancel, text, {});
}

/// An exception that says nothing about what was applied: after a stop it is that stop's end.
engine::Outcome Run::thrown_outcome(std::string error) const {
    if (left_) return left_outcome();
    error = base::make_storable(std::move(error), base::kMaxErrorBytes);
    const std::lock_guard guard(mutex_);
    if (!stopped_) return client::failed_run(std::move(error), false);
    if (*stopped_ == engine::StopReason::kTimeout) {
        return ended(Kind::kTimeout, "timeout", std::move(error));
    }
    return ended(Kind::kInterrupted, std::string(reason_of(stopped_)), std::move(error));
}

engine::Outcome Run::left_outcome() const {
    if (left_with_) return *left_with_;
    const std::lock_guard guard(mutex_);
    return ended(Kind::kInterrupted,
                 lost_reason_.empty() ? std::string(reason_of(stopped_)) : lost_reason_, {});
}

void Run::check() {
    if (lost_ || left_) leave();
    if (in_effects_) misuse("inside a commit there is SQL and enqueues only");
    if (committed_) misuse("the run has been committed already");
}

void Run::leave() {
    left_ = true;
    throw LeaveRun{};
}

void Run::lose(std::string_view reason) {
    lost_ = true;
    lost_reason_ = reason;
    leave();
}

/// Asks until the store has answered, the run is lost, or the store refuses for good.
engine::StoreReply Run::ask(const engine::StoreCommand& command) {
    Millis pause = kFirstPause;
    while (true) {
        check();
        auto reply = host_.ask_store(command);
        if (reply.ok()) return *std::move(reply);
        if (!reply.error().retryable) throw Failure(reply.error());
        host_.pause(pause, stop_.get_token());
        pause = std::min(2 * pause, kLongestPause);
    }
}

StepAnswer Run::begin_step(const Step& step, bool has_probe, bool probe_said_no) {
    check();
    if (start_.ref.record.key.empty()) {
        misuse("a kind without records has no steps");
    }
    const engine::StepIntent intent{.run = start_.ref,
                                    .name = step.name(),
                                    .call = base::new_uuid7(),
                                    .has_probe = has_probe,
                                    .probe_said_no = probe_said_no};
    const auto reply = std::get<StepIntentReply>(ask(intent));
    if (host_.reach(fault_index("step.intent.after"))) throw Failure(client::failed_by_test());
    switch (reply.kind) {
        case StepIntentReply::Kind::kRun:
            return {.state = StepState::kRun};
        case StepIntentReply::Kind::kDone:
            return {.state = StepState::kDone, .result = reply.result};
        case StepIntentReply::Kind::kAsk:
            return {.state = StepState::kAsk};
        case StepIntentReply::Kind::kHold:
            hold(step);
        case StepIntentReply::Kind::kUsedTwice:
            misuse(fmt::format("step {} was used twice in one run", base::quoted(step.name())));
        case StepIntentReply::Kind::kSuperseded:
            break;
    }
    lose("superseded");
}

void Run::finish_step(const Step& step, std::string result) {
    if (result.size() > kMaxStepResultBytes) {
        misuse(fmt::format("the result of step {} has {} bytes, more than {}",
                           base::quoted(step.name()), result.size(), kMaxStepResultBytes));
    }
    if (host_.reach(fault_index("step.effect.after"))) throw Failure(client::failed_by_test());
    ask(engine::StepResult{.run = start_.ref, .name = step.name(), .result = std::move(result)});
    if (host_.reach(fault_index("step.result.after"))) throw Failure(client::failed_by_test());
}

void Run::hold(const Step& step) {
    left_with_ =
        ended(Kind::kHold, "unknown_step",
              fmt::format("nobody can tell whether step {} happened", base::quoted(step.name())));
    leave();
}

RunLock Run::lock(std::string_view name, Millis wait) {
    check();
    base::check_key("lock", name).value();
    const std::string token = base::random_hex(16);
    const engine::LocalTime until = host_.now() + wait;
    while (true) {
        check();
        const engine::LocalTime asked = host_.now();
        const auto reply =
            host_.ask_lock(engine::LockAcquire{.ns = start_.ref.record.ns,
                                               .name = std::string(name),
                                               .owner = start_.ref.worker,
                                               .token = token,
                                               .ttl = lock_ttl_,
                                               .may_take_over = host_.may_take_over()});
        if (!reply.ok() && !reply.error().retryable) throw Failure(reply.error());
        if (reply.ok() && reply->kind == engine::LockReply::Kind::kAcquired) {
            host_.lock_taken({.run = id(),
                              .name = std::string(name),
                              .token = token,
                              .fence = reply->fence,
                              .ttl = lock_ttl_,
                              .asked = asked});
            return {.name = std::string(name), .fence = reply->fence};
        }
        if (host_.now() >= until) break;
        host_.pause(std::min(kLockPause, until - host_.now()), stop_.get_token());
    }
    engine::Outcome snooze =
        ended(Kind::kSnooze, fmt::format("lock {} is busy", base::quoted(name)), {});
    snooze.delay = std::max(wait, kLeastSnooze);
    left_with_ = std::move(snooze);
    leave();
}

Outcome Run::commit(const std::function<void(Transaction&)>& effects, std::string result) {
    check();
    Effects guarded{*this, effects, nullptr};
    const engine::Settled settled = host_.commit(
        id(), [&guarded](Transaction& tx) { return guarded(tx); },
        base::make_storable(std::move(result), base::kMaxResultBytes));
    switch (settled.kind) {
        case engine::Settled::Kind::kApplied:
            committed_ = true;
            return {Outcome::Kind::kCommitted, "null"};
        case engine::Settled::Kind::kEffectsFailed: {
            if (guarded.thrown) std::rethrow_exception(guarded.thrown);
            Error error;
            error.code = ErrorCode::kRefused;
            error.message = settled.error;
            throw Failure(std::move(error));
        }
        case engine::Settled::Kind::kLockFenced:
            lose("lock_fenced");
        case engine::Settled::Kind::kSuperseded:
            break;
    }
    lose("superseded");
}

void Run::progress(std::uint64_t done, std::uint64_t total) {
    log(LogSeverity::kDebug, fmt::format("progress {}/{}", done, total));
}

void Run::log(LogSeverity severity, std::string_view message) const {
    host_.log(*this, severity, message);
}

}  // namespace sekali::internal

namespace sekali {

const JobFacts& Context::job() const {
    return run_->facts();
}
std::uint64_t Context::attempt() const {
    return run_->attempt();
}
std::uint64_t Context::epoch() const {
    return run_->ref().epoch;
}
std::chrono::steady_clock::time_point Context::deadline() const {
    return run_->deadline();
}
std::stop_token Context::stop_token() const {
    return run_->stop_token();
}

RunLock Context::lock(std::string_view name, std::chrono::milliseconds wait) {
    return run_->lock(name, wait);
}

void Context::progress(std::uint64_t done, std::uint64_t total) {
    run_->progress(done, total);
}

Outcome Context::commit_json(const std::function<void(Transaction&)>& effects, std::string result) {
    return run_->commit(effects, std::move(result));
}

Step Context::make_step(std::string_view name) const {
    base::check_key("step", name).value();
    return {std::string(name), client::step_key(run_->ref().record, name)};
}

internal::StepAnswer Context::begin_step(const Step& step, bool has_probe) {
    return run_->begin_step(step, has_probe, false);
}

internal::StepAnswer Context::begin_step_again(const Step& step) {
    return run_->begin_step(step, true, true);
}

void Context::finish_step(const Step& step, std::string result) {
    run_->finish_step(step, std::move(result));
}

void Context::hold(const Step& step) {
    run_->hold(step);
}

void Logger::write(LogSeverity severity, std::string_view message) const {
    run_->log(severity, message);
}

}  // namespace sekali
