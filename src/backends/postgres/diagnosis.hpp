#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/postgres/options.hpp"
#include "engine/run_history.hpp"
#include "sekali/result.hpp"

namespace sekali::postgres {

/// What a server, its settings and the history say about whether it is safe to work with.
struct Diagnosis {
    std::string server;  ///< Version.
    std::int64_t schema = 0;
    std::string fsync;
    std::string synchronous_commit;
    std::string full_page_writes;
    std::string isolation;  ///< Default of transactions; sekali's own do not depend on it.
    bool autovacuum = true;
    bool read_only = false;  ///< A standby, or new transactions are read-only.
    engine::Millis oldest_snapshot{};
    std::string oldest_snapshot_of;  ///< Process id and application; empty: nobody's.
    std::uint64_t live_rows = 0;     ///< Of the table of live jobs.
    std::uint64_t dead_rows = 0;
    std::int64_t connections = 0;
    std::int64_t connection_limit = 0;
    std::string collation_mismatch;  ///< Recorded and present version; empty: they agree.
    std::optional<engine::Millis> replication_lag;  ///< Of the slowest standby; none: no standby.
    engine::Millis clock_ahead{};                   ///< Of the server's clock, to this host's.
    engine::RunHistory history;                     ///< Of the namespace.
};

/// Looks at a store that exists. Writes nothing. Blocks.
[[nodiscard]] Result<Diagnosis> diagnose(const PostgresOptions& options, std::string_view ns);

}  // namespace sekali::postgres
