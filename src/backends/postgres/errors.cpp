#include "backends/postgres/errors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sekali::postgres {
namespace {

// Names as in appendix A of PostgreSQL's manual.
constexpr std::array<std::string_view, 5> kConflicts{
    "40001",  // serialization_failure
    "40P01",  // deadlock_detected
    "55P03",  // lock_not_available: lock_timeout
    "23505",  // unique_violation: a row appeared that was not there when it was looked for
    "40003",  // statement_completion_unknown
};
constexpr std::array<std::string_view, 6> kNotNow{
    "25006",  // read_only_sql_transaction: a standby, or a read-only window
    "53300",  // too_many_connections
    "57P03",  // cannot_connect_now: starting up or in recovery
    "53100",  // disk_full
    "53200",  // out_of_memory
    "57014",  // query_canceled
};
constexpr std::array<std::string_view, 3> kLost{
    "57P01",  // admin_shutdown
    "57P02",  // crash_shutdown
    "57P05",  // idle_session_timeout
};

struct Meaning {
    std::string_view sqlstate;
    ErrorCode code;
    std::string_view hint;
};
constexpr std::array<Meaning, 9> kMeanings{{
    {"3D000", ErrorCode::kNotFound, "create the database first"},
    {"3F000", ErrorCode::kNotFound, "run `sekali migrate` with this URL first"},
    {"42P01", ErrorCode::kNotFound, "run `sekali migrate` with this URL first"},
    {"42501", ErrorCode::kRefused, "grant the role what the role scripts name"},
    {"28000", ErrorCode::kRefused, "look at user, password and pg_hba.conf"},
    {"28P01", ErrorCode::kRefused, "look at user and password of the URL"},
    {"25006", ErrorCode::kRefused, "the server is read-only: a standby, or a read-only window"},
    {"53100", ErrorCode::kRefused, "the server's disk is full"},
    {"22021", ErrorCode::kUsage, "keys and names are UTF-8 without NUL"},
}};

bool contains(const auto& list, std::string_view sqlstate) {
    return std::find(list.begin(), list.end(), sqlstate) != list.end();
}

std::string first_line(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
        text.remove_suffix(1);
    return std::string(text.substr(0, text.find('\n')));
}

std::string field(const PGresult* result, int code) {
    const char* text = PQresultErrorField(result, code);
    return text == nullptr ? std::string{} : std::string(text);
}

}  // namespace

Trouble trouble_of(std::string_view sqlstate) {
    if (contains(kConflicts, sqlstate)) return Trouble::kConflict;
    if (contains(kNotNow, sqlstate)) return Trouble::kNotNow;
    if (contains(kLost, sqlstate) || sqlstate.starts_with("08")) return Trouble::kLost;
    return Trouble::kOther;
}

SqlFailure failure_of(const PGresult* result, std::string_view doing) {
    const std::string sqlstate = field(result, PG_DIAG_SQLSTATE);
    if (sqlstate.empty()) return lost_connection(PQresultErrorMessage(result));
    Error error;
    error.code = ErrorCode::kRefused;
    error.backend_code = sqlstate;
    const Trouble trouble = trouble_of(sqlstate);
    error.retryable = trouble != Trouble::kOther;
    if (trouble == Trouble::kLost) error.code = ErrorCode::kUnreachable;
    for (const Meaning& meaning : kMeanings) {
        if (meaning.sqlstate != sqlstate) continue;
        error.code = meaning.code;
        error.hint = meaning.hint;
    }
    error.message = "postgres: could not " + std::string(doing) + ": " +
                    first_line(field(result, PG_DIAG_MESSAGE_PRIMARY));
    const std::string detail = field(result, PG_DIAG_MESSAGE_DETAIL);
    if (!detail.empty() && trouble == Trouble::kOther) error.message += " (" + detail + ")";
    return {trouble, std::move(error)};
}

SqlFailure lost_connection(std::string_view why) {
    Error error;
    error.code = ErrorCode::kUnreachable;
    error.message = "postgres: the connection failed: " + first_line(why);
    error.hint = "check that the server runs and that host, port and pg_hba.conf let this host in";
    error.retryable = true;
    return {Trouble::kLost, std::move(error)};
}

}  // namespace sekali::postgres
