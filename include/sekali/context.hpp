#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sekali/codec.hpp"
#include "sekali/outcome.hpp"
#include "sekali/transaction.hpp"

namespace sekali {

namespace internal {
class Run;
class ContextAccess;

enum class StepState : std::uint8_t { kRun, kDone, kAsk };
struct StepAnswer {
    StepState state = StepState::kRun;
    std::string result{};
};
}  // namespace internal

/// What a handler is told about its job. A plain value.
struct JobFacts {
    std::string id{};
    std::string kind{};
    std::string queue{};
    std::string key{};         ///< Idempotency key; the id where none was given.
    std::string lock_key{};    ///< Empty: none.
    std::string unique_key{};  ///< Empty: none.
    std::string payload{};     ///< Byte for byte as it was enqueued.
    int priority = 0;
};

/// One step as its function and its probe see it.
class Step {
 public:
    Step(std::string name, std::string key) : name_(std::move(name)), key_(std::move(key)) {}
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// The same in every attempt of this job, and for every job with its idempotency key: to be
    /// sent to the outside system. Printable ASCII.
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

 private:
    std::string name_;
    std::string key_;
};

/// A lock that a handler took by `Context::lock`: renewed with the run, checked by its commit, and
/// free when the run is over. A plain value.
struct RunLock {
    std::string name{};
    std::uint64_t fence = 0;
};

/// How important a line of the log is.
enum class LogSeverity : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Writes lines about one run into the worker's log; ids and keys are put there by itself.
class Logger {
 public:
    explicit Logger(internal::Run& run) : run_(&run) {}
    void debug(std::string_view message) const { write(LogSeverity::kDebug, message); }
    void info(std::string_view message) const { write(LogSeverity::kInfo, message); }
    void warning(std::string_view message) const { write(LogSeverity::kWarning, message); }
    void error(std::string_view message) const { write(LogSeverity::kError, message); }

 private:
    void write(LogSeverity severity, std::string_view message) const;
    internal::Run* run_;
};

/// A run as its handler sees it. Belongs to the handler's thread and ends with the handler; only
/// `stop_token` and `logger` may be used by other threads.
///
/// Calls return plain values. When the run is lost (its key was taken over, or its lease or lock
/// was) every call *leaves* the handler: it throws something that is no `std::exception`. Let it
/// pass; if a `catch (...)` stops it, every later call leaves again, and what the handler returns
/// is ignored.
class Context {
 public:
    explicit Context(internal::Run& run) : run_(&run) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    [[nodiscard]] const JobFacts& job() const;
    /// 1 for the first start that counts; the number that this run has if it fails.
    [[nodiscard]] std::uint64_t attempt() const;
    /// Number of this run among all runs of its idempotency key; only grows.
    [[nodiscard]] std::uint64_t epoch() const;
    /// When the timeout stops the run.
    [[nodiscard]] std::chrono::steady_clock::time_point deadline() const;
    /// Fires on shutdown, cancel, timeout, and when the lock or lease is lost. The handler should
    /// end soon then; one that is still there after the grace has its process replaced.
    [[nodiscard]] std::stop_token stop_token() const;

    /// Runs `fn(const Step&)` once and records its result; a later attempt gets the recorded result
    /// and does not call it. The intent is durable before it runs.
    ///
    /// If a run ended in the middle of the step, nobody knows whether it happened: then the kind's
    /// `on_unknown` rules; without a probe that is to run again, under the same key, or to hold.
    /// The result must have a JSON form or be void. A name that was used in this run already, or a
    /// step inside `commit`, throws `Failure` (`kUsage`). What `fn` throws passes through. Blocks
    /// on the store, not counting `fn`.
    template <typename Fn>
    auto step(std::string_view name, Fn&& fn) -> std::invoke_result_t<Fn&, const Step&> {
        return run_step<std::invoke_result_t<Fn&, const Step&>>(name, fn, nullptr);
    }

    /// As above; `probe(const Step&)` is asked about a step that was left open. It returns what the
    /// step would have, in a `std::optional`, or nothing when it did not happen (for a void step a
    /// bool). When it throws, nobody can tell, and the job is held.
    template <typename Fn, typename Probe>
    auto step(std::string_view name, Fn&& fn, Probe&& probe)
        -> std::invoke_result_t<Fn&, const Step&> {
        return run_step<std::invoke_result_t<Fn&, const Step&>>(name, fn, &probe);
    }

    /// Takes one more lock by name for the rest of the run; waits up to `wait`, then leaves the
    /// handler and snoozes the job. Throws `Failure` (`kUsage`) for a name that cannot be.
    RunLock lock(std::string_view name,
                 std::chrono::milliseconds wait = std::chrono::milliseconds{1000});

    /// Makes the writes of `effects(Transaction&)`, the result and `succeeded` durable together,
    /// then returns what the handler should return.
    ///
    /// `effects` may run more than once after a rollback, on another thread while this one waits,
    /// so it holds SQL and enqueues only. What it throws undoes everything, comes out here, and
    /// leaves the run open. To be called once. Blocks on the store.
    Outcome commit(const std::function<void(Transaction&)>& effects) {
        return commit_json(effects, "null");
    }
    template <typename T>
    Outcome commit(const std::function<void(Transaction&)>& effects, const T& result) {
        return commit_json(effects, encode(result).value());
    }

    /// Says how far the run is; shown in the log. Does not block.
    void progress(std::uint64_t done, std::uint64_t total);
    [[nodiscard]] Logger logger() const { return Logger(*run_); }

 private:
    friend class internal::ContextAccess;

    Outcome commit_json(const std::function<void(Transaction&)>& effects, std::string result);
    [[nodiscard]] Step make_step(std::string_view name) const;
    internal::StepAnswer begin_step(const Step& step, bool has_probe);
    internal::StepAnswer begin_step_again(const Step& step);
    void finish_step(const Step& step, std::string result);
    [[noreturn]] void hold(const Step& step);

    template <typename R>
    static R result_of(const std::string& json) {
        if constexpr (!std::is_void_v<R>) return decode<R>(json).value();
    }

    template <typename R, typename Fn>
    R perform(const Step& step, Fn& fn) {
        if constexpr (std::is_void_v<R>) {
            fn(step);
            finish_step(step, "null");
        } else {
            R result = fn(step);
            finish_step(step, encode(result).value());
            return result;
        }
    }

    /// The step's result in JSON where the probe found that it happened.
    template <typename R, typename Probe>
    std::optional<std::string> ask(const Step& step, Probe& probe) {
        try {
            if constexpr (std::is_void_v<R>) {
                if (probe(step)) return "null";
            } else if (const std::optional<R> found = probe(step)) {
                return encode(*found).value();
            }
            return std::nullopt;
        } catch (const std::exception& error) {
            logger().error(std::string("the probe of step ") + step.name() +
                           " failed: " + error.what());
        }
        hold(step);
    }

    template <typename R, typename Fn, typename Probe>
    R run_step(std::string_view name, Fn& fn, Probe probe) {
        const Step step = make_step(name);
        internal::StepAnswer answer = begin_step(step, !std::is_null_pointer_v<Probe>);
        if constexpr (!std::is_null_pointer_v<Probe>) {
            if (answer.state == internal::StepState::kAsk) {
                if (auto happened = ask<R>(step, *probe)) {
                    finish_step(step, *happened);
                    return result_of<R>(*happened);
                }
                answer = begin_step_again(step);
            }
        }
        if (answer.state == internal::StepState::kDone) return result_of<R>(answer.result);
        return perform<R>(step, fn);
    }

    internal::Run* run_;
};

}  // namespace sekali
