#include <memory>
#include <optional>
#include <utility>

#include "backends/sqlite/session.hpp"
#include "backends/sqlite/store_time.hpp"
#include "backends/sqlite/tables.hpp"
#include "base/errors.hpp"
#include "sekali/sqlite.hpp"

// The transaction that a user has open on a connection of his own.
namespace sekali::sqlite {
namespace {

class JoinedSession final : public internal::SqlSession {
 public:
    explicit JoinedSession(sqlite3* db)
        : connection_(db),
          tables_(connection_, nullptr, SqliteTables::UserAccess::kOpen),
          user_sql_(connection_, false),
          timer_(ClockHooks{}),
          session_(connection_, user_sql_, tables_) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override {
        return session_.execute(sql, arguments);
    }
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override {
        return session_.query(sql, arguments);
    }
    engine::Tables& tables() override {
        if (!connection_.in_transaction()) {
            throw Failure(base::usage_error(
                "no transaction is open on this connection",
                "begin one first, by `begin immediate`, and commit it after the enqueue"));
        }
        if (!timer_.load(tables_.statements())) timer_.fix(tables_.statements());
        timer_.keep_bound(tables_.statements(), timer_.now());
        tables_.start(timer_.now());
        return tables_;
    }

 private:
    Connection connection_;
    SqliteTables tables_;
    UserSql user_sql_;
    StoreTimer timer_;
    Session session_;
};

}  // namespace

Transaction within(sqlite3* db) {
    return Transaction(std::make_unique<JoinedSession>(db));
}

}  // namespace sekali::sqlite
