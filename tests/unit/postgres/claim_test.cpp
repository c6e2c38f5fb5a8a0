#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/postgres/postgres_store.hpp"
#include "backends/postgres/sql.hpp"
#include "postgres/test_server.hpp"

// A claim locks as many rows as it gives out, whatever the planner believes about the table: a row
// too many would keep other workers from it. Counted from a second session.
namespace sekali::postgres {
namespace {

constexpr std::int64_t kLimit = 10;
constexpr std::int64_t kPlaces = 47;

struct Belief {
    const char* name;
    /// Runs before the jobs that are claimed come in.
    const char* before;
};

class ClaimedRows : public testing::TestWithParam<Belief> {
 protected:
    [[nodiscard]] std::string in_test_schema(const std::string& sql) const {
        return in_schema(sql, schema_.name());
    }
    void script(const std::string& sql) const { schema_.execute(in_test_schema(sql)); }

    /// Claims in a transaction that stays open; returns how many rows it was given.
    static int claim(Connection& session, const Statements& sql, const std::string& queue,
                     const std::vector<std::string>& kinds) {
        session.run_one({&sql.begin, {}});
        Parameters arguments = parameters("default");
        arguments.add_list(std::vector<std::string>{queue}).add_list(kinds);
        arguments.add(kLimit).add(kPlaces);
        return PQntuples(session.run_one({&sql.claimable.locking, std::move(arguments)}).get());
    }

    [[nodiscard]] std::int64_t locked_rows(Connection& session) const {
        const Sql count{"",
                        in_test_schema("WITH free AS MATERIALIZED (SELECT seq FROM @jobs"
                                       " FOR NO KEY UPDATE SKIP LOCKED)"
                                       " SELECT (SELECT count(*) FROM @jobs) - count(*) FROM free"),
                        "count locked rows"};
        return Cursor(session.run_one({&count, {}}).get(), 0).take<std::int64_t>();
    }

    const TestSchema schema_;
    const std::unique_ptr<PostgresStore> store_ = PostgresStore::open(schema_.options()).value();
};

TEST_P(ClaimedRows, AreNoMoreThanTheLimit) {
    script(GetParam().before);
    script(
        "SELECT count(@enqueue('pay', 'null', priority => n % 10))"
        " FROM generate_series(1, 2000) AS n");
    const Statements sql(schema_.name());
    const auto counter = Connection::open(schema_.options());
    for (const bool plans_freely : {false, true}) {
        const auto first = Connection::open(schema_.options());
        const auto second = Connection::open(schema_.options());
        for (Connection* session : {first.get(), second.get()}) {
            if (!plans_freely) continue;
            session->run_script(
                "SET plan_cache_mode = auto; SET enable_seqscan = on;"
                "SET enable_bitmapscan = on; SET enable_hashjoin = on;"
                "SET enable_mergejoin = on",
                "plan freely");
        }
        EXPECT_EQ(claim(*first, sql, "default", {"pay", "mail"}), kLimit);
        EXPECT_EQ(locked_rows(*counter), kLimit) << "plans freely: " << plans_freely;
        EXPECT_EQ(claim(*second, sql, "default", {"pay", "mail"}), kLimit);
        EXPECT_EQ(locked_rows(*counter), 2 * kLimit) << "plans freely: " << plans_freely;
        first->roll_back();
        second->roll_back();
    }
}

INSTANTIATE_TEST_SUITE_P(
    WhateverIsBelieved, ClaimedRows,
    testing::Values(Belief{"nothing", "SELECT 1"}, Belief{"an_empty_table", "ANALYZE @jobs"},
                    Belief{"another_kind",
                           "SELECT count(@enqueue('mail', 'null', queue => 'other'))"
                           " FROM generate_series(1, 5000); ANALYZE @jobs"},
                    Belief{"all_running",
                           "SELECT count(@enqueue('mail', 'null')) FROM generate_series(1, 5000);"
                           "UPDATE @jobs SET state = 3, owner = 'w'; ANALYZE @jobs"},
                    Belief{"one_row",
                           "SELECT @enqueue('pay', 'null', queue => 'other'); ANALYZE @jobs"}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace sekali::postgres
