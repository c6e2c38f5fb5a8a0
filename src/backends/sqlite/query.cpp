#include "backends/sqlite/query.hpp"

#include "backends/sqlite/errors.hpp"
#include "base/assert.hpp"

namespace sekali::sqlite {

sqlite3_stmt* Statements::use(Sql which) {
    StatementPtr& statement = prepared_.at(static_cast<std::size_t>(which));
    if (!statement) statement = connection_.prepare(text_of(which), true);
    SEKALI_ASSERT(sqlite3_stmt_busy(statement.get()) == 0, "a statement is used inside itself");
    return statement.get();
}

bool Query::next() {
    read_ = 0;
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) throw_sqlite(code, "use its rows", connection_.handle());
    return false;
}

std::size_t Query::run() {
    while (next()) {
    }
    return static_cast<std::size_t>(sqlite3_changes64(connection_.handle()));
}

void Query::bind_blob(std::string_view bytes) {
    // A null pointer would bind a null.
    const char* data = bytes.empty() ? "" : bytes.data();
    sqlite3_bind_blob64(statement_, ++bound_, data, bytes.size(), SQLITE_STATIC);
}

void Query::put_text(int place, std::string_view text) {
    const char* data = text.empty() ? "" : text.data();
    sqlite3_bind_text64(statement_, place, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Query::put_integer(int place, std::int64_t value) {
    sqlite3_bind_int64(statement_, place, value);
}

void Query::put_number(int place, double value) {
    sqlite3_bind_double(statement_, place, value);
}

void Query::put_null(int place) {
    sqlite3_bind_null(statement_, place);
}

std::string Query::read_text(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return size == 0 ? std::string{} : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace sekali::sqlite
