#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bench/result.hpp"
#include "bench/steps.hpp"
#include "process/unique_fd.hpp"

namespace sekali::bench {

/// A worker in a process of its own, which stamps the time into shared memory when a handler
/// starts. To be made while this process has one thread and no open store; it waits for its order.
/// Ends with this object, and with this process.
class IdleWorker {
 public:
    static constexpr std::size_t kMostJobs = 1024;

    IdleWorker();
    IdleWorker(const IdleWorker&) = delete;
    IdleWorker& operator=(const IdleWorker&) = delete;
    ~IdleWorker();

    /// Lets it work; once.
    void start(const std::string& url, std::size_t concurrency);
    /// Stops it and waits for its end.
    void end();
    /// Waits for the start of the handler of that job, whose payload is its number; returns the
    /// time in nanoseconds of the monotonic clock. Throws `Failure` when it does not come.
    [[nodiscard]] std::int64_t wait_for_start(std::size_t job);
    [[nodiscard]] double cpu_seconds() const;
    [[nodiscard]] double rss_mib() const;

 private:
    struct Stamps;
    [[noreturn]] void live();

    Stamps* stamps_ = nullptr;  ///< Shared memory.
    process::UniqueFd control_read_, control_write_;
    process::UniqueFd started_read_, started_write_;
    pid_t pid_ = -1;
};

/// Measures how soon a worker in another process starts what is enqueued here, and what it uses
/// while there is nothing to do, with the concurrency at which it is fastest.
void measure_idle_worker(Steps& steps, IdleWorker& worker, BenchResult& result);

}  // namespace sekali::bench
