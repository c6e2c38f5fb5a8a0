#include <exception>

#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/tables.hpp"
#include "sekali/transaction.hpp"

// Handlers' own writes.
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

class Session final : public internal::SqlSession {
 public:
    Session(Connection& connection, UserSql& user_sql, engine::Tables& tables)
        : connection_(connection), user_sql_(user_sql), tables_(tables) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override {
        const std::int64_t before = sqlite3_total_changes64(connection_.handle());
        Cursor cursor(user_sql_, user_sql_.take(sql, arguments));
        while (cursor.next()) {
        }
        const bool wrote = sqlite3_total_changes64(connection_.handle()) != before;
        return wrote ? sqlite3_changes64(connection_.handle()) : 0;
    }
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override {
        return std::make_unique<Cursor>(user_sql_, user_sql_.take(sql, arguments));
    }
    engine::Tables& tables() override { return tables_; }

 private:
    Connection& connection_;
    UserSql& user_sql_;
    engine::Tables& tables_;
};

}  // namespace

Result<void> SqliteTables::run_effects(const std::function<Result<void>(Transaction&)>& effects) {
    Query(statements_, Sql::kSavepoint).run();
    Result<void> result;
    try {
        Session session(connection_, user_sql_, *this);
        Transaction transaction(session);
        result = effects(transaction);
    } catch (const Failure& failure) {
        result = failure.error();
    } catch (const std::exception& thrown) {
        result = refused(thrown.what(), {});
    } catch (...) {
        result = refused("an effect threw something unknown", {});
    }
    // Nothing of the group is left: it cannot go on, and each of its tasks runs again alone.
    if (!connection_.in_transaction()) {
        throw Failure(result ? refused("an effect ended the whole transaction", {})
                             : result.error());
    }
    if (!result) {
        Query(statements_, Sql::kSavepointRollBack).run();
        forget_learned();
    }
    Query(statements_, Sql::kSavepointRelease).run();
    return result;
}

}  // namespace sekali::sqlite
