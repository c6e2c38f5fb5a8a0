#include "bench/postgres_target.hpp"

#include <utility>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/sql.hpp"
#include "base/ids.hpp"
#include "bench/clock.hpp"
#include "bench/environment.hpp"
#include "bench/figures.hpp"
#include "bench/postgres_raw.hpp"

namespace sekali::bench {
namespace {

using postgres::Connection;
using postgres::in_schema;
using postgres::PostgresOptions;
using postgres::Sql;

constexpr int kCommits = 50;
constexpr std::size_t kNameBytes = 6;
constexpr const char* kEffectsTable =
    "CREATE TABLE @bench_effects("
    "  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job_id text NOT NULL,"
    "  cents bigint NOT NULL)";

PostgresOptions with_fresh_schema(PostgresOptions options) {
    options.schema = "sekali_bench_" + base::random_hex(kNameBytes);
    return options;
}

/// A setting up to its first space: what stands behind is the packager's.
std::string setting(Connection& connection, const std::string& name) {
    const Sql show{"", "SHOW " + name, "read a setting"};
    const std::string value = PQgetvalue(connection.run_one({&show, {}}).get(), 0, 0);
    return value.substr(0, value.find(' '));
}

}  // namespace

PostgresSubject::PostgresSubject(PostgresOptions options)
    : options_(with_fresh_schema(std::move(options))) {
    const auto connection = Connection::open(options_);
    postgres::migrate(*connection, options_.schema);
    connection->run_script(in_schema(kEffectsTable, options_.schema), "make a table");
}

PostgresSubject::~PostgresSubject() {
    try {
        Connection::open(options_)->run_script(
            "DROP SCHEMA IF EXISTS \"" + options_.schema + "\" CASCADE", "drop a schema");
    } catch (const Failure&) {
        // The server is gone; the name says whose the schema was.
    }
}

std::string PostgresSubject::url() const {
    const std::string& connection = options_.connection;
    const bool has_query = connection.find('?') != std::string::npos;
    return connection + (has_query ? "&" : "?") + "schema=" + options_.schema;
}

std::string PostgresSubject::effect_sql() const {
    return in_schema("INSERT INTO @bench_effects(job_id, cents) VALUES($1, $2)", options_.schema);
}

std::unique_ptr<RawStore> PostgresSubject::raw(const Level& level) {
    return std::make_unique<RawPostgres>(options_, level);
}

std::function<bool()> PostgresSubject::running() {
    std::shared_ptr<Connection> connection = Connection::open(options_);
    const Sql question{"running",
                       in_schema("SELECT 1 FROM @jobs WHERE ns = 'default' AND state = 3"
                                 " AND state IN (3, 4) LIMIT 1",
                                 options_.schema),
                       "look for running jobs"};
    return [connection, question] {
        return PQntuples(connection->run_one({&question, {}}).get()) > 0;
    };
}

Environment PostgresTarget::look_around() {
    Environment found = look_at_machine();
    const PostgresSubject subject(options_);
    const auto connection = Connection::open(options_);
    found.backend = "postgres";
    found.version = setting(*connection, "server_version");
    found.fsync = setting(*connection, "fsync");
    found.synchronous = setting(*connection, "synchronous_commit");
    const Sql insert{"insert", subject.effect_sql(), "write a row"};
    std::vector<double> times;
    for (int i = 0; i < kCommits; ++i) {
        const Stopwatch watch;
        connection->run_one({&insert, postgres::parameters("commit", kEffectCents)});
        times.push_back(watch.ms());
    }
    found.commit_ms_median = median(times);
    found.commit_ms_p99 = percentile(times, 0.99);
    return found;
}

std::unique_ptr<Subject> PostgresTarget::new_subject() {
    return std::make_unique<PostgresSubject>(options_);
}

}  // namespace sekali::bench
