#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "backends/postgres/sql.hpp"
#include "bench/postgres_target.hpp"
#include "bench/raw_rounds.hpp"
#include "bench/sekali_rounds.hpp"
#include "postgres/test_server.hpp"

namespace sekali::bench {
namespace {

using nlohmann::json;
using postgres::Sql;

constexpr std::size_t kJobs = 3;
constexpr double kNoLimit = 1e9;

/// Ids, times and the like differ from run to run: of these the kind of value is compared.
const std::set<std::string, std::less<>> kVarying{
    "enqueued_at", "expires_at",  "finished_at", "fingerprint", "id",
    "job_id",      "lease_until", "owner",       "number",      "probe_after",
    "run_at",      "started_at",  "token",       "worker"};

std::string shape_of(const json& value) {
    if (value.is_number()) return value == 0 ? "zero" : "a number";
    if (value.is_string()) return value.get<std::string>().empty() ? "empty" : "text";
    return value.dump();
}

/// All rows of a table; what varies by its shape.
std::multiset<std::string> rows_of(const PostgresSubject& subject, const std::string& table) {
    const auto options = postgres::parse_url(subject.url());
    const auto connection = postgres::Connection::open(options);
    const Sql all{"",
                  "SELECT to_jsonb(t)::text FROM " +
                      postgres::in_schema("@" + table, options.schema) + " AS t",
                  "read a table"};
    const auto found = connection->run_one({&all, {}});
    std::multiset<std::string> rows;
    for (int i = 0; i < PQntuples(found.get()); ++i) {
        json row = json::parse(postgres::Cursor(found.get(), i).take<std::string>());
        for (auto& [name, value] : row.items()) {
            // Where no key was given it is the id.
            const bool is_id =
                name == "key" && value.is_string() && value.get<std::string>().size() == 36;
            if (is_id || kVarying.contains(name)) value = shape_of(value);
        }
        rows.insert(row.dump());
    }
    return rows;
}

class PostgresRawRows : public testing::TestWithParam<Level> {
 protected:
    void expect_same_rows() {
        for (const char* table : {"jobs", "finished", "records", "steps", "locks", "attempts",
                                  "events", "bench_effects"}) {
            EXPECT_EQ(rows_of(raw_, table), rows_of(sekali_, table)) << table;
        }
    }

    PostgresSubject raw_{postgres::parse_url(postgres::test_server_url())};
    PostgresSubject sekali_{postgres::parse_url(postgres::test_server_url())};
};

// The raw limit is a limit only while bare statements write exactly what sekali writes.
TEST_P(PostgresRawRows, AreThoseThatSekaliWrites) {
    const Level& level = GetParam();
    const auto jobs = make_jobs(level, 0, kJobs);
    const auto raw = raw_.raw(level);

    EXPECT_EQ(enqueue_raw(*raw, jobs, 1, 2, kNoLimit).jobs, kJobs);
    static_cast<void>(enqueue_sekali(sekali_.url(), jobs));
    expect_same_rows();

    EXPECT_EQ(drain_raw(*raw, jobs, 1, 2, kNoLimit).jobs, kJobs);
    static_cast<void>(drain_sekali(sekali_, level, kJobs, 2));
    expect_same_rows();
}

INSTANTIATE_TEST_SUITE_P(EachLevel, PostgresRawRows, testing::ValuesIn(kLevels),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(PostgresTarget, LooksAtTheServerAndLeavesNothing) {
    const std::string url = postgres::test_server_url();
    PostgresTarget target(url);
    const Environment found = target.look_around();
    EXPECT_EQ(found.backend, "postgres");
    EXPECT_NE(std::isdigit(static_cast<unsigned char>(found.version.at(0))), 0);
    EXPECT_EQ(found.fsync, "off");
    EXPECT_GT(found.commit_ms_median, 0);
    const Sql schemas{"", "SELECT 1 FROM pg_namespace WHERE nspname = $1", "look for a schema"};
    std::string schema;
    {
        const auto subject = target.new_subject();
        schema = postgres::parse_url(subject->url()).schema;
    }
    const auto connection = postgres::Connection::open(postgres::parse_url(url));
    EXPECT_EQ(PQntuples(connection->run_one({&schemas, postgres::parameters(schema)}).get()), 0);
}

}  // namespace
}  // namespace sekali::bench
