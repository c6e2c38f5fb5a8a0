#include "client/prepare.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/fingerprint.hpp"
#include "base/ids.hpp"
#include "base/json_check.hpp"
#include "base/limits.hpp"

namespace sekali::client {
namespace {

using Millis = std::chrono::milliseconds;

constexpr int kMaxPriority = 9;

template <typename T>
std::optional<T> first_of(const std::optional<T>& call, const std::optional<T>& type) {
    return call ? call : type;
}

template <typename T>
Error out_of_range(std::string_view field, std::string_view range, const T& value) {
    return base::usage_error(fmt::format("{} must be {}, not {}", field, range, value));
}

bool is_span(const std::optional<Millis>& duration) {
    return !duration || (duration->count() > 0 && *duration <= base::kMaxDuration);
}

Result<void> check_payload(std::string_view payload, std::size_t max_bytes) {
    auto fine = base::check_json(payload, max_bytes, base::kMaxJsonDepth);
    if (fine) return fine;
    Error error = fine.error();
    error.message = "payload: " + error.message;
    return error;
}

Result<void> check_all(const engine::Envelope& job, const EnqueueScope& scope,
                       const EnqueueOptions& options) {
    for (const auto& [field, name] : {std::pair{"namespace", &job.ns}, {"kind", &job.kind}}) {
        if (auto fine = base::check_name(field, *name); !fine) return fine;
    }
    if (auto fine = base::check_queue("queue", job.queue); !fine) return fine;
    for (const auto& [field, key] :
         {std::pair{"key", &options.key}, {"lock", &options.lock}, {"unique", &options.unique}}) {
        if (!*key) continue;
        if (auto fine = base::check_key(field, **key); !fine) return fine;
    }
    if (options.id && !base::is_uuid(*options.id)) {
        return base::usage_error("id must be a UUID in lower case");
    }
    if (job.priority < 0 || job.priority > kMaxPriority) {
        return base::usage_error(
            fmt::format("priority must be 0 to {}, not {}", kMaxPriority, job.priority));
    }
    if (!is_span(options.unique_for))
        return out_of_range("unique for", "more than 0 ms", options.unique_for->count());
    if (auto fine = check_retry(options.retry); !fine) return fine;
    return check_payload(job.payload, scope.max_payload);
}

Result<std::optional<Millis>> delay_of(const EnqueueOptions& options) {
    if (options.delay && options.at) {
        return base::usage_error("delay and at exclude each other");
    }
    if (options.delay) {
        if (options.delay->count() < 0 || *options.delay > base::kMaxDuration) {
            return base::usage_error(
                fmt::format("delay must be 0 to {}", base::format_duration(base::kMaxDuration)));
        }
        return options.delay;
    }
    if (!options.at) return std::optional<Millis>();
    const auto at = std::chrono::duration_cast<Millis>(options.at->time_since_epoch());
    const Millis left = at - Millis{base::wall_ms()};
    if (left > base::kMaxDuration) return base::usage_error("at is too far in the future");
    return std::optional(std::max(left, Millis{0}));
}

}  // namespace

EnqueueOptions merged(const EnqueueOptions& call, const EnqueueOptions& type) {
    EnqueueOptions options;
    options.key = first_of(call.key, type.key);
    options.lock = first_of(call.lock, type.lock);
    options.unique = first_of(call.unique, type.unique);
    options.unique_until = first_of(call.unique_until, type.unique_until);
    options.unique_for = first_of(call.unique_for, type.unique_for);
    options.on_duplicate = first_of(call.on_duplicate, type.on_duplicate);
    options.queue = first_of(call.queue, type.queue);
    options.id = first_of(call.id, type.id);
    // One of the two at the call replaces both of the type's.
    const EnqueueOptions& time = call.delay || call.at ? call : type;
    options.delay = time.delay;
    options.at = time.at;
    options.priority = first_of(call.priority, type.priority);
    options.retry = merged(call.retry, type.retry);
    options.fingerprint = first_of(call.fingerprint, type.fingerprint);
    return options;
}

RetryOverrides merged(const RetryOverrides& over, const RetryOverrides& under) {
    RetryOverrides retry;
    retry.base = first_of(over.base, under.base);
    retry.factor = first_of(over.factor, under.factor);
    retry.cap = first_of(over.cap, under.cap);
    retry.jitter = first_of(over.jitter, under.jitter);
    retry.max_attempts = first_of(over.max_attempts, under.max_attempts);
    retry.max_age = first_of(over.max_age, under.max_age);
    return retry;
}

Result<engine::EnqueueRequest> prepare_enqueue(const EnqueueScope& scope, std::string_view kind,
                                               std::string payload, const EnqueueOptions& options) {
    engine::EnqueueRequest request;
    engine::Envelope& job = request.job;
    job.ns = scope.ns;
    job.kind = kind;
    job.queue = options.queue.value_or("default");
    job.payload = payload.empty() ? "null" : std::move(payload);
    job.priority = options.priority.value_or(0);
    if (auto fine = check_all(job, scope, options); !fine) return fine.error();

    const OnDuplicate on_duplicate = options.on_duplicate.value_or(OnDuplicate::kKeep);
    if (on_duplicate == OnDuplicate::kReplace && options.key) {
        return base::usage_error(
            "on_duplicate = replace together with a fixed key is refused",
            "the replaced job and the new one would be one to the store; leave "
            "the key out");
    }
    request.has_fresh_id = !options.id;
    job.id = options.id ? *options.id : base::new_uuid7();
    job.key = options.key.value_or(job.id);
    job.lock_key = options.lock.value_or("");
    job.unique_key = options.unique.value_or("");
    job.unique_until = options.unique_until.value_or(UniqueUntil::kEnd);
    job.retry = options.retry;
    job.fingerprint_rule = options.fingerprint.value_or("");
    auto fingerprint = base::fingerprint(job.payload, job.fingerprint_rule);
    if (!fingerprint.ok()) return fingerprint.error();
    job.fingerprint = *std::move(fingerprint);
    request.on_duplicate = on_duplicate;
    request.unique_for = options.unique_for;
    auto delay = delay_of(options);
    if (!delay.ok()) return delay.error();
    request.delay = *delay;
    return request;
}

Result<void> check_retry(const RetryOverrides& retry) {
    if (!is_span(retry.base))
        return out_of_range("retry base", "more than 0 ms", retry.base->count());
    if (!is_span(retry.cap)) return out_of_range("retry cap", "more than 0 ms", retry.cap->count());
    if (!is_span(retry.max_age))
        return out_of_range("max age", "more than 0 ms", retry.max_age->count());
    if (retry.base && retry.cap && *retry.cap < *retry.base) {
        return base::usage_error(fmt::format("retry cap {} is less than retry base {}",
                                             base::format_duration(*retry.cap),
                                             base::format_duration(*retry.base)));
    }
    if (retry.factor && !(*retry.factor >= 1 && *retry.factor <= 100)) {
        return out_of_range("retry factor", "1 to 100", *retry.factor);
    }
    if (retry.jitter && !(*retry.jitter >= 0 && *retry.jitter <= 1)) {
        return out_of_range("retry jitter", "0 to 1", *retry.jitter);
    }
    if (retry.max_attempts && *retry.max_attempts == 0) {
        return out_of_range("max attempts", "1 or more", *retry.max_attempts);
    }
    return {};
}

}  // namespace sekali::client
