#pragma once

#include <chrono>
#include <cstdint>

#include "sekali/retry.hpp"

namespace sekali {

/// `policy` with everything that `overrides` says instead.
[[nodiscard]] RetryPolicy apply(RetryPolicy policy, const RetryOverrides& overrides);

/// The delay after attempt number `attempt` (1 = the first). Sound for any number up to 2^64-1:
/// never overflows, never below zero, never above `cap`. `random` is uniform in [0, 1).
[[nodiscard]] std::chrono::milliseconds backoff_delay(const RetryPolicy& policy,
                                                      std::uint64_t attempt, double random);

}  // namespace sekali
