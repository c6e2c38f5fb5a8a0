#include "backends/sqlite/log_keeper.hpp"

#include <string>

#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

/// While a checkpoint waits for readers nobody can write.
constexpr engine::Millis kPatienceWithReaders{20};
constexpr std::chrono::seconds kPauseWhenBlocked{1};
/// A log that has grown by so much in spite of the checkpoints is worth a warning.
constexpr std::int64_t kWarnFactor = 4;

}  // namespace

LogKeeper::LogKeeper(Connection& connection, std::int64_t limit_bytes,
                     std::function<void(std::string_view)> warn)
    : connection_(connection),
      page_bytes_(connection.query_integer("PRAGMA page_size")),
      limit_bytes_(limit_bytes),
      warn_(std::move(warn)),
      warn_at_bytes_(kWarnFactor * limit_bytes) {
    sqlite3_wal_hook(connection_.handle(), &LogKeeper::count_pages, this);
    // What is left behind by a reader that stayed long is cut off when the log starts over.
    connection_.execute(
        ("PRAGMA journal_size_limit = " + std::to_string(kWarnFactor * limit_bytes)).c_str());
}

int LogKeeper::count_pages(void* self, sqlite3* /*db*/, const char* /*name*/, int pages) {
    static_cast<LogKeeper*>(self)->pages_.store(pages, std::memory_order_relaxed);
    return SQLITE_OK;
}

void LogKeeper::checkpoint_if_due() {
    const std::int64_t size = log_bytes();
    if (size < limit_bytes_) {
        blocked_ = false;
        warn_at_bytes_ = kWarnFactor * limit_bytes_;
        return;
    }
    if (blocked_) warn_of_size(size);
    if (base::steady_now() < not_before_) return;
    const engine::Millis patience = connection_.set_busy_deadline(kPatienceWithReaders);
    const int code = sqlite3_wal_checkpoint_v2(connection_.handle(), "main",
                                               SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
    connection_.set_busy_deadline(patience);
    if (code == SQLITE_OK) {
        pages_.store(0, std::memory_order_relaxed);
        return;
    }
    blocked_ = true;
    not_before_ = base::steady_now() + kPauseWhenBlocked;
}

void LogKeeper::warn_of_size(std::int64_t size) {
    if (size < warn_at_bytes_) return;
    warn_at_bytes_ = 2 * size;
    if (!warn_) return;
    warn_("sqlite: the log has grown to " + std::to_string(size >> 20) +
          " MiB because a reader keeps an old snapshot open; it shrinks when that ends");
}

}  // namespace sekali::sqlite
