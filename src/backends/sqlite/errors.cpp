#include "backends/sqlite/errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <sqlite3.h>

namespace sekali::sqlite {
namespace {

struct Meaning {
    int code;  ///< An extended code, or a primary one that stands for all of its kind.
    std::string_view name;
    ErrorCode error;
    bool retryable;
    std::string_view meaning;
    std::string_view hint;
};

constexpr std::string_view kCheckDisk = "check the disk and the kernel's log";
constexpr std::string_view kRestore =
    "stop the workers, keep a copy of the file with its -wal, and restore a backup";

// clang-format off
constexpr std::array kMeanings{
    Meaning{SQLITE_BUSY, "SQLITE_BUSY", ErrorCode::kUnreachable, true,
            "another connection kept the database locked",
            "look for a program with an open write transaction on this file"},
    Meaning{SQLITE_LOCKED, "SQLITE_LOCKED", ErrorCode::kUnreachable, true,
            "another statement kept a table locked", ""},
    Meaning{SQLITE_FULL, "SQLITE_FULL", ErrorCode::kRefused, true,
            "the disk is full", "free space; work continues by itself"},
    Meaning{SQLITE_READONLY_DBMOVED, "SQLITE_READONLY_DBMOVED", ErrorCode::kRefused, false,
            "the database file was moved or deleted while it was open", "start again"},
    Meaning{SQLITE_READONLY, "SQLITE_READONLY", ErrorCode::kRefused, false,
            "the database is read-only", "check the owner and mode of the file and its folder"},
    Meaning{SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC", ErrorCode::kUnreachable, true,
            "the disk did not confirm a write", kCheckDisk},
    Meaning{SQLITE_IOERR, "SQLITE_IOERR", ErrorCode::kUnreachable, true,
            "the disk failed", kCheckDisk},
    Meaning{SQLITE_CORRUPT, "SQLITE_CORRUPT", ErrorCode::kRefused, false,
            "the database is damaged", kRestore},
    Meaning{SQLITE_NOTADB, "SQLITE_NOTADB", ErrorCode::kRefused, false,
            "the file is no SQLite database", "check the path"},
    Meaning{SQLITE_CANTOPEN, "SQLITE_CANTOPEN", ErrorCode::kRefused, false,
            "a file of the database cannot be opened",
            "check that the folder exists and may be written: SQLite keeps files in it"},
    Meaning{SQLITE_PERM, "SQLITE_PERM", ErrorCode::kRefused, false,
            "the operating system denies access", "check the owner and mode of the file"},
    Meaning{SQLITE_AUTH, "SQLITE_AUTH", ErrorCode::kRefused, false,
            "the statement is not allowed here", ""},
    Meaning{SQLITE_NOMEM, "SQLITE_NOMEM", ErrorCode::kUnreachable, true, "memory ran out", ""},
    Meaning{SQLITE_TOOBIG, "SQLITE_TOOBIG", ErrorCode::kUsage, false, "a value is too large", ""},
    Meaning{SQLITE_CONSTRAINT_UNIQUE, "SQLITE_CONSTRAINT_UNIQUE", ErrorCode::kConflict, false,
            "a row of that unique value exists", ""},
    Meaning{SQLITE_CONSTRAINT_PRIMARYKEY, "SQLITE_CONSTRAINT_PRIMARYKEY", ErrorCode::kConflict,
            false, "a row of that primary key exists", ""},
    Meaning{SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", ErrorCode::kConflict, false,
            "a constraint does not allow it", ""},
    Meaning{SQLITE_INTERRUPT, "SQLITE_INTERRUPT", ErrorCode::kCancelled, true,
            "it was interrupted", ""},
    Meaning{SQLITE_ERROR, "SQLITE_ERROR", ErrorCode::kUsage, false, "the statement is wrong", ""},
};
// clang-format on

constexpr Meaning kOther{SQLITE_ERROR, "SQLITE_ERROR",  ErrorCode::kInternal,
                         false,        "SQLite failed", ""};

const Meaning& meaning_of(int code) {
    const auto exact = std::find_if(kMeanings.begin(), kMeanings.end(),
                                    [&](const Meaning& row) { return row.code == code; });
    if (exact != kMeanings.end()) return *exact;
    const int primary = code & 0xff;
    const auto kind = std::find_if(kMeanings.begin(), kMeanings.end(),
                                   [&](const Meaning& row) { return row.code == primary; });
    return kind == kMeanings.end() ? kOther : *kind;
}

}  // namespace

Error sqlite_error(int code, std::string_view doing, sqlite3* db) {
    const Meaning& meaning = meaning_of(code);
    const char* path = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
    const char* detail = db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
    Error error;
    error.code = meaning.error;
    error.message = "sqlite:";
    if (path != nullptr) error.message.append(path);
    error.message.append(": could not ").append(doing).append(": ").append(meaning.meaning);
    error.message.append(" (").append(detail).append(")");
    error.hint = meaning.hint;
    error.retryable = meaning.retryable;
    error.backend_code = meaning.name;
    if (meaning.code != code) error.backend_code.append(" ").append(std::to_string(code));
    return error;
}

void throw_sqlite(int code, std::string_view doing, sqlite3* db) {
    throw Failure(sqlite_error(code, doing, db));
}

Error system_error(int number, std::string_view doing, const std::string& path) {
    Error error;
    error.code = ErrorCode::kRefused;
    error.message = "sqlite: could not " + std::string(doing) + " " + path + ": " +
                    std::generic_category().message(number);
    error.backend_code = "errno " + std::to_string(number);
    if (number == EACCES || number == EPERM || number == EROFS) {
        error.hint = "check the owner and mode of the file and its folder";
    } else if (number == ENOSPC || number == EDQUOT) {
        error.hint = "free space";
        error.retryable = true;
    }
    return error;
}

Error refused(std::string message, std::string hint) {
    Error error;
    error.code = ErrorCode::kRefused;
    error.message = std::move(message);
    error.hint = std::move(hint);
    return error;
}

}  // namespace sekali::sqlite
