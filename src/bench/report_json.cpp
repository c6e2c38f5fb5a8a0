#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.hpp"
#include "bench/report.hpp"

namespace sekali::bench {
namespace {

using base::JsonWriter;

void number(JsonWriter& json, std::string_view name, double value, int digits) {
    json.field(name);
    if (std::isfinite(value)) {
        json.raw(fmt::format("{:.{}f}", value, digits));
    } else {
        json.value(nullptr);
    }
}

void text_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
    json.field(name);
    text.empty() ? json.value(nullptr) : json.value(text);
}

void write_environment(JsonWriter& json, const Environment& environment) {
    json.field("environment").begin_object();
    json.field("backend", environment.backend);
    text_or_null(json, "file_system", environment.file_system);
    number(json, "fsync_ms_median", environment.fsync_ms_median, 3);
    number(json, "fsync_ms_p99", environment.fsync_ms_p99, 3);
    number(json, "commit_ms_median", environment.commit_ms_median, 3);
    number(json, "commit_ms_p99", environment.commit_ms_p99, 3);
    for (const std::string_view backend : {"sqlite", "postgres"}) {
        text_or_null(json, backend, environment.backend == backend ? environment.version : "");
    }
    text_or_null(json, "fsync", environment.fsync);
    json.field("synchronous", environment.synchronous);
    json.field("cores", environment.cores);
    number(json, "load_average", environment.load_average, 2);
    json.field("compiler", environment.compiler).field("build_type", environment.build_type);
    json.field("jobs", environment.jobs).end_object();
}

void write_comparison(JsonWriter& json, const Comparison& rate) {
    number(json, "sekali_per_s", rate.sekali_per_s, 0);
    number(json, "raw_per_s", rate.raw().per_s, 0);
    number(json, "ratio", rate.ratio(), 3);
    json.field("raw_by_batch").begin_object();
    for (const BatchRate& raw : rate.raw_by_batch)
        number(json, std::to_string(raw.batch), raw.per_s, 0);
    json.end_object();
}

void write_levels(JsonWriter& json, const BenchResult& result) {
    json.field("drain").begin_object();
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
        const LevelFigures& level = result.levels[i];
        json.field(kLevels[i].name).begin_object();
        json.field("adds", kLevels[i].adds);
        write_comparison(json, level.rate);
        json.field("concurrency", level.concurrency);
        number(json, "us_per_job", level.us_per_job(), 1);
        number(json, "added_us", level.us_per_job() - result.levels[kLevels[i].above].us_per_job(),
               1);
        number(json, "sekali_cpu_us", level.sekali_cpu_us, 1);
        number(json, "raw_cpu_us", level.raw_cpu_us, 1);
        json.field("rounds", level.rounds).end_object();
    }
    json.end_object();
}

void write_processes(JsonWriter& json, const BenchResult& result) {
    json.field("wake_up_ms").begin_object();
    number(json, "p50", result.wake_up.p50_ms, 3);
    number(json, "p99", result.wake_up.p99_ms, 3);
    number(json, "enqueue_p50", result.wake_up.enqueue_p50_ms, 3);
    json.end_object();
    json.field("idle").begin_object();
    number(json, "rss_mib", result.idle.rss_mib, 1);
    number(json, "cpu_percent", result.idle.cpu_percent, 3);
    json.end_object();
    json.field("enqueue_process_ms").begin_object();
    number(json, "median", result.enqueue_process.median_ms, 2);
    number(json, "p90", result.enqueue_process.p90_ms, 2);
    json.end_object();
}

void write_scale(JsonWriter& json, const BenchResult& result) {
    const auto name = [](bool random_keys) { return random_keys ? "random" : "sequential"; };
    json.field("scale").begin_array();
    for (const ScalePoint& point : result.scale) {
        json.begin_object().field("keys", name(point.random_keys)).field("rows", point.rows);
        number(json, "sekali_us", point.sekali_us, 1);
        number(json, "raw_us", point.raw_us, 1);
        json.end_object();
    }
    json.end_array();
    json.field("scale_ratio").begin_object();
    for (const ScaleRatio& ratio : result.scale_ratios()) {
        json.field(name(ratio.random_keys)).begin_object();
        number(json, "sekali", ratio.sekali, 3);
        number(json, "raw", ratio.raw, 3);
        json.end_object();
    }
    json.end_object();
}

}  // namespace

std::string to_json(const BenchResult& result) {
    std::string document;
    JsonWriter json(document);
    json.begin_object();
    write_environment(json, result.environment);
    json.field("enqueue").begin_object();
    write_comparison(json, result.enqueue);
    json.end_object();
    write_levels(json, result);
    write_processes(json, result);
    write_scale(json, result);
    json.end_object();
    return document;
}

}  // namespace sekali::bench
