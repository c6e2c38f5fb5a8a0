#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "backends/postgres/postgres_store.hpp"
#include "backends/postgres/sql.hpp"
#include "postgres/test_server.hpp"

// Statements are planned once, often on tables that are still empty and have no statistics. What is
// chosen then must be right for millions of rows.
namespace sekali::postgres {
namespace {

int parameters_of(const std::string& text) {
    int highest = 0;
    for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 1))
        highest = std::max(highest, std::atoi(text.c_str() + at + 1));
    return highest;
}

std::string plan_of(Connection& connection, const Sql& sql) {
    connection.run_script("PREPARE asked AS " + sql.text, "prepare");
    std::string nulls;
    for (int i = 0; i < parameters_of(sql.text); ++i)
        nulls += i == 0 ? "null" : ", null";
    const Sql explain{"", "EXPLAIN EXECUTE asked(" + nulls + ")", "explain", true};
    const ResultPtr rows = connection.run_one({&explain, {}});
    std::string plan;
    for (int row = 0; row < PQntuples(rows.get()); ++row)
        plan += std::string(PQgetvalue(rows.get(), row, 0)) + "\n";
    connection.run_script("DEALLOCATE asked", "deallocate");
    return plan;
}

/// All forms of those that have some.
std::vector<const Sql*> changing(const Statements& sql) {
    std::vector<const Sql*> forms;
    for (const Variants* variants : {&sql.update_jobs, &sql.finish_jobs, &sql.update_records})
        for (const auto& variant : variants->all())
            forms.push_back(&variant.sql);
    return forms;
}

TEST(PostgresPlans, NoStatementOfTheHotPathReadsOrSortsATable) {
    const TestSchema schema;
    const auto store = PostgresStore::open(schema.options()).value();
    const auto connection = Connection::open(schema.options());
    const Statements sql(schema.name());
    std::vector<const Sql*> statements = changing(sql);
    statements.insert(statements.end(), {&sql.jobs.locking,
                                         &sql.finished.locking,
                                         &sql.records.locking,
                                         &sql.locks.locking,
                                         &sql.workers.locking,
                                         &sql.steps,
                                         &sql.slot_holders.locking,
                                         &sql.first_in_line.locking,
                                         &sql.lines_are_empty,
                                         &sql.live_of_key,
                                         &sql.revive_jobs,
                                         &sql.delete_records,
                                         &sql.update_locks,
                                         &sql.claimable.locking,
                                         &sql.promote_due,
                                         &sql.next_run_at,
                                         &sql.lapsed.locking,
                                         &sql.count_begun,
                                         &sql.has_jobs_of,
                                         &sql.payload,
                                         &sql.prunable_records.locking});
    for (const Sql* hot : statements) {
        const std::string plan = plan_of(*connection, *hot);
        EXPECT_EQ(plan.find("Seq Scan"), std::string::npos) << hot->doing << "\n" << plan;
        EXPECT_EQ(plan.find("Bitmap"), std::string::npos) << hot->doing << "\n" << plan;
        EXPECT_EQ(plan.find("Hash Join"), std::string::npos) << hot->doing << "\n" << plan;
    }
    // What is ready is found in its order: one bounded search for each queue and kind.
    EXPECT_NE(plan_of(*connection, sql.claimable.locking).find("Scan using jobs_ready on jobs"),
              std::string::npos);
}

}  // namespace
}  // namespace sekali::postgres
