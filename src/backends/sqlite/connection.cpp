#include "backends/sqlite/connection.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

constexpr std::chrono::microseconds kFirstPause{100};
constexpr std::chrono::microseconds kLongestPause{10'000};

}  // namespace

int Connection::Busy::wait(void* self, int count) {
    auto& busy = *static_cast<Busy*>(self);
    const auto now = base::steady_now();
    if (count == 0) busy.since = now;
    if (now - busy.since >= busy.deadline) return 0;
    const auto longest = std::min(kLongestPause, kFirstPause * (1 << std::min(count, 7)));
    // Two waiters that were refused together must not come back together; the low digits of the
    // clock are random enough for that.
    const auto jitter = now.time_since_epoch() % longest;
    std::this_thread::sleep_for(longest / 2 + jitter / 2);
    return 1;
}

Connection::Connection(const std::string& path, Mode mode, engine::Millis busy_deadline)
    : busy_(std::make_unique<Busy>(Busy{busy_deadline, {}})) {
    const int access = mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    const int code = sqlite3_open_v2(path.c_str(), &db_,
                                     access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
    owned_.reset(db_);
    if (code != SQLITE_OK) throw_sqlite(code, "open it", db_);
    sqlite3_busy_handler(db_, &Busy::wait, busy_.get());
    // A checkpoint may run under the write gate only, never because a connection happens to close.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_wal_autocheckpoint(db_, 0);
}

Connection::Connection(sqlite3* borrowed) : db_(borrowed) {}

void Connection::execute(const char* sql) {
    const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) throw_sqlite(code, "run a statement", db_);
}

StatementPtr Connection::prepare(std::string_view sql, bool kept) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                        kept ? SQLITE_PREPARE_PERSISTENT : 0U, &statement, nullptr);
    if (code != SQLITE_OK) throw_sqlite(code, "prepare a statement", db_);
    return StatementPtr(statement);
}

std::int64_t Connection::query_integer(std::string_view sql) {
    const StatementPtr statement = prepare(sql);
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_ROW) return sqlite3_column_int64(statement.get(), 0);
    if (code != SQLITE_DONE) throw_sqlite(code, "read it", db_);
    return 0;
}

std::string Connection::query_text(std::string_view sql) {
    const StatementPtr statement = prepare(sql);
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) throw_sqlite(code, "read it", db_);
    const void* text = sqlite3_column_blob(statement.get(), 0);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), 0));
    return size == 0 ? std::string{} : std::string(static_cast<const char*>(text), size);
}

void Connection::roll_back() noexcept {
    if (in_transaction()) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

engine::Millis Connection::set_busy_deadline(engine::Millis deadline) {
    return std::exchange(busy_->deadline, deadline);
}

}  // namespace sekali::sqlite
