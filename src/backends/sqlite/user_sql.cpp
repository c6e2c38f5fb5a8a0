#include "backends/sqlite/user_sql.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "backends/sqlite/errors.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::sqlite {
namespace {

constexpr std::size_t kCachedStatements = 128;
constexpr std::string_view kOwnPrefix = "sekali_";

bool is_own(std::string_view name) {
    return name.size() >= kOwnPrefix.size() &&
           std::equal(kOwnPrefix.begin(), kOwnPrefix.end(), name.begin(), [](char own, char c) {
               return own == static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
           });
}

/// The numbers behind `$` of the placeholders, in the order in which SQLite counts them.
std::vector<std::size_t> argument_numbers(sqlite3_stmt* statement) {
    std::vector<std::size_t> numbers;
    const int count = sqlite3_bind_parameter_count(statement);
    for (int place = 1; place <= count; ++place) {
        const char* raw = sqlite3_bind_parameter_name(statement, place);
        const std::string_view name = raw == nullptr ? "?" : raw;
        std::size_t number = 0;
        const auto [end, error] =
            std::from_chars(name.data() + 1, name.data() + name.size(), number);
        const bool numbered =
            error == std::errc{} && end == name.data() + name.size() && number > 0;
        if (!name.starts_with('$') || !numbered) {
            throw Failure(base::usage_error("placeholder " + base::quoted(name) +
                                            " is not of the form $1, $2, …"));
        }
        numbers.push_back(number);
    }
    return numbers;
}

void bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
    struct Binder {
        sqlite3_stmt* statement;
        int place;
        int operator()(std::monostate) const { return sqlite3_bind_null(statement, place); }
        int operator()(std::int64_t number) const {
            return sqlite3_bind_int64(statement, place, number);
        }
        int operator()(double number) const {
            return sqlite3_bind_double(statement, place, number);
        }
        int operator()(const std::string& text) const {
            return sqlite3_bind_text64(statement, place, text.c_str(), text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
        }
        int operator()(const Blob& blob) const {
            return sqlite3_bind_blob64(statement, place, blob.bytes.c_str(), blob.bytes.size(),
                                       SQLITE_TRANSIENT);
        }
    };
    const int code = std::visit(Binder{statement, place}, value);
    if (code != SQLITE_OK) throw_sqlite(code, "bind an argument", sqlite3_db_handle(statement));
}

bool names_a_temporary(int action) {
    switch (action) {
        case SQLITE_CREATE_TEMP_INDEX:
        case SQLITE_CREATE_TEMP_TABLE:
        case SQLITE_CREATE_TEMP_TRIGGER:
        case SQLITE_CREATE_TEMP_VIEW:
        case SQLITE_DROP_TEMP_INDEX:
        case SQLITE_DROP_TEMP_TABLE:
        case SQLITE_DROP_TEMP_TRIGGER:
        case SQLITE_DROP_TEMP_VIEW:
            return true;
        default:
            return false;
    }
}

}  // namespace

UserSql::UserSql(Connection& connection, bool guarded) : connection_(connection) {
    // Set before anything is prepared: SQLite prepares everything again when it is set later.
    if (guarded) sqlite3_set_authorizer(connection_.handle(), &UserSql::authorize, this);
}

int UserSql::authorize(void* self, int action, const char* first, const char* second,
                       const char* /*database*/, const char* /*trigger*/) {
    auto& user_sql = *static_cast<UserSql*>(self);
    if (!user_sql.user_is_running_) return SQLITE_OK;
    auto objection =
        user_sql.objection(action, first == nullptr ? "" : first, second == nullptr ? "" : second);
    if (!objection) return SQLITE_OK;
    user_sql.refused_because_ = *std::move(objection);
    return SQLITE_DENY;
}

std::optional<std::string> UserSql::objection(int action, std::string_view first,
                                              std::string_view second) const {
    switch (action) {
        case SQLITE_TRANSACTION:
        case SQLITE_SAVEPOINT:
            return "the transaction is sekali's to begin and to end";
        case SQLITE_ATTACH:
        case SQLITE_DETACH:
            return "databases cannot be attached or detached inside a commit";
        case SQLITE_PRAGMA:
            return "PRAGMA is not allowed inside a commit";
        case SQLITE_READ:
        case SQLITE_SELECT:
        case SQLITE_FUNCTION:
        case SQLITE_RECURSIVE:
            return std::nullopt;
        default:
            break;
    }
    if (names_a_temporary(action)) return "temporary tables would outlive the commit";
    if (is_own(first) || is_own(second)) {
        return "the tables of sekali are read-only here; read its views, enqueue by `enqueue`";
    }
    return std::nullopt;
}

void UserSql::throw_failure(int code) {
    Error error = sqlite_error(code, "run a statement", connection_.handle());
    if (!refused_because_.empty()) {
        error = refused(std::move(refused_because_), "use another connection for it");
        error.backend_code = "SQLITE_AUTH";
        refused_because_.clear();
    }
    if (!connection_.in_transaction()) {
        error.hint =
            "the statement ended the whole transaction; use no OR ROLLBACK and no "
            "RAISE(ROLLBACK) inside a commit";
    }
    throw Failure(std::move(error));
}

UserStatement UserSql::prepare(std::string_view sql) {
    sqlite3_stmt* raw = nullptr;
    const char* tail = nullptr;
    user_is_running_ = true;
    const int code = sqlite3_prepare_v3(connection_.handle(), sql.data(),
                                        static_cast<int>(sql.size()), 0, &raw, &tail);
    user_is_running_ = false;
    UserStatement statement{std::string(sql), StatementPtr(raw), {}};
    if (code != SQLITE_OK) throw_failure(code);
    const std::string_view rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
    if (raw == nullptr) throw Failure(base::usage_error("the SQL statement is empty"));
    if (rest.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
        throw Failure(base::usage_error(
            "one call runs one SQL statement; behind the first stands " + base::quoted(rest)));
    }
    statement.arguments = argument_numbers(raw);
    return statement;
}

UserStatement UserSql::take(std::string_view sql, std::span<const SqlValue> arguments) {
    UserStatement statement;
    if (const auto cached = cache_.find(sql); cached != cache_.end()) {
        statement = std::move(cached->second);
        cache_.erase(cached);
    } else {
        statement = prepare(sql);
    }
    std::size_t highest = 0;
    for (std::size_t i = 0; i < statement.arguments.size(); ++i) {
        const std::size_t number = statement.arguments[i];
        highest = std::max(highest, number);
        if (number > arguments.size()) break;
        bind(statement.prepared.get(), static_cast<int>(i) + 1, arguments[number - 1]);
    }
    if (highest != arguments.size()) {
        throw Failure(base::usage_error("the SQL statement has placeholders up to $" +
                                        std::to_string(highest) + " and was given " +
                                        std::to_string(arguments.size()) + " arguments"));
    }
    return statement;
}

void UserSql::give_back(UserStatement statement) {
    sqlite3_reset(statement.prepared.get());
    sqlite3_clear_bindings(statement.prepared.get());
    if (cache_.size() >= kCachedStatements) cache_.clear();
    std::string sql = statement.sql;
    cache_.insert_or_assign(std::move(sql), std::move(statement));
}

bool UserSql::step(const UserStatement& statement) {
    user_is_running_ = true;
    const int code = sqlite3_step(statement.prepared.get());
    user_is_running_ = false;
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) throw_failure(code);
    return false;
}

}  // namespace sekali::sqlite
