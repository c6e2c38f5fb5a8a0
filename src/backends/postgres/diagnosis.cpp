#include "backends/postgres/diagnosis.hpp"

#include "backends/postgres/connection.hpp"
#include "backends/postgres/sql.hpp"
#include "base/clock.hpp"

namespace sekali::postgres {
namespace {

constexpr std::string_view kSettings =
    "SELECT current_setting('server_version'), (SELECT version FROM @meta),"
    " current_setting('fsync'), current_setting('synchronous_commit'),"
    " current_setting('full_page_writes'), current_setting('default_transaction_isolation'),"
    " current_setting('autovacuum') = 'on',"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
    " current_setting('max_connections')::bigint"
    " - current_setting('superuser_reserved_connections')::bigint,"
    " (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

constexpr std::string_view kSnapshot =
    "SELECT (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint,"
    " pid || ' ' || application_name FROM pg_stat_activity"
    " WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    " ORDER BY age(backend_xmin) DESC LIMIT 1";

constexpr std::string_view kRows =
    "SELECT coalesce(sum(n_live_tup), 0)::bigint, coalesce(sum(n_dead_tup), 0)::bigint"
    " FROM pg_stat_user_tables WHERE relid = '@jobs'::regclass";

constexpr std::string_view kCollation =
    "SELECT coalesce(datcollversion || ' recorded, '"
    " || pg_database_collation_actual_version(oid) || ' present', '') FROM pg_database"
    " WHERE datname = current_database()"
    " AND datcollversion <> pg_database_collation_actual_version(oid)";

constexpr std::string_view kLag =
    "SELECT (max(extract(epoch FROM replay_lag)) * 1000)::bigint FROM pg_stat_replication"
    " WHERE replay_lag IS NOT NULL";

constexpr std::string_view kRuns =
    "SELECT kind, outcome, finished_at - started_at FROM @attempts"
    " WHERE ns = $1 AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT $2";

class Look {
 public:
    Look(const PostgresOptions& options, std::string_view ns)
        : schema_(options.schema), ns_(ns), connection_(Connection::open(options)) {}

    Diagnosis all() {
        settings();
        if (const ResultPtr row = ask(kSnapshot); PQntuples(row.get()) > 0) {
            Cursor cursor(row.get(), 0);
            cursor.take_into(found_.oldest_snapshot);
            cursor.take_into(found_.oldest_snapshot_of);
        }
        const ResultPtr rows = ask(kRows);
        Cursor counts(rows.get(), 0);
        counts.take_into(found_.live_rows);
        counts.take_into(found_.dead_rows);
        if (const ResultPtr row = ask(kCollation); PQntuples(row.get()) > 0) {
            found_.collation_mismatch = Cursor(row.get(), 0).take<std::string>();
        }
        const ResultPtr lag = ask(kLag);
        found_.replication_lag = Cursor(lag.get(), 0).take<std::optional<engine::Millis>>();
        runs();
        return found_;
    }

 private:
    ResultPtr ask(std::string_view text, Parameters arguments = {}) {
        const Sql sql{"", in_schema(text, schema_), "look at the server"};
        return connection_->run_one({&sql, std::move(arguments)});
    }

    void settings() {
        const std::int64_t before = base::wall_ms();
        const ResultPtr row = ask(kSettings);
        const std::int64_t after = base::wall_ms();
        Cursor cursor(row.get(), 0);
        cursor.take_into(found_.server);
        cursor.take_into(found_.schema);
        cursor.take_into(found_.fsync);
        cursor.take_into(found_.synchronous_commit);
        cursor.take_into(found_.full_page_writes);
        cursor.take_into(found_.isolation);
        cursor.take_into(found_.autovacuum);
        cursor.take_into(found_.read_only);
        cursor.take_into(found_.connections);
        cursor.take_into(found_.connection_limit);
        const auto server_ms = cursor.take<std::int64_t>();
        found_.clock_ahead = engine::Millis{server_ms - (before + after) / 2};
    }

    void runs() {
        const ResultPtr rows = ask(kRuns, parameters(ns_, engine::kMeasuredRuns));
        std::vector<engine::RecordedRun> runs;
        for (int row = 0; row < PQntuples(rows.get()); ++row) {
            Cursor cursor(rows.get(), row);
            engine::RecordedRun& run = runs.emplace_back();
            cursor.take_into(run.kind);
            cursor.take_into(run.outcome);
            cursor.take_into(run.took);
        }
        found_.history = engine::measure(runs);
    }

    std::string schema_;
    std::string ns_;
    std::unique_ptr<Connection> connection_;
    Diagnosis found_;
};

}  // namespace

Result<Diagnosis> diagnose(const PostgresOptions& options, std::string_view ns) {
    try {
        return Look(options, ns).all();
    } catch (const Failure& failure) {
        return failure.error();
    }
}

}  // namespace sekali::postgres
