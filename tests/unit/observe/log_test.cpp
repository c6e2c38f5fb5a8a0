#include "observe/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace sekali::observe {
namespace {

constexpr std::int64_t kMoment = 1'796'050'500'123;

LogFields full_fields() {
    return {.job_id = "0199",
            .kind = "payment.charge",
            .queue = "default",
            .key = "payment:1001",
            .lock_key = "order:1001",
            .lock_token = "t1",
            .attempt = 2,
            .epoch = 3,
            .worker = "w1",
            .duration = std::chrono::milliseconds(1500),
            .result = "failed",
            .error_class = "retryable"};
}

TEST(LogLine, HoldsEveryFieldAlways) {
    const auto line = nlohmann::json::parse(
        format_log_line({}, kMoment, LogLevel::kInfo, "started", LogFields{}));
    for (const char* name : {"job_id", "kind", "queue", "key", "lock_key", "lock_token", "attempt",
                             "epoch", "worker", "duration_ms", "result", "error_class"}) {
        ASSERT_TRUE(line.contains(name)) << name;
        EXPECT_TRUE(line[name].is_null()) << name;
    }
    EXPECT_EQ(line["time"], "2026-11-30T14:55:00.123Z");
    EXPECT_EQ(line["level"], "info");
    EXPECT_EQ(line["msg"], "started");
}

TEST(LogLine, HoldsTheValues) {
    const auto line = nlohmann::json::parse(
        format_log_line({}, kMoment, LogLevel::kWarning, "ended", full_fields()));
    EXPECT_EQ(line["key"], "payment:1001");
    EXPECT_EQ(line["attempt"], 2);
    EXPECT_EQ(line["duration_ms"], 1500);
    EXPECT_EQ(line["level"], "warning");
}

TEST(LogLine, HostileBytesStayInTheirLine) {
    LogFields fields = full_fields();
    const std::string hostile = "a\nb\r\x1b[31m\x00\xff{\"level\":\"x\"}";
    fields.key = hostile;
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line =
            format_log_line({.format = format}, kMoment, LogLevel::kInfo, hostile, fields);
        EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
        EXPECT_EQ(line.find('\r'), std::string::npos) << line;
    }
}

TEST(LogLine, HashesWhatKeysAreMadeOf) {
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line = format_log_line({.format = format, .hash_keys = true}, kMoment,
                                                 LogLevel::kInfo, "ended", full_fields());
        EXPECT_EQ(line.find("payment:1001"), std::string::npos) << line;
        EXPECT_EQ(line.find("order:1001"), std::string::npos) << line;
        EXPECT_NE(line.find("payment.charge"), std::string::npos) << line;
        EXPECT_NE(line.find("c3500c169f949f1c"), std::string::npos) << line;
    }
}

TEST(LogLine, ReadsLikeASentenceOnATerminal) {
    EXPECT_EQ(format_log_line({.format = LogFormat::kText}, kMoment, LogLevel::kError, "ended",
                              full_fields()),
              "14:55:00.123  error:  ended  kind=payment.charge  key=payment:1001  "
              "lock=order:1001  job=0199  attempt=2  took=1500ms  result=failed  "
              "error=retryable\n");
}

TEST(LogWriter, WritesWhatIsAtLeastAsImportant) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const LogWriter log({.least = LogLevel::kWarning, .fd = ends[1]});
    log.write(LogLevel::kInfo, "left out");
    log.write(LogLevel::kWarning, "kept");
    close(ends[1]);
    std::string text(4096, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], text.data(), text.size()))));
    close(ends[0]);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_NE(text.find("kept"), std::string::npos);
}

TEST(LogLevels, AreReadByName) {
    EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
    EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
    EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

}  // namespace
}  // namespace sekali::observe
