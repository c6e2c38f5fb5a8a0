#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/levels.hpp"

// What a bench finds, as plain values.
namespace sekali::bench {

/// A figure that this backend does not have is no number.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

struct Environment {
    std::string backend;                 ///< `sqlite` or `postgres`.
    std::string version;                 ///< Of the library or the server.
    std::string file_system;             ///< Empty where it is another machine's.
    double fsync_ms_median = kNoFigure;  ///< Of 4 KiB written behind the end of a file.
    double fsync_ms_p99 = kNoFigure;
    double commit_ms_median = kNoFigure;  ///< Of one row, with the way to the server and back.
    double commit_ms_p99 = kNoFigure;
    std::string fsync;        ///< The server's setting.
    std::string synchronous;  ///< `full` or `normal`; the server's `synchronous_commit`.
    unsigned cores = 0;
    double load_average = 0;  ///< Of the last minute before the run.
    std::string compiler;
    std::string build_type;
    std::size_t jobs = 0;  ///< In each round.
};

struct BatchRate {
    std::size_t batch = 0;  ///< Jobs in one transaction.
    double per_s = 0;
};

/// The same rows written by sekali and by bare statements, in jobs per second.
struct Comparison {
    double sekali_per_s = 0;
    std::vector<BatchRate> raw_by_batch;

    /// The limit: the fastest batch of bare statements.
    [[nodiscard]] BatchRate raw() const;
    [[nodiscard]] double ratio() const;
};

struct LevelFigures {
    Comparison rate;
    double sekali_cpu_us = 0;  ///< Processor time of all threads, for one job.
    double raw_cpu_us = 0;     ///< Of the fastest batch.
    std::size_t concurrency = 0;
    std::size_t rounds = 0;

    [[nodiscard]] double us_per_job() const;
};

struct WakeUp {
    double p50_ms = 0;  ///< From the call of `enqueue` to the start of the handler.
    double p99_ms = 0;
    double enqueue_p50_ms = 0;  ///< Of that call alone, which ends with the commit.
};

struct Idle {
    double rss_mib = 0;
    double cpu_percent = 0;  ///< Of one core.
};

struct EnqueueProcess {
    double median_ms = 0;
    double p90_ms = 0;
};

/// Cost of one job, from its enqueue to its end, beside so many that wait and so many records.
struct ScalePoint {
    bool random_keys = false;
    std::size_t rows = 0;
    double sekali_us = 0;
    double raw_us = 0;
};

struct ScaleRatio {
    bool random_keys = false;
    double sekali = 0;
    double raw = 0;
};

struct BenchResult {
    Environment environment;
    Comparison enqueue;
    std::array<LevelFigures, kLevels.size()> levels;
    WakeUp wake_up;
    Idle idle;
    EnqueueProcess enqueue_process;
    std::vector<ScalePoint> scale;

    /// Cost beside the most rows divided by that beside the fewest, for each order of keys.
    [[nodiscard]] std::vector<ScaleRatio> scale_ratios() const;
};

}  // namespace sekali::bench
