#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "backends/sqlite/options.hpp"
#include "bench/jobs.hpp"
#include "bench/raw_rounds.hpp"

namespace sekali::bench {

/// The URL of a store in that file.
[[nodiscard]] std::string store_url(const std::string& path, sqlite::Synchronous synchronous);

/// Enqueues jobs by one call of `Client::enqueue_many`.
[[nodiscard]] Timing enqueue_sekali(const std::string& url, std::span<const JobDraft> jobs);

/// Works `count` jobs that are ready in the file at `path`, by a worker in this process with
/// handlers that do nothing, or at L4 write a row in their commit. Ends with the last commit.
[[nodiscard]] Timing drain_sekali(const std::string& path, sqlite::Synchronous synchronous,
                                  const Level& level, std::size_t count, std::size_t concurrency);

}  // namespace sekali::bench
