#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace sekali {

/// When a failed attempt is tried again: `base * factor^(attempt-1)`, at most `cap`, of which a
/// share of up to `jitter` is taken away at random, so that jobs that failed together do not return
/// together.
struct RetryPolicy {
    std::chrono::milliseconds base{1000};
    double factor = 2.0;  ///< 1 to 100.
    std::chrono::milliseconds cap{std::chrono::minutes{10}};
    double jitter = 0.25;  ///< 0 to 1: the share of the delay that is random.
    std::uint64_t max_attempts = 10;
    std::optional<std::chrono::milliseconds> max_age;  ///< From enqueue; then it is dead.
};

/// What one job or kind says about its retries; what it leaves open is decided elsewhere.
struct RetryOverrides {
    std::optional<std::chrono::milliseconds> base{};
    std::optional<double> factor{};
    std::optional<std::chrono::milliseconds> cap{};
    std::optional<double> jitter{};
    std::optional<std::uint64_t> max_attempts{};
    std::optional<std::chrono::milliseconds> max_age{};
};

}  // namespace sekali
