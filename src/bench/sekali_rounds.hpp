#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bench/raw_rounds.hpp"
#include "bench/target.hpp"

namespace sekali::bench {

/// Enqueues jobs by one call of `Client::enqueue_many`.
[[nodiscard]] Timing enqueue_sekali(const std::string& url, std::span<const JobDraft> jobs);

/// Works `count` jobs that are ready in a store, by a worker in this process with handlers that do
/// nothing, or at L4 write a row in their commit. Ends with the last commit.
[[nodiscard]] Timing drain_sekali(Subject& subject, const Level& level, std::size_t count,
                                  std::size_t concurrency);

}  // namespace sekali::bench
