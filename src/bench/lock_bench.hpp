#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sekali::bench {

/// Locks of one profile, taken and given back, each of another name.
struct LockCycles {
    std::string profile;
    double ceiling_per_s = 0;  ///< A bare hiredis loop with the same scripts and depth.
    double sekali_per_s = 0;   ///< The lock port, so many in flight as the loop has.
    double sekali_cpu_us = 0;  ///< Processor time of this process for one cycle.
    double threads_per_s = 0;  ///< So many threads, each by a blocking `LockClient`.
    [[nodiscard]] double ratio() const { return sekali_per_s / ceiling_per_s; }
};

struct LockBenchResult {
    std::string server;  ///< Version.
    std::size_t in_flight = 0;
    std::array<LockCycles, 2> cycles;
    /// From the call that releases a lock to another waiter's having it.
    std::size_t handoff_waiters = 0;
    double handoff_p50_us = 0;
    double handoff_p99_us = 0;
    std::size_t held = 0;
    double renewal_pass_ms = 0;  ///< All of them, once.
    std::size_t waiting = 0;     ///< Wishes for one lock that is held.
    double waiting_end_ms = 0;   ///< To end them all.
};

/// Measures the locks of a Redis, whose keys `sekali:bench-…` it uses and takes away. Throws
/// `Failure`.
[[nodiscard]] LockBenchResult run_lock_bench(const std::string& url,
                                             const std::function<void(std::string_view)>& progress);

[[nodiscard]] std::string to_json(const LockBenchResult& result);
[[nodiscard]] std::string to_text(const LockBenchResult& result);

}  // namespace sekali::bench
