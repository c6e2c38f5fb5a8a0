#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/worker_machine.hpp"
#include "sekali/context.hpp"

namespace sekali::internal {

/// Leaves the handler of a run that is over. No `std::exception`, so that a handler's
/// `catch (const std::exception&)` does not take it for a failure of its own.
struct LeaveRun {};

/// What a handler is told of its job.
[[nodiscard]] JobFacts facts_of(engine::Envelope&& job);

/// What a run needs from whoever drives it: threads in a worker, a test in the harness. All but
/// `log` are called on the handler's thread and may block it.
class RunHost {
 public:
    using Effects = std::function<Result<void>(Transaction&)>;

    virtual ~RunHost() = default;
    /// Commits the run. `effects` is not called any more once it has returned.
    virtual engine::Settled commit(engine::RunId run, Effects effects, std::string result) = 0;
    [[nodiscard]] virtual Result<engine::StoreReply> ask_store(engine::StoreCommand command) = 0;
    [[nodiscard]] virtual Result<engine::LockReply> ask_lock(engine::LockCommand command) = 0;
    /// Whether the store has answered this worker long enough for it to take over a lapsed lock.
    [[nodiscard]] virtual bool may_take_over() const = 0;
    virtual void lock_taken(engine::event::LockTaken taken) = 0;
    /// Lets time pass, less when `stop` fires.
    virtual void pause(engine::Millis time, const std::stop_token& stop) = 0;
    [[nodiscard]] virtual engine::LocalTime now() const = 0;
    /// Marks a fault point; true when the test wants a failure there.
    virtual bool reach(std::size_t fault_index) = 0;
    virtual void log(const Run& run, LogSeverity severity, std::string_view message) = 0;
};

/// One run of a handler in this process, between its own thread and the worker's.
class Run {
 public:
    Run(engine::action::StartHandler start, engine::Millis lock_ttl, RunHost& host);
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    [[nodiscard]] engine::RunId id() const { return start_.run; }
    [[nodiscard]] const engine::RunRef& ref() const { return start_.ref; }
    [[nodiscard]] const JobFacts& facts() const { return facts_; }
    [[nodiscard]] std::uint64_t attempt() const { return start_.started.attempt; }
    [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return deadline_; }
    [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

    /// Thread-safe. A run whose lease or lock is gone is lost.
    void ask_stop(engine::StopReason reason);

    /// Runs the handler to its end on the calling thread, whatever it throws.
    [[nodiscard]] engine::Outcome perform(const std::function<Outcome(Context&)>& handler);

    // What `Context` passes on; all on the handler's thread.
    StepAnswer begin_step(const Step& step, bool has_probe, bool probe_said_no);
    void finish_step(const Step& step, std::string result);
    [[noreturn]] void hold(const Step& step);
    RunLock lock(std::string_view name, engine::Millis wait);
    Outcome commit(const std::function<void(Transaction&)>& effects, std::string result);
    void progress(std::uint64_t done, std::uint64_t total);
    void log(LogSeverity severity, std::string_view message) const;

 private:
    struct Effects;

    /// Leaves a run that is over.
    void check();
    [[noreturn]] void leave();
    [[noreturn]] void lose(std::string_view reason);
    engine::StoreReply ask(const engine::StoreCommand& command);
    [[nodiscard]] engine::Outcome outcome_of(const Outcome& returned) const;
    [[nodiscard]] engine::Outcome thrown_outcome(std::string error) const;
    [[nodiscard]] engine::Outcome left_outcome() const;

    engine::action::StartHandler start_;
    JobFacts facts_;
    std::chrono::steady_clock::time_point deadline_;
    engine::Millis lock_ttl_;
    RunHost& host_;
    std::stop_source stop_;

    mutable std::mutex mutex_;
    std::optional<engine::StopReason> stopped_;

    std::atomic<bool> lost_ = false;
    std::atomic<bool> in_effects_ = false;
    bool left_ = false;
    bool committed_ = false;
    std::string lost_reason_;
    std::optional<engine::Outcome> left_with_;  ///< What a handler that left means, if not lost.
};

}  // namespace sekali::internal
