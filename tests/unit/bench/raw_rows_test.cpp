#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "backends/sqlite/connection.hpp"
#include "bench/raw_rounds.hpp"
#include "bench/scratch.hpp"
#include "bench/sekali_rounds.hpp"
#include "bench/sqlite_target.hpp"

namespace sekali::bench {
namespace {

using sqlite::Synchronous;

constexpr std::size_t kJobs = 3;
constexpr double kNoLimit = 1e9;

/// Ids, times and the like differ from run to run: of these the type and the length are compared.
const std::set<std::string, std::less<>> kVarying{
    "enqueued_at", "expires_at",  "finished_at", "fingerprint", "id",    "job_id", "lease_until",
    "owner",       "probe_after", "run_at",      "started_at",  "token", "worker"};

/// All rows of a table in the order of their columns' text.
std::multiset<std::string> rows_of(sqlite::Connection& connection, const std::string& table) {
    const auto statement = connection.prepare("SELECT * FROM " + table);
    std::multiset<std::string> rows;
    while (sqlite3_step(statement.get()) == SQLITE_ROW) {
        std::string row;
        for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
            const std::string name = sqlite3_column_name(statement.get(), i);
            const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement.get(), i));
            const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), i));
            // Where no key was given it is the id.
            const bool varies = kVarying.contains(name) || (name == "key" && size == 36);
            row += name + "=" + std::to_string(sqlite3_column_type(statement.get(), i)) + ":";
            row += varies ? std::to_string(size) : std::string(bytes == nullptr ? "" : bytes, size);
            row += "\n";
        }
        rows.insert(row);
    }
    return rows;
}

class RawRows : public testing::TestWithParam<Level> {
 protected:
    void expect_same_rows() {
        sqlite::Connection raw(raw_.path(), sqlite::Connection::Mode::kReadOnly, {});
        sqlite::Connection sekali(sekali_.path(), sqlite::Connection::Mode::kReadOnly, {});
        for (const char* table :
             {"sekali_jobs", "sekali_finished", "sekali_records", "sekali_steps", "sekali_locks",
              "sekali_attempts", "sekali_events", "bench_effects"}) {
            EXPECT_EQ(rows_of(raw, table), rows_of(sekali, table)) << table;
        }
    }

    Scratch scratch_{testing::TempDir()};
    SqliteSubject raw_{scratch_, Synchronous::kNormal};
    SqliteSubject sekali_{scratch_, Synchronous::kNormal};
};

// The raw limit is a limit only while bare statements write exactly what sekali writes.
TEST_P(RawRows, AreThoseThatSekaliWrites) {
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

INSTANTIATE_TEST_SUITE_P(EachLevel, RawRows, testing::ValuesIn(kLevels),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace sekali::bench
