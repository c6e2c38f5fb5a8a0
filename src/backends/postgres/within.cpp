#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backends/postgres/session.hpp"
#include "backends/postgres/tables.hpp"
#include "base/errors.hpp"
#include "engine/transaction_access.hpp"
#include "sekali/postgres.hpp"

// The transaction that a user has open on a connection of his own.
namespace sekali::postgres {
namespace {

/// Runs commands one by one: the user's connection is blocking, and nothing stays prepared on it.
class UserChannel final : public Channel {
 public:
    explicit UserChannel(PGconn* connection) : connection_(connection) {}

    std::vector<ResultPtr> run(std::span<const Command> commands) override {
        std::vector<ResultPtr> results;
        for (const Command& command : commands)
            results.push_back(run(command));
        return results;
    }
    [[nodiscard]] PGconn* handle() const override { return connection_; }

 private:
    ResultPtr run(const Command& command) {
        const Arguments given(command.parameters);
        ResultPtr result(PQexecParams(connection_, command.sql->text.c_str(), given.count(),
                                      given.types(), given.values(), given.lengths(),
                                      given.formats(), command.sql->answers_in_text ? 0 : 1));
        const ExecStatusType status = PQresultStatus(result.get());
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return result;
        throw failure_of(result.get(), command.sql->doing);
    }

    PGconn* connection_;
};

/// The statements of a schema, made once in a process.
const Statements& statements_of(std::string_view schema) {
    static std::mutex mutex;
    static std::map<std::string, Statements, std::less<>> known;
    const std::lock_guard guard(mutex);
    const auto found = known.find(schema);
    if (found != known.end()) return found->second;
    return known.emplace(std::string(schema), Statements(schema)).first->second;
}

class JoinedSession final : public internal::SqlSession, public ConnectionOwner {
 public:
    JoinedSession(PGconn* connection, std::string_view schema)
        : channel_(connection),
          tables_(statements_of(schema), options_),
          session_(channel_, tables_) {
        tables_.start(channel_, PostgresTables::Mode::kWriteThrough);
    }

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override {
        return session_.execute(sql, arguments);
    }
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override {
        return session_.query(sql, arguments);
    }
    PGconn* hand_over() override { return channel_.handle(); }
    engine::Tables& tables() override {
        if (PQtransactionStatus(channel_.handle()) != PQTRANS_INTRANS) {
            throw Failure(base::usage_error("no transaction is open on this connection",
                                            "begin one first, and commit it after the enqueue"));
        }
        // What an earlier call has read is not locked and may have changed since.
        tables_.start(channel_, PostgresTables::Mode::kWriteThrough);
        tables_.load({});
        return tables_;
    }

 private:
    UserChannel channel_;
    PostgresOptions options_;
    PostgresTables tables_;
    Session session_;
};

}  // namespace

Transaction within(PGconn* connection, std::string_view schema) {
    return Transaction(std::make_unique<JoinedSession>(connection, schema));
}

::pg_conn* connection_of(Transaction& transaction) {
    auto* owner =
        dynamic_cast<ConnectionOwner*>(&internal::TransactionAccess::session(transaction));
    if (owner == nullptr) {
        throw Failure(base::usage_error("the store of this transaction is not PostgreSQL"));
    }
    return owner->hand_over();
}

}  // namespace sekali::postgres
