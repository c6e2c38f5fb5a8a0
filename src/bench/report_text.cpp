#include <fmt/format.h>

#include "bench/report.hpp"

namespace sekali::bench {
namespace {

void add_environment(std::string& text, const Environment& environment) {
    if (environment.backend == "sqlite") {
        text += fmt::format(
            "sqlite {} on {}, synchronous {}; 4 KiB and fdatasync: median {:.2f} ms, p99 {:.2f} "
            "ms\n",
            environment.version, environment.file_system, environment.synchronous,
            environment.fsync_ms_median, environment.fsync_ms_p99);
    } else {
        text += fmt::format(
            "{} {}, fsync {}, synchronous_commit {}; commit of a row: median {:.2f} ms, p99 "
            "{:.2f} ms\n",
            environment.backend, environment.version, environment.fsync, environment.synchronous,
            environment.commit_ms_median, environment.commit_ms_p99);
    }
    text += fmt::format("{} cores, load {:.1f}; {}, {}; {} jobs a round\n\n", environment.cores,
                        environment.load_average, environment.compiler, environment.build_type,
                        environment.jobs);
}

void add_rate(std::string& text, std::string_view name, const Comparison& rate) {
    text += fmt::format("{:<13} {:>8.0f} {:>8.0f}  {:>5.2f}", name, rate.sekali_per_s,
                        rate.raw().per_s, rate.ratio());
}

void add_rates(std::string& text, const BenchResult& result) {
    text += "JOBS/S          SEKALI      RAW  RATIO  US/JOB   ADDED  CPU US (RAW)  THREADS\n";
    add_rate(text, "bulk enqueue", result.enqueue);
    text += fmt::format("  {:>6.1f}\n",
                        result.enqueue.sekali_per_s > 0 ? 1e6 / result.enqueue.sekali_per_s : 0);
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
        const LevelFigures& level = result.levels[i];
        add_rate(text, fmt::format("drain {}", kLevels[i].name), level.rate);
        const double added = level.us_per_job() - result.levels[kLevels[i].above].us_per_job();
        text += fmt::format("  {:>6.1f}  {:>6.1f}  {:>12}  {:>7}\n", level.us_per_job(), added,
                            fmt::format("{:.0f} ({:.0f})", level.sekali_cpu_us, level.raw_cpu_us),
                            level.concurrency);
    }
    text += '\n';
    for (const Level& level : kLevels) {
        const Level& above = kLevels[level.above];
        const bool is_first = &above == &level;
        text +=
            fmt::format("  {}: {}{}\n", level.name, level.adds,
                        is_first ? std::string() : fmt::format(" (counted from {})", above.name));
    }
}

void add_batches(std::string& text, std::string_view name, const Comparison& rate) {
    text += fmt::format("{:<13}", name);
    for (const BatchRate& raw : rate.raw_by_batch)
        text += fmt::format(" {:>8.0f} by {}", raw.per_s, raw.batch);
    text += '\n';
}

void add_raw(std::string& text, const BenchResult& result) {
    text += "\nRAW JOBS/S BY BATCH\n";
    add_batches(text, "bulk enqueue", result.enqueue);
    for (std::size_t i = 0; i < kLevels.size(); ++i)
        add_batches(text, fmt::format("drain {}", kLevels[i].name), result.levels[i].rate);
}

void add_processes(std::string& text, const BenchResult& result) {
    text += fmt::format(
        "\nwake-up of a worker in another process: p50 {:.2f} ms, p99 {:.2f} ms from the call of "
        "enqueue, which takes {:.2f} ms itself\n",
        result.wake_up.p50_ms, result.wake_up.p99_ms, result.wake_up.enqueue_p50_ms);
    text += fmt::format("idle worker: {:.1f} MiB, {:.2f} % of a core\n", result.idle.rss_mib,
                        result.idle.cpu_percent);
    text += fmt::format("sekali enqueue as a process: median {:.1f} ms, p90 {:.1f} ms\n",
                        result.enqueue_process.median_ms, result.enqueue_process.p90_ms);
}

void add_scale(std::string& text, const BenchResult& result) {
    if (result.scale.empty()) return;
    text += "\nKEYS        JOBS AND RECORDS  SEKALI US/JOB  RAW US/JOB\n";
    for (const ScalePoint& point : result.scale) {
        text += fmt::format("{:<10}  {:>16}  {:>13.1f}  {:>10.1f}\n",
                            point.random_keys ? "random" : "sequential", point.rows,
                            point.sekali_us, point.raw_us);
    }
    for (const ScaleRatio& ratio : result.scale_ratios()) {
        text += fmt::format("{} keys, most beside fewest: sekali {:.2f} times, raw {:.2f} times\n",
                            ratio.random_keys ? "random" : "sequential", ratio.sekali, ratio.raw);
    }
}

}  // namespace

std::string to_text(const BenchResult& result) {
    std::string text;
    add_environment(text, result.environment);
    add_rates(text, result);
    add_raw(text, result);
    add_processes(text, result);
    add_scale(text, result);
    return text;
}

}  // namespace sekali::bench
