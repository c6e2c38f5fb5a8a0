#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/schema.hpp"
#include "backends/sqlite/sql.hpp"

// No statement that runs while jobs flow may read a whole table, whatever the statistics say.
namespace sekali::sqlite {
namespace {

/// Those that look at all of something on purpose: the counts of queues are asked for by people,
/// liveness rows are as many as processes, and whether anybody waits is told by the first entry.
const std::set<Sql> kMayScan{Sql::kLiveCounts, Sql::kOldLiveness, Sql::kSomebodyWaits};

std::vector<std::string> plan_of(Connection& connection, std::string_view statement_text) {
    const std::string sql = "EXPLAIN QUERY PLAN " + std::string(statement_text);
    const StatementPtr statement = connection.prepare(sql);
    std::vector<std::string> plan;
    while (sqlite3_step(statement.get()) == SQLITE_ROW) {
        const void* text = sqlite3_column_blob(statement.get(), 3);
        plan.emplace_back(static_cast<const char*>(text),
                          static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), 3)));
    }
    return plan;
}

std::vector<std::string> plan_of(Connection& connection, Sql which) {
    return plan_of(connection, text_of(which));
}

bool is_plain_statement(Sql which) {
    return which <= Sql::kDataVersion;
}

void expect_searches(Connection& connection) {
    for (const UpdateText& text : {job_update(), record_update()}) {
        ColumnUpdates updates(connection, text);
        for (const std::string& line : plan_of(connection, sqlite3_sql(updates.use(updates.all()))))
            EXPECT_FALSE(line.starts_with("SCAN")) << text.table << "\n  " << line;
    }
    for (std::size_t i = 0; i < kSqlCount; ++i) {
        const auto which = static_cast<Sql>(i);
        if (is_plain_statement(which) || kMayScan.contains(which)) continue;
        for (const std::string& line : plan_of(connection, which)) {
            const bool scans = line.starts_with("SCAN") && line != "SCAN CONSTANT ROW";
            EXPECT_FALSE(scans) << text_of(which) << "\n  " << line;
        }
    }
}

class SqlitePlansTest : public testing::Test {
 protected:
    SqlitePlansTest() {
        sqlite3* db = nullptr;
        sqlite3_open(":memory:", &db);
        owned_.reset(db);
        connection_.emplace(db);
        for (const Migration& step : migrations())
            connection_->execute(std::string(step.sql).c_str());
    }

    struct Closer {
        void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    };
    std::unique_ptr<sqlite3, Closer> owned_;
    std::optional<Connection> connection_;
};

TEST_F(SqlitePlansTest, SearchWithoutStatistics) {
    expect_searches(*connection_);
}

TEST_F(SqlitePlansTest, SearchWithStatisticsOfAnEmptyDatabase) {
    connection_->execute("ANALYZE");
    expect_searches(*connection_);
}

TEST_F(SqlitePlansTest, SearchWithStatisticsThatMislead) {
    connection_->execute("ANALYZE sqlite_master");
    // Every index claims that a search finds all rows, which makes a scan look cheaper.
    connection_->execute(
        "INSERT INTO sqlite_stat1(tbl, idx, stat) SELECT tbl_name, name, "
        "'1000000 1000000 1000000 1000000 1000000 1000000 1000000' FROM sqlite_master WHERE type = "
        "'index'");
    connection_->execute("ANALYZE sqlite_master");
    expect_searches(*connection_);
}

TEST_F(SqlitePlansTest, LinesAndClaimsAreReadInIndexOrder) {
    for (const Sql which : {Sql::kReadyPlaces, Sql::kFirstInLine, Sql::kNextRunAt, Sql::kNextLine,
                            Sql::kPrunableRecords, Sql::kStaleRecords, Sql::kPromoteDue}) {
        for (const std::string& line : plan_of(*connection_, which)) {
            EXPECT_EQ(line.find("TEMP B-TREE"), std::string::npos)
                << text_of(which) << "\n  " << line;
        }
    }
}

}  // namespace
}  // namespace sekali::sqlite
