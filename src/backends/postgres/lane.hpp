#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/postgres/unit.hpp"
#include "engine/tables.hpp"

namespace sekali::postgres {

/// A thread with a connection that runs what is queued, as much as is ready in one transaction.
class Lane {
 public:
    /// `announce` is called after commits that others may wait for, on the lane's thread. All must
    /// outlive this.
    Lane(const PostgresOptions& options, const Statements& sql, const std::atomic<bool>& closing,
         std::function<void(Units&)> announce);
    /// Runs what is still queued and ends.
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    /// Blocks while too much is queued, except on the lane's own thread.
    void submit(std::vector<engine::Task> tasks);

 private:
    void run_until_closed();

    std::function<void(Units&)> announce_;
    Units units_;
    std::mutex mutex_;
    std::condition_variable filled_;
    std::condition_variable drained_;
    std::deque<engine::Task> queued_;
    bool closed_ = false;
    std::thread thread_;
};

}  // namespace sekali::postgres
