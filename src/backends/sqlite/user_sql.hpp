#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sqlite/connection.hpp"
#include "sekali/sql.hpp"

namespace sekali::sqlite {

/// A user's own statement, prepared.
struct UserStatement {
    std::string sql;
    StatementPtr prepared;
    /// For each of SQLite's placeholders the number behind its `$`.
    std::vector<std::size_t> arguments;
};

/// Runs users' statements on a connection that also holds sekali's rows: while one of them is
/// prepared or run, the connection refuses what would end the transaction or touch those rows.
class UserSql {
 public:
    /// On a borrowed connection nothing is refused: its transaction is its owner's.
    UserSql(Connection& connection, bool guarded);
    UserSql(const UserSql&) = delete;
    UserSql& operator=(const UserSql&) = delete;
    ~UserSql() = default;

    /// Takes the statement out of the cache, or prepares it. Throws `Failure`.
    [[nodiscard]] UserStatement take(std::string_view sql, std::span<const SqlValue> arguments);
    void give_back(UserStatement statement);
    /// One step; false behind the last row.
    bool step(const UserStatement& statement);

 private:
    static int authorize(void* self, int action, const char* first, const char* second,
                         const char* database, const char* trigger);
    [[nodiscard]] std::optional<std::string> objection(int action, std::string_view first,
                                                       std::string_view second) const;
    [[nodiscard]] UserStatement prepare(std::string_view sql);
    void throw_failure(int code);

    Connection& connection_;
    std::map<std::string, UserStatement, std::less<>> cache_;
    bool user_is_running_ = false;
    std::string refused_because_;
};

}  // namespace sekali::sqlite
