#include "client/worker_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/backoff.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/limits.hpp"
#include "client/prepare.hpp"

namespace sekali::client {
namespace {

using engine::Millis;

constexpr Millis kLeastLease{500};
constexpr std::size_t kMostConcurrency = 4096;
constexpr std::uint64_t kMostCrashes = 1000;

template <typename T>
std::optional<T> first_of(const std::optional<T>& over, const std::optional<T>& under) {
    return over ? over : under;
}

Result<void> check_span(std::string_view kind, std::string_view field,
                        const std::optional<Millis>& value, Millis least) {
    if (!value || (*value >= least && *value <= base::kMaxDuration)) return {};
    return base::usage_error(fmt::format("{} of kind {} must be {} or more, not {} ms", field, kind,
                                         base::format_duration(least), value->count()));
}

}  // namespace

HandlerOptions merged(const HandlerOptions& over, const HandlerOptions& under) {
    HandlerOptions options;
    options.timeout = first_of(over.timeout, under.timeout);
    options.effects = first_of(over.effects, under.effects);
    options.on_unknown = first_of(over.on_unknown, under.on_unknown);
    options.on_busy = first_of(over.on_busy, under.on_busy);
    options.on_lock_unavailable = first_of(over.on_lock_unavailable, under.on_lock_unavailable);
    options.retry = merged(over.retry, under.retry);
    options.max_crashes = first_of(over.max_crashes, under.max_crashes);
    options.lock_ttl = first_of(over.lock_ttl, under.lock_ttl);
    options.record = first_of(over.record, under.record);
    options.keep = first_of(over.keep, under.keep);
    options.grace = first_of(over.grace, under.grace);
    options.max_hold = first_of(over.max_hold, under.max_hold);
    return options;
}

Result<void> check_handler_options(std::string_view kind, const HandlerOptions& options) {
    const Millis least{1};
    for (const auto& [field, value, bound] : {std::tuple{"timeout", &options.timeout, least},
                                              {"grace", &options.grace, Millis{0}},
                                              {"lock_ttl", &options.lock_ttl, kLeastLease},
                                              {"keep", &options.keep, least},
                                              {"max_hold", &options.max_hold, least}}) {
        if (auto fine = check_span(kind, field, *value, bound); !fine) return fine;
    }
    if (options.max_crashes && (*options.max_crashes == 0 || *options.max_crashes > kMostCrashes)) {
        return base::usage_error(
            fmt::format("max_crashes of kind {} must be 1 to {}", kind, kMostCrashes));
    }
    return check_retry(options.retry);
}

Result<void> check_worker_options(const WorkerOptions& options) {
    if (auto fine = base::check_name("namespace", options.ns); !fine) return fine;
    if (options.queues.empty()) return base::usage_error("a worker needs a queue");
    for (const std::string& queue : options.queues) {
        if (auto fine = base::check_queue("queue", queue); !fine) return fine;
    }
    if (options.lease < kLeastLease || options.lease > base::kMaxDuration) {
        return base::usage_error(fmt::format("lease must be {} or more, not {} ms",
                                             base::format_duration(kLeastLease),
                                             options.lease.count()));
    }
    if (options.concurrency > kMostConcurrency) {
        return base::usage_error(fmt::format("concurrency must be 1 to {}, not {}",
                                             kMostConcurrency, options.concurrency));
    }
    if (options.grace.count() < 0) return base::usage_error("grace must not be negative");
    return {};
}

engine::KindSetup kind_setup(const HandlerOptions& options, HandledBy by, bool has_probe) {
    engine::KindSetup setup;
    engine::KindPolicy& policy = setup.policy;
    policy.record = options.record.value_or(Record::kKept);
    policy.effects = options.effects.value_or(Effects::kOutside);
    policy.on_unknown = options.on_unknown.value_or(OnUnknown::kRerun);
    policy.on_busy = options.on_busy.value_or(OnBusy::kWait);
    // A kind that says its effects are outside has nothing of its own that an answer would leave
    // out.
    policy.whole_answer = policy.effects == engine::Effects::kOutside;
    const bool may_step = by == HandledBy::kLocal ||
                          (by == HandledBy::kExec && policy.effects == engine::Effects::kSteps);
    if (has_probe) {
        policy.probe = engine::KindPolicy::Probe::kBefore;
    } else if (may_step) {
        policy.probe = engine::KindPolicy::Probe::kInStep;
    }
    policy.retry = apply(policy.retry, options.retry);
    policy.timeout = options.timeout.value_or(policy.timeout);
    policy.grace = options.grace.value_or(policy.grace);
    policy.lock_ttl = options.lock_ttl.value_or(policy.lock_ttl);
    policy.max_crashes = options.max_crashes.value_or(policy.max_crashes);
    policy.keep = options.keep.value_or(policy.keep);
    setup.on_lock_unavailable = options.on_lock_unavailable.value_or(OnLockUnavailable::kWait);
    setup.max_hold = options.max_hold;
    setup.killable = by != HandledBy::kLocal;
    return setup;
}

std::function<Outcome(Context&)> wrapped(std::function<Outcome(Context&)> handler,
                                         const std::vector<Middleware>& middleware) {
    for (auto layer = middleware.rbegin(); layer != middleware.rend(); ++layer) {
        handler = [layer = *layer, next = std::move(handler)](Context& ctx) {
            return layer(ctx, next);
        };
    }
    return handler;
}

std::size_t default_concurrency() {
    return 2 * std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace sekali::client
