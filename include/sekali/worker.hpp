#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sekali/client.hpp"
#include "sekali/context.hpp"
#include "sekali/job.hpp"
#include "sekali/lock.hpp"
#include "sekali/outcome.hpp"
#include "sekali/policy.hpp"
#include "sekali/result.hpp"
#include "sekali/retry.hpp"

namespace sekali {

namespace internal {
class WorkerCore;
class WorkerAccess;
}  // namespace internal

/// How one kind is worked. A plain value; what is left out has the default given here. Flags, the
/// environment and the configuration file say otherwise where `worker_main` reads them.
struct HandlerOptions {
    /// Longest run. Default: 5 min.
    std::optional<std::chrono::milliseconds> timeout{};
    /// Where its effects happen. Default: outside.
    std::optional<Effects> effects{};
    /// What is done about an unknown run. Default: rerun.
    std::optional<OnUnknown> on_unknown{};
    /// What a job does whose lock is busy. Default: wait.
    std::optional<OnBusy> on_busy{};
    /// Default: base 1 s, factor 2, cap 10 min, jitter 0.25, 10 attempts.
    RetryOverrides retry{};
    /// What a job does whose lock service is out of reach. Default: wait.
    std::optional<OnLockUnavailable> on_lock_unavailable{};
    /// Crashes until the job is dead, the last one alone in its process. Default: 3.
    std::optional<std::uint64_t> max_crashes{};
    /// Life of its lock after the last renewal; 500 ms or more. Default: 30 s.
    std::optional<std::chrono::milliseconds> lock_ttl{};
    /// Whether idempotency records are kept. Default: kept.
    std::optional<Record> record{};
    /// How long a record is kept after its end. Default: 30 d.
    std::optional<std::chrono::milliseconds> keep{};
    /// From the stop request of a run to its forced end. Default: 25 s.
    std::optional<std::chrono::milliseconds> grace{};
    /// Longest time that its lock is renewed. Default: no bound.
    std::optional<std::chrono::milliseconds> max_hold{};
};

/// How a worker works. A plain value.
struct WorkerOptions {
    std::string ns = "default";
    std::vector<std::string> queues{"default"};
    /// Handlers at the same time. 0: twice the number of processors.
    std::size_t concurrency = 0;
    /// Of a claim without renewal; 500 ms or more.
    std::chrono::milliseconds lease{std::chrono::seconds{15}};
    /// For what still runs after a stop request.
    std::chrono::milliseconds grace{std::chrono::seconds{25}};
    /// End when nothing is left to run.
    bool drain = false;
    /// Longest payload in bytes of what its client enqueues.
    std::size_t max_payload = 1024 * 1024;
    /// A Redis where lock keys are taken as well, so that programs without this store are excluded
    /// too; empty: the store alone has them.
    std::string lock_url{};
    LockProfile lock_profile = LockProfile::kRedisson;
    /// As `LockClientOptions::prefix`.
    std::optional<std::string> lock_prefix{};
};

/// How a worker ended. A plain value.
struct WorkerExit {
    bool drained = false;  ///< Because nothing was left to run.
    /// A handler is still running that neither ended nor can be ended. Its thread is left alone;
    /// the process should end soon.
    bool stuck = false;
    std::size_t unsettled = 0;  ///< Runs whose end is not durable; other workers will recover them.
};

/// The rest of a handler that a middleware wraps.
using Next = std::function<Outcome(Context&)>;

/// Wraps handlers: runs before and behind `next`, or instead of it. May be called by several
/// threads at once.
using Middleware = std::function<Outcome(Context&, const Next& next)>;

/// Runs handlers for jobs.
///
/// Register everything, then call `run`. Registration throws `Failure` (`kUsage`) for a bad kind, a
/// kind that has a handler already, and options out of range. Not thread-safe but for `client`.
class Worker {
 public:
    /// Opens a store as `Client::open` does.
    [[nodiscard]] static Result<Worker> open(std::string_view url,
                                             const WorkerOptions& options = {});
    Worker(Worker&&) noexcept;
    Worker& operator=(Worker&&) noexcept;
    ~Worker();

    /// Enqueues into the worker's own store and namespace. Valid as long as the worker.
    [[nodiscard]] Client& client();

    /// Handles jobs of type `T` by `fn(Context&, const T&)`, which returns an `Outcome`, a value
    /// with a JSON form (the result), or nothing. A payload that does not decode is a permanent
    /// error.
    ///
    /// `fn` is called by several threads at once. What it throws ends at the job: `PermanentError`
    /// and `RetryableError` mean `fail` and `retry`; anything else is a failed attempt of which
    /// nobody knows what it applied.
    template <Job T, typename Fn>
    requires std::invocable<Fn&, Context&, const T&>
    void handle(Fn fn, const HandlerOptions& options = {}) {
        handle_raw(
            JobTraits<T>::kind(),
            [fn = std::move(fn)](Context& ctx) mutable -> Outcome {
                const Result<T> job = decode<T>(ctx.job().payload);
                if (!job.ok()) return fail("payload: " + job.error().message);
                return outcome_of(fn, ctx, *job);
            },
            options);
    }

    /// Handles jobs of a kind that is only known at run time; the payload is `ctx.job().payload`.
    void handle_raw(std::string_view kind, std::function<Outcome(Context&)> handler,
                    const HandlerOptions& options = {});

    /// What to ask about an unknown run of a kind that has neither steps nor a commit:
    /// `fn(const JobFacts&, const T&)` returns the result in a `std::optional` when the work was
    /// done, nothing when it was not, and throws when it cannot tell.
    template <Job T, typename Fn>
    requires std::invocable<Fn&, const JobFacts&, const T&>
    void probe(Fn fn) {
        probe_raw(JobTraits<T>::kind(),
                  [fn = std::move(fn)](const JobFacts& job) mutable -> std::optional<std::string> {
                      const auto found = fn(job, decode<T>(job.payload).value());
                      if (!found) return std::nullopt;
                      return encode(*found).value();
                  });
    }
    void probe_raw(std::string_view kind,
                   std::function<std::optional<std::string>(const JobFacts&)> probe);

    /// Wraps every handler, the first one outermost.
    void use(Middleware middleware);

    /// Works until `stop` is requested and what runs has ended or was handed back, or, with
    /// `drain`, until nothing is left to run. Installs no signal handler, starts no process. To be
    /// called once. Blocks. Errors: `kUsage` for options out of range.
    [[nodiscard]] Result<WorkerExit> run(std::stop_token stop = {});

 private:
    friend class internal::WorkerAccess;
    explicit Worker(std::unique_ptr<internal::WorkerCore> core);

    template <typename Fn, typename T>
    static Outcome outcome_of(Fn& fn, Context& ctx, const T& job) {
        using Returned = std::invoke_result_t<Fn&, Context&, const T&>;
        if constexpr (std::is_void_v<Returned>) {
            fn(ctx, job);
            return success();
        } else if constexpr (std::is_same_v<Returned, Outcome>) {
            return fn(ctx, job);
        } else {
            return success(fn(ctx, job));
        }
    }

    std::unique_ptr<internal::WorkerCore> core_;
};

}  // namespace sekali
