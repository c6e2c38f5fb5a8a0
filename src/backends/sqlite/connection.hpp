#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "engine/model.hpp"

namespace sekali::sqlite {

struct StatementDeleter {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, StatementDeleter>;

/// One connection, for one thread at a time. Throws `Failure`.
///
/// Its busy handler waits with jitter up to a deadline; SQLite's own sleeps in steps of up to 100
/// ms and starves whoever came late.
class Connection {
 public:
    enum class Mode { kReadWrite, kReadOnly };

    Connection(const std::string& path, Mode mode, engine::Millis busy_deadline);
    /// Works on a connection that somebody else owns and configures.
    explicit Connection(sqlite3* borrowed);
    Connection(Connection&&) noexcept = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() = default;

    [[nodiscard]] sqlite3* handle() const { return db_; }
    [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
    void execute(const char* sql);
    [[nodiscard]] StatementPtr prepare(std::string_view sql, bool kept = false);
    /// The first column of the first row, as an integer or as text; 0 or empty without a row.
    [[nodiscard]] std::int64_t query_integer(std::string_view sql);
    [[nodiscard]] std::string query_text(std::string_view sql);
    /// Ends an open transaction without its writes; does nothing when SQLite already did.
    void roll_back() noexcept;
    /// Returns the former one.
    engine::Millis set_busy_deadline(engine::Millis deadline);

 private:
    struct Busy {
        engine::Millis deadline;
        std::chrono::steady_clock::time_point since;
        static int wait(void* self, int count);
    };
    struct Closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };

    std::unique_ptr<Busy> busy_;
    std::unique_ptr<sqlite3, Closer> owned_;
    sqlite3* db_ = nullptr;
};

}  // namespace sekali::sqlite
