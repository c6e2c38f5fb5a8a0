#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/target.hpp"

namespace sekali::bench {

/// How long so many jobs took.
struct Timing {
    std::size_t jobs = 0;
    double seconds = 0;
    double cpu_seconds = 0;

    [[nodiscard]] double per_s() const {
        return seconds > 0 ? static_cast<double>(jobs) / seconds : 0;
    }
    [[nodiscard]] double cpu_us() const {
        return jobs > 0 ? cpu_seconds * 1e6 / static_cast<double>(jobs) : 0;
    }
};

/// Enqueues jobs by bare statements, `batch` in each transaction, until all are done or
/// `at_most_seconds` have passed. The first one gets the place `first_seq`.
[[nodiscard]] Timing enqueue_raw(RawStore& store, std::span<const JobDraft> jobs,
                                 std::int64_t first_seq, std::size_t batch, double at_most_seconds);
/// Claims, begins and settles jobs by bare statements, in three transactions for each `batch`.
[[nodiscard]] Timing drain_raw(RawStore& store, std::span<const JobDraft> jobs,
                               std::int64_t first_seq, std::size_t batch, double at_most_seconds);

}  // namespace sekali::bench
