#pragma once

#include <string>
#include <string_view>

#include "sekali/result.hpp"

struct sqlite3;

namespace sekali::sqlite {

/// What an SQLite result code means for the caller. `doing` ends the sentence "could not …".
[[nodiscard]] Error sqlite_error(int code, std::string_view doing, sqlite3* db);
[[noreturn]] void throw_sqlite(int code, std::string_view doing, sqlite3* db);

/// A failed system call on a file beside the database.
[[nodiscard]] Error system_error(int number, std::string_view doing, const std::string& path);

[[nodiscard]] Error refused(std::string message, std::string hint);

}  // namespace sekali::sqlite
