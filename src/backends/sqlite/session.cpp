#include "backends/sqlite/session.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sekali::sqlite {
namespace {

SqlValue column(sqlite3_stmt* statement, int index) {
    const auto bytes = [&] {
        const void* data = sqlite3_column_blob(statement, index);
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, index));
        return size == 0 ? std::string{} : std::string(static_cast<const char*>(data), size);
    };
    switch (sqlite3_column_type(statement, index)) {
        case SQLITE_INTEGER:
            return std::int64_t{sqlite3_column_int64(statement, index)};
        case SQLITE_FLOAT:
            return sqlite3_column_double(statement, index);
        case SQLITE_TEXT:
            return bytes();
        case SQLITE_BLOB:
            return Blob{bytes()};
        default:
            return std::monostate{};
    }
}

class Cursor final : public internal::SqlCursor {
 public:
    Cursor(UserSql& user_sql, UserStatement statement)
        : user_sql_(user_sql), statement_(std::move(statement)) {}
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;
    ~Cursor() override { user_sql_.give_back(std::move(statement_)); }

    bool next() override {
        if (!user_sql_.step(statement_)) return false;
        sqlite3_stmt* statement = statement_.prepared.get();
        const int columns = sqlite3_column_count(statement);
        row_.clear();
        for (int i = 0; i < columns; ++i)
            row_.push_back(column(statement, i));
        return true;
    }
    [[nodiscard]] std::span<const SqlValue> row() const override { return row_; }

 private:
    UserSql& user_sql_;
    UserStatement statement_;
    std::vector<SqlValue> row_;
};

}  // namespace

std::int64_t Session::execute(std::string_view sql, std::span<const SqlValue> arguments) {
    const std::int64_t before = sqlite3_total_changes64(connection_.handle());
    Cursor cursor(user_sql_, user_sql_.take(sql, arguments));
    while (cursor.next()) {
    }
    const bool wrote = sqlite3_total_changes64(connection_.handle()) != before;
    return wrote ? sqlite3_changes64(connection_.handle()) : 0;
}

std::unique_ptr<internal::SqlCursor> Session::query(std::string_view sql,
                                                    std::span<const SqlValue> arguments) {
    return std::make_unique<Cursor>(user_sql_, user_sql_.take(sql, arguments));
}

}  // namespace sekali::sqlite
