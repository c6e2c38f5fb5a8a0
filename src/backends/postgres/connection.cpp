#include "backends/postgres/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/clock.hpp"

namespace sekali::postgres {
namespace {

/// What a connection of sekali's needs beside what the URL says. The planner's settings hold the
/// plans of the prepared statements to index scans in order: on tables that nobody has analysed
/// yet, an update of many keys would else read the whole table, and a claim sort all that is ready.
std::string settings_text(const PostgresOptions& options, std::string_view is_local) {
    const std::string lock_timeout = std::to_string(options.lock_deadline.count());
    const std::array<std::pair<std::string_view, std::string_view>, 10> settings{
        {{"client_encoding", "UTF8"},
         {"client_min_messages", "warning"},
         {"plan_cache_mode", "force_generic_plan"},
         {"enable_seqscan", "off"},
         {"enable_bitmapscan", "off"},
         {"enable_hashjoin", "off"},
         {"enable_mergejoin", "off"},
         {"jit", "off"},
         {"lock_timeout", lock_timeout},
         {"idle_in_transaction_session_timeout", "60000"}}};
    std::string text;
    for (const auto& [name, value] : settings) {
        text += text.empty() ? "SELECT set_config('" : ", set_config('";
        text.append(name).append("', '").append(value).append("', ").append(is_local).append(")");
    }
    return text;
}

/// Without these libpq waits for a dead peer for as long as the kernel does.
struct Keepalive {
    const char* keyword;
    const char* value;
};
constexpr std::array<Keepalive, 4> kKeepalives{{{"keepalives_idle", "10"},
                                                {"keepalives_interval", "5"},
                                                {"keepalives_count", "3"},
                                                {"tcp_user_timeout", "30000"}}};

/// Statements of users that a connection keeps prepared.
constexpr std::size_t kMostOfUsers = 200;
/// "cached plan must not change result type": a table has changed since the statement was prepared.
constexpr std::string_view kFeatureNotSupported = "0A000";

}  // namespace

bool wait_for_socket(int socket, bool for_writing, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::duration_cast<engine::Millis>(deadline - base::steady_now());
        if (left.count() < 0) return false;
        pollfd entry{socket, static_cast<short>(for_writing ? POLLIN | POLLOUT : POLLIN), 0};
        const int ready = ::poll(&entry, 1, static_cast<int>(left.count()) + 1);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

/// What the server is to answer, in this order.
struct Connection::Expected {
    const Command* command;
    bool is_prepare;
};

struct Connection::Opening {
    PGconn* connection;
};

Connection::Connection(const Opening& opening, const PostgresOptions& options)
    : connection_(opening.connection),
      statement_deadline_(options.statement_deadline),
      local_settings_{"", settings_text(options, "true"), "prepare the transaction"} {}

Connection::~Connection() = default;

std::unique_ptr<Connection> Connection::open(const PostgresOptions& options) {
    // Values given twice: the later one wins, so what the URL says about them stands last.
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const Keepalive& keepalive : kKeepalives) {
        keywords.push_back(keepalive.keyword);
        values.push_back(keepalive.value);
    }
    const std::string name = "sekali " + options.schema;
    keywords.push_back("application_name");
    values.push_back(name.c_str());
    keywords.push_back("dbname");
    values.push_back(options.connection.c_str());
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    PGconn* raw = PQconnectStartParams(keywords.data(), values.data(), 1);
    if (raw == nullptr) throw lost_connection("out of memory");
    auto made = std::make_unique<Connection>(Opening{raw}, options);
    const auto deadline = base::steady_now() + options.connect_deadline;
    for (bool for_writing = true;;) {
        if (PQstatus(raw) == CONNECTION_BAD) throw lost_connection(PQerrorMessage(raw));
        if (!wait_for_socket(PQsocket(raw), for_writing, deadline)) {
            throw lost_connection("the server did not answer in time");
        }
        const PostgresPollingStatusType status = PQconnectPoll(raw);
        if (status == PGRES_POLLING_OK) break;
        if (status == PGRES_POLLING_FAILED) throw lost_connection(PQerrorMessage(raw));
        for_writing = status == PGRES_POLLING_WRITING;
    }
    PQsetnonblocking(raw, 1);
    made->find_pooler();
    if (!made->is_pooled())
        made->run_script(settings_text(options, "false"), "prepare the session");
    return made;
}

void Connection::find_pooler() {
    const Sql who{"", "SELECT pg_backend_pid()", "ask who the server is"};
    const Command ask[] = {{&who, {}}};
    const auto pid = Cursor(run_one_by_one(ask).front().get(), 0).take<std::int64_t>();
    is_pooled_ = pid != PQbackendPID(connection_.get());
}

bool Connection::is_usable() const {
    return connection_ != nullptr && PQstatus(connection_.get()) == CONNECTION_OK;
}

bool Connection::in_transaction() const {
    const PGTransactionStatusType status = PQtransactionStatus(connection_.get());
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE;
}

void Connection::lose(std::string_view why) {
    SqlFailure failure = lost_connection(why);
    connection_.reset();
    throw std::move(failure);
}

void Connection::wait(bool for_writing, Clock::time_point deadline) {
    if (!wait_for_socket(PQsocket(connection_.get()), for_writing, deadline)) {
        lose("the server did not answer in time");
    }
    if (PQconsumeInput(connection_.get()) == 0) lose(PQerrorMessage(connection_.get()));
}

/// Flushes while it can and reads while it must: two full buffers would wait for each other.
ResultPtr Connection::next_result(Clock::time_point deadline) {
    for (;;) {
        const int unsent = PQflush(connection_.get());
        if (unsent < 0) lose(PQerrorMessage(connection_.get()));
        if (PQisBusy(connection_.get()) == 0) return ResultPtr(PQgetResult(connection_.get()));
        wait(unsent > 0, deadline);
    }
}

void Connection::send(const Command& command, std::vector<Expected>& expected) {
    const Sql& sql = *command.sql;
    const Arguments given(command.parameters);
    PGconn* connection = connection_.get();
    const int answer_format = sql.answers_in_text ? 0 : 1;
    int sent = 0;
    const bool is_new = !prepared_.contains(sql.name);
    const bool is_full = sql.is_of_user && is_new && prepared_of_users_ >= kMostOfUsers;
    if (sql.name.empty() || is_full || is_pooled_) {
        sent = PQsendQueryParams(connection, sql.text.c_str(), given.count(), given.types(),
                                 given.values(), given.lengths(), given.formats(), answer_format);
    } else {
        if (prepared_.insert(sql.name).second) {
            if (sql.is_of_user) ++prepared_of_users_;
            expected.push_back({&command, true});
            sent = PQsendPrepare(connection, sql.name.c_str(), sql.text.c_str(), given.count(),
                                 given.types());
            if (sent == 0) lose(PQerrorMessage(connection));
        }
        sent = PQsendQueryPrepared(connection, sql.name.c_str(), given.count(), given.values(),
                                   given.lengths(), given.formats(), answer_format);
    }
    if (sent == 0) lose(PQerrorMessage(connection));
    expected.push_back({&command, false});
}

std::vector<ResultPtr> Connection::run_one_by_one(std::span<const Command> commands) {
    const auto deadline = base::steady_now() + statement_deadline_;
    std::vector<ResultPtr> results;
    for (const Command& command : commands) {
        const Sql plain{"", command.sql->text, command.sql->doing, command.sql->answers_in_text};
        std::vector<Expected> expected;
        send({&plain, command.parameters}, expected);
        std::optional<SqlFailure> failure;
        while (ResultPtr result = next_result(deadline)) {
            const ExecStatusType status = PQresultStatus(result.get());
            const bool fine = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
            if (!fine && !failure) failure = failure_of(result.get(), plain.doing);
            if (fine) results.push_back(std::move(result));
        }
        if (!failure) continue;
        if (failure->trouble() == Trouble::kLost) connection_.reset();
        throw *std::move(failure);
    }
    return results;
}

std::vector<ResultPtr> Connection::run(std::span<const Command> commands) {
    if (!is_usable()) lose("it was closed");
    if (is_pooled_) return run_one_by_one(commands);
    PGconn* connection = connection_.get();
    const auto deadline = base::steady_now() + statement_deadline_;
    if (PQenterPipelineMode(connection) == 0) lose(PQerrorMessage(connection));
    std::vector<Expected> expected;
    for (const Command& command : commands)
        send(command, expected);
    if (PQpipelineSync(connection) == 0) lose(PQerrorMessage(connection));

    std::vector<ResultPtr> results;
    std::optional<SqlFailure> failure;
    for (const Expected& next : expected) {
        ResultPtr result = next_result(deadline);
        if (result == nullptr) lose(PQerrorMessage(connection));
        const ExecStatusType status = PQresultStatus(result.get());
        const bool fine = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
        if (!fine && next.is_prepare) prepared_.erase(next.command->sql->name);
        if (!fine && status != PGRES_PIPELINE_ABORTED && !failure) {
            failure = failure_of(result.get(), next.command->sql->doing);
        }
        if (!next.is_prepare) results.push_back(std::move(result));
        // A null result ends the answer to each command.
        if (next_result(deadline) != nullptr) lose("an answer had more than one part");
    }
    const ResultPtr sync = next_result(deadline);
    if (sync == nullptr || PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) {
        // A server that is shut down says so in place of the rest of the answers.
        connection_.reset();
        throw failure ? *std::move(failure) : lost_connection("the server went away");
    }
    PQexitPipelineMode(connection);
    if (failure) {
        if (failure->trouble() == Trouble::kLost) connection_.reset();
        if (failure->error().backend_code == kFeatureNotSupported) {
            connection_.reset();
            throw SqlFailure(Trouble::kConflict, failure->error());
        }
        throw *std::move(failure);
    }
    return results;
}

void Connection::run_script(const std::string& text, std::string_view doing) {
    if (!is_usable()) lose("it was closed");
    const auto deadline = base::steady_now() + statement_deadline_;
    if (PQsendQuery(connection_.get(), text.c_str()) == 0) lose(PQerrorMessage(connection_.get()));
    std::optional<SqlFailure> failure;
    while (const ResultPtr result = next_result(deadline)) {
        const ExecStatusType status = PQresultStatus(result.get());
        if (status == PGRES_FATAL_ERROR && !failure) failure = failure_of(result.get(), doing);
    }
    if (failure) throw *std::move(failure);
}

void Connection::roll_back() noexcept {
    if (!is_usable()) return;
    try {
        if (in_transaction()) run_script("ROLLBACK", "roll back");
    } catch (const SqlFailure&) {
        connection_.reset();
    }
}

}  // namespace sekali::postgres
