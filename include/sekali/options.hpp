#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sekali/key.hpp"
#include "sekali/policy.hpp"
#include "sekali/retry.hpp"

namespace sekali {

/// How one job is enqueued. A plain value; what is left out is decided by the job type's
/// `options()`, then by sekali. All of it is frozen with the job.
///
/// Keys are 1 to 512 bytes of UTF-8 without control characters and compared byte by byte;
/// `sekali::key` builds them from parts.
struct EnqueueOptions {
    /// Idempotency key: takes effect once for the kind. Default: the job id.
    std::optional<std::string> key{};
    /// Lock key: jobs that share it never run in parallel, whatever their kind. Default: none.
    std::optional<std::string> lock{};
    /// Unique key: at most one live job of the kind has it. Default: none.
    std::optional<std::string> unique{};
    /// Default: until the end.
    std::optional<UniqueUntil> unique_until{};
    /// Last bound of the unique slot where the queue is not an SQL database; extended while the job
    /// lives. Default: 24 h.
    std::optional<std::chrono::milliseconds> unique_for{};
    /// Default: keep.
    std::optional<OnDuplicate> on_duplicate{};
    /// Default: `default`.
    std::optional<std::string> queue{};
    /// A UUID that the producer chose, so that a repeated enqueue is the same job. Default: a new
    /// one.
    std::optional<std::string> id{};
    /// Not before this long from now; zero or more.
    std::optional<std::chrono::milliseconds> delay{};
    /// Not before this time by the producer's wall clock; a past time means now. Not with `delay`.
    std::optional<std::chrono::system_clock::time_point> at{};
    /// 0 to 9, larger first. Default: 0.
    std::optional<int> priority{};
    /// What this job's retries do otherwise than its kind's.
    RetryOverrides retry{};
    /// What tells two payloads under one key apart: `fields:/a,/b`, or `none`. Default: all bytes.
    std::optional<std::string> fingerprint{};
};

}  // namespace sekali
