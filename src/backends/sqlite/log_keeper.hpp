#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "backends/sqlite/connection.hpp"

namespace sekali::sqlite {

/// Keeps the write-ahead log short. SQLite's own checkpoints are switched off, because they would
/// run outside the write gate. For the writer's thread, which holds the gate.
class LogKeeper {
 public:
    /// `warn` is told when a reader keeps the log from being emptied. Sets the connection's log
    /// hook.
    LogKeeper(Connection& connection, std::int64_t limit_bytes,
              std::function<void(std::string_view)> warn);
    LogKeeper(const LogKeeper&) = delete;
    LogKeeper& operator=(const LogKeeper&) = delete;
    ~LogKeeper() = default;

    /// Empties the log if it has grown past its limit and no reader is in the way.
    void checkpoint_if_due();
    /// Size of the log in use, as of the last commit of this process. From any thread.
    [[nodiscard]] std::int64_t log_bytes() const {
        return pages_.load(std::memory_order_relaxed) * page_bytes_;
    }

 private:
    static int count_pages(void* self, sqlite3* db, const char* name, int pages);
    void warn_of_size(std::int64_t size);

    Connection& connection_;
    const std::int64_t page_bytes_;
    const std::int64_t limit_bytes_;
    const std::function<void(std::string_view)> warn_;
    std::atomic<std::int64_t> pages_{0};
    std::int64_t warn_at_bytes_;
    bool blocked_ = false;
    std::chrono::steady_clock::time_point not_before_{};
};

}  // namespace sekali::sqlite
