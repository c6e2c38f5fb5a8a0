#include "bench/report.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace sekali::bench {
namespace {

BenchResult example() {
    BenchResult result;
    result.environment.backend = "sqlite";
    result.environment.version = "3.40.1";
    result.environment.file_system = "ext4";
    result.environment.synchronous = "full";
    result.enqueue = {40'000, {{1, 900}, {10, 8'000}, {100, 50'000}, {1000, 48'000}}};
    for (LevelFigures& level : result.levels) {
        level.rate = {10'000, {{100, 12'000}, {1000, 16'000}}};
        level.concurrency = 64;
    }
    result.levels[3].rate.sekali_per_s = 8'000;
    result.wake_up = {4.5, 9.25, 1.5};
    result.idle = {9.5, 0.125};
    result.enqueue_process = {12.5, 14.75};
    return result;
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find(to, begin) - begin + to.size());
}

TEST(Comparison, TheLimitIsTheFastestBatch) {
    const BenchResult result = example();
    EXPECT_EQ(result.enqueue.raw().batch, 100U);
    EXPECT_DOUBLE_EQ(result.enqueue.ratio(), 0.8);
    EXPECT_DOUBLE_EQ(result.levels[3].rate.ratio(), 0.5);
    EXPECT_DOUBLE_EQ(result.levels[3].us_per_job(), 125);
}

TEST(Comparison, OfNothingIsNothing) {
    EXPECT_EQ(Comparison{}.raw().batch, 0U);
    EXPECT_DOUBLE_EQ(Comparison{}.ratio(), 0);
    EXPECT_DOUBLE_EQ(LevelFigures{}.us_per_job(), 0);
}

TEST(ReportJson, HasTheStableNames) {
    const std::string json = to_json(example());
    EXPECT_EQ(between(json, R"("enqueue":)", "}}"),
              R"("enqueue":{"sekali_per_s":40000,"raw_per_s":50000,"ratio":0.800,)"
              R"("raw_by_batch":{"1":900,"10":8000,"100":50000,"1000":48000}})");
    EXPECT_EQ(between(json, R"("L3":)", R"("concurrency":64)"),
              R"("L3":{"adds":"queue + record","sekali_per_s":8000,"raw_per_s":16000,)"
              R"("ratio":0.500,"raw_by_batch":{"100":12000,"1000":16000},"concurrency":64)");
    EXPECT_EQ(between(json, R"("wake_up_ms":)", "}"),
              R"("wake_up_ms":{"p50":4.500,"p99":9.250,"enqueue_p50":1.500})");
    EXPECT_EQ(between(json, R"("idle":)", "}"), R"("idle":{"rss_mib":9.5,"cpu_percent":0.125})");
    EXPECT_EQ(between(json, R"("enqueue_process_ms":)", "}"),
              R"("enqueue_process_ms":{"median":12.50,"p90":14.75})");
    EXPECT_NE(json.find(R"("scale":[],"scale_ratio":{})"), std::string::npos) << json;
}

TEST(ReportJson, NamesOfOtherBackendsAreNull) {
    BenchResult result = example();
    EXPECT_NE(to_json(result).find(R"("sqlite":"3.40.1","postgres":null,"fsync":null)"),
              std::string::npos);
    result.environment.backend = "postgres";
    result.environment.version = "15.18";
    result.environment.file_system.clear();
    result.environment.fsync = "on";
    const std::string json = to_json(result);
    EXPECT_NE(json.find(R"("backend":"postgres","file_system":null,"fsync_ms_median":null)"),
              std::string::npos)
        << json;
    EXPECT_NE(json.find(R"("sqlite":null,"postgres":"15.18","fsync":"on")"), std::string::npos);
    EXPECT_NE(to_text(result).find("postgres 15.18, fsync on"), std::string::npos);
}

TEST(ReportJson, SaysWhatALevelAddsToTheOneBelow) {
    const std::string json = to_json(example());
    EXPECT_NE(json.find(R"("us_per_job":125.0,"added_us":25.0)"), std::string::npos) << json;
}

TEST(ReportJson, WhatIsNoNumberIsNull) {
    BenchResult result = example();
    result.idle.rss_mib = std::numeric_limits<double>::infinity();
    EXPECT_NE(to_json(result).find(R"("rss_mib":null)"), std::string::npos);
}

TEST(ReportScale, RatiosAreMostRowsByFewestOfTheSameOrder) {
    BenchResult result = example();
    result.scale = {{false, 1000, 100, 50},
                    {false, 1'000'000, 120, 60},
                    {true, 1'000'000, 300, 200},
                    {true, 1000, 100, 50}};
    const auto ratios = result.scale_ratios();
    ASSERT_EQ(ratios.size(), 2U);
    EXPECT_FALSE(ratios[0].random_keys);
    EXPECT_DOUBLE_EQ(ratios[0].sekali, 1.2);
    EXPECT_TRUE(ratios[1].random_keys);
    EXPECT_DOUBLE_EQ(ratios[1].sekali, 3);
    EXPECT_DOUBLE_EQ(ratios[1].raw, 4);
    EXPECT_NE(to_json(result).find(R"("scale_ratio":{"sequential":{"sekali":1.200,"raw":1.200},)"
                                   R"("random":{"sekali":3.000,"raw":4.000}})"),
              std::string::npos);
    EXPECT_NE(to_text(result).find("random keys, most beside fewest: sekali 3.00 times"),
              std::string::npos);
}

TEST(ReportText, ShowsEveryLevelWithItsRatio) {
    const std::string text = to_text(example());
    for (const Level& level : kLevels)
        EXPECT_NE(text.find("drain " + std::string(level.name)), std::string::npos) << text;
    EXPECT_NE(text.find("0.50"), std::string::npos);
    EXPECT_NE(text.find("900 by 1 "), std::string::npos) << text;
    EXPECT_NE(text.find("48000 by 1000\n"), std::string::npos) << text;
}

TEST(ReportText, ItsTablesFitATerminal) {
    constexpr std::size_t kColumns = 80;
    BenchResult result = example();
    result.enqueue.raw_by_batch = {{1, 1000}, {10, 10'000}, {100, 100'000}, {1000, 1'000'000}};
    result.levels[4].sekali_cpu_us = result.levels[4].raw_cpu_us = 100;
    const std::string tables = between(to_text(result), "JOBS/S ", "\n\nwake-up");
    ASSERT_FALSE(tables.empty());
    std::istringstream lines(tables);
    for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), kColumns) << line;
}

}  // namespace
}  // namespace sekali::bench
