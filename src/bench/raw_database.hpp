#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/log_keeper.hpp"
#include "backends/sqlite/options.hpp"
#include "bench/jobs.hpp"
#include "bench/levels.hpp"

namespace sekali::bench {

/// The table that the handlers of L4 write into.
inline constexpr const char* kEffectsTable =
    "CREATE TABLE IF NOT EXISTS bench_effects("
    "  number INTEGER PRIMARY KEY, job_id TEXT NOT NULL, cents INTEGER NOT NULL) STRICT";
inline constexpr std::int64_t kEffectCents = 4200;

/// Makes an empty database with sekali's schema and the table of effects.
void create_database(const std::string& path, sqlite::Synchronous synchronous);

/// The rows that sekali writes for one job, written by bare prepared statements and nothing else:
/// no look-ups, no checks. On one connection, for one thread, with sekali's handling of the log.
class RawDatabase {
 public:
    RawDatabase(const std::string& path, sqlite::Synchronous synchronous, const Level& level);

    void begin();
    /// Commits, and checkpoints the log where sekali would.
    void commit();

    void enqueue(const JobDraft& job, std::int64_t seq);
    void claim(std::int64_t seq);
    void begin_run(const JobDraft& job, std::int64_t seq);
    void settle(const JobDraft& job, std::int64_t seq);

    [[nodiscard]] sqlite::Connection& connection() { return connection_; }

 private:
    enum class Sql : std::uint8_t {
        kBegin,
        kCommit,
        kInsertJob,
        kClaim,
        kTakeLock,
        kInsertRecord,
        kBeginRun,
        kFreeLock,
        kInsertEffect,
        kInsertAttempt,
        kSucceed,
        kFinish,
        kDelete,
        kCount_,
    };
    class Use;

    const Level& level_;
    sqlite::Connection connection_;
    std::array<sqlite::StatementPtr, static_cast<std::size_t>(Sql::kCount_)> statements_;
    sqlite::LogKeeper log_;
    std::int64_t now_ = 0;
};

}  // namespace sekali::bench
