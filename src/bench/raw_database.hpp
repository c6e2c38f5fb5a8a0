#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/log_keeper.hpp"
#include "backends/sqlite/options.hpp"
#include "bench/target.hpp"

namespace sekali::bench {

/// The raw limit of SQLite, with sekali's handling of the log.
class RawDatabase final : public RawStore {
 public:
    RawDatabase(const std::string& path, sqlite::Synchronous synchronous, const Level& level);

    void enqueue(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void claim(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void begin_runs(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void settle(std::span<const JobDraft> jobs, std::int64_t first_seq) override;

    [[nodiscard]] sqlite::Connection& connection() { return connection_; }

 private:
    enum class Sql : std::uint8_t {
        kBegin,
        kCommit,
        kInsertJob,
        kClaim,
        kClaimAndBegin,
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

    using Write = void (RawDatabase::*)(const JobDraft& job, std::int64_t seq);
    /// One transaction, and a checkpoint of the log where sekali would have one.
    void write_all(std::span<const JobDraft> jobs, std::int64_t first_seq, Write write);
    void enqueue_one(const JobDraft& job, std::int64_t seq);
    void claim_one(const JobDraft& job, std::int64_t seq);
    void begin_one(const JobDraft& job, std::int64_t seq);
    void insert_record(const JobDraft& job);
    void settle_one(const JobDraft& job, std::int64_t seq);

    const Level& level_;
    sqlite::Connection connection_;
    std::array<sqlite::StatementPtr, static_cast<std::size_t>(Sql::kCount_)> statements_;
    sqlite::LogKeeper log_;
    std::int64_t now_ = 0;
};

}  // namespace sekali::bench
