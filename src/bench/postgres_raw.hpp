#pragma once

#include <memory>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/options.hpp"
#include "bench/target.hpp"

namespace sekali::bench {

/// The raw limit of PostgreSQL: one statement a table, with arrays for all jobs of a batch, all of
/// a transaction in one round trip. What the statements can know by themselves is not sent.
class RawPostgres final : public RawStore {
 public:
    RawPostgres(const postgres::PostgresOptions& options, const Level& level);
    ~RawPostgres() override;

    void enqueue(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void claim(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void begin_runs(std::span<const JobDraft> jobs, std::int64_t first_seq) override;
    void settle(std::span<const JobDraft> jobs, std::int64_t first_seq) override;

 private:
    struct Texts;

    const Level& level_;
    std::unique_ptr<const Texts> sql_;
    std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace sekali::bench
