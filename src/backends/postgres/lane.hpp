#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/postgres/unit.hpp"
#include "engine/tables.hpp"

namespace sekali::postgres {

/// Threads with a connection each that run what is queued, as much as is ready in one transaction:
/// while the server works for one of them, another prepares the next.
class Lane {
 public:
    /// `announce` is called after commits that others may wait for, on a thread of the lane. All
    /// must outlive this.
    Lane(const PostgresOptions& options, const Statements& sql, KnownRows& known,
         const std::atomic<bool>& closing, std::function<void(Units&)> announce,
         std::size_t connections);
    /// Runs what is still queued and ends.
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    /// Blocks while too much is queued, except on the lane's own threads.
    void submit(std::vector<engine::Task> tasks);

 private:
    void run_until_closed(Units& units);
    [[nodiscard]] bool is_own_thread() const;

    std::function<void(Units&)> announce_;
    std::mutex mutex_;
    std::condition_variable filled_;
    std::condition_variable drained_;
    std::deque<engine::Task> queued_;
    bool closed_ = false;
    std::size_t idle_ = 0;
    std::vector<std::unique_ptr<Units>> units_;
    std::vector<std::thread> threads_;  ///< Started when there is work and none of them waits.
};

}  // namespace sekali::postgres
