#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "backends/sqlite/options.hpp"
#include "bench/result.hpp"

namespace sekali::bench {

struct BenchOptions {
    /// Of a PostgreSQL database in which schemas of the bench are made and dropped; empty: SQLite.
    std::string postgres;
    /// SQLite: where a folder for the databases is made, and removed at the end.
    std::filesystem::path parent = ".";
    sqlite::Synchronous synchronous = sqlite::Synchronous::kFull;
    std::size_t jobs = 20'000;  ///< In each round.
    bool scale = false;         ///< SQLite: also beside 10^3 to 10^6 waiting jobs and records.
    /// Told what is measured next.
    std::function<void(std::string_view)> progress;
};

/// Measures a backend beside its raw limit. To be called from a process with one thread and no open
/// store, whose program is `sekali`. Takes about a minute and a half, with `scale` some minutes
/// more. SIGINT and SIGTERM end it between two rounds. Throws `Failure`.
[[nodiscard]] BenchResult run_bench(const BenchOptions& options);

}  // namespace sekali::bench
