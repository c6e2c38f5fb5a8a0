#include "base/durations.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <time.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>

namespace sekali::base {
namespace {

using std::chrono::milliseconds;

std::string refusal(std::string_view text, DurationRule rule = DurationRule::kPositive) {
    const auto result = parse_duration("--lease", text, rule);
    if (result.ok()) return "accepted";
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_FALSE(result.error().hint.empty());
    return result.error().message;
}

milliseconds parsed(std::string_view text) {
    return parse_duration("--lease", text, DurationRule::kPositive).value();
}

TEST(ParseDuration, ReadsEveryUnit) {
    EXPECT_EQ(parsed("250ms"), milliseconds(250));
    EXPECT_EQ(parsed("30s"), std::chrono::seconds(30));
    EXPECT_EQ(parsed("5m"), std::chrono::minutes(5));
    EXPECT_EQ(parsed("2h"), std::chrono::hours(2));
    EXPECT_EQ(parsed("1d"), std::chrono::hours(24));
    EXPECT_EQ(parsed("0001s"), std::chrono::seconds(1));
}

TEST(ParseDuration, SaysWhatIsWrong) {
    EXPECT_EQ(refusal(""), "--lease \"\": the duration is empty");
    EXPECT_EQ(refusal("30"), "--lease \"30\": the unit is missing");
    EXPECT_EQ(refusal("-5s"), "--lease \"-5s\": a duration cannot be negative");
    EXPECT_EQ(refusal("-0s"), "--lease \"-0s\": a duration cannot be negative");
    EXPECT_EQ(
        refusal("1.5s"),
        "--lease \"1.5s\": decimals are not accepted; use a smaller unit, as 1500ms for 1.5s");
    EXPECT_EQ(refusal("0s"), "--lease \"0s\": it must be more than zero");
    for (const std::string_view text : {"s", "+5s", " 5s", "five", "٣s"}) {
        EXPECT_NE(refusal(text).find("begins with a whole number"), std::string::npos) << text;
    }
    for (const std::string_view text : {"5 s", "5S", "5sec", "5s ", "1h30m", "5us", "1e3s", "5w"}) {
        EXPECT_NE(refusal(text).find("the unit is not one of"), std::string::npos) << text;
    }
    for (const std::string_view text : {"36501d", "9223372036854775807s",
                                        "99999999999999999999999999ms", "18446744073709551617s"}) {
        EXPECT_NE(refusal(text).find("it is longer than 36500d"), std::string::npos) << text;
    }
    EXPECT_EQ(parsed("36500d"), kMaxDuration);
}

TEST(ParseDuration, ZeroOnlyWhereItMakesSense) {
    EXPECT_EQ(parse_duration("--wait", "0s", DurationRule::kZeroAllowed).value(), milliseconds(0));
    EXPECT_NE(refusal("0", DurationRule::kZeroAllowed), "accepted");
    EXPECT_NE(refusal("-1s", DurationRule::kZeroAllowed), "accepted");
}

TEST(ParseDuration, ErrorsCarryNoRawControlBytes) {
    EXPECT_EQ(refusal("\x1b[31m"),
              "--lease \"\\u{1b}[31m\": a duration begins with a whole number");
}

TEST(FormatDuration, IsTheShortestExactForm) {
    EXPECT_EQ(format_duration(milliseconds(0)), "0s");
    EXPECT_EQ(format_duration(milliseconds(1)), "1ms");
    EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
    EXPECT_EQ(format_duration(std::chrono::seconds(90)), "90s");
    EXPECT_EQ(format_duration(std::chrono::minutes(90)), "90m");
    EXPECT_EQ(format_duration(std::chrono::hours(48)), "2d");
    EXPECT_EQ(format_duration(milliseconds(-1500)), "-1500ms");
}

RC_GTEST_PROP(DurationProperty, ComesBack, ()) {
    const auto unit = *rc::gen::element<std::int64_t>(1, 1000, 60'000, 3'600'000, 86'400'000);
    const auto count = *rc::gen::inRange<std::int64_t>(1, kMaxDuration.count() / unit + 1);
    const milliseconds duration(count * unit);
    RC_ASSERT(parsed(format_duration(duration)) == duration);
}

std::int64_t instant(std::string_view text) {
    return parse_instant("--at", text).value();
}

TEST(ParseInstant, ReadsRfc3339) {
    EXPECT_EQ(instant("1970-01-01T00:00:00Z"), 0);
    EXPECT_EQ(instant("2026-11-30T14:55:00Z"), 1796050500000);
    EXPECT_EQ(instant("2026-11-30T21:55:00+07:00"), 1796050500000);
    EXPECT_EQ(instant("2026-11-30T05:25:00-09:30"), 1796050500000);
    EXPECT_EQ(instant("2026-11-30T14:55:00-00:00"), 1796050500000);
    EXPECT_EQ(instant("2026-11-30 14:55:00.5z"), 1796050500500);
    EXPECT_EQ(instant("2026-11-30t14:55:00.123999999999999Z"), 1796050500123);
    EXPECT_EQ(instant("1969-12-31T23:59:59.999Z"), -1);
    EXPECT_EQ(instant("2024-02-29T00:00:00Z"), 1709164800000);
    EXPECT_EQ(instant("2016-12-31T23:59:60Z"), instant("2017-01-01T00:00:00Z"));
    EXPECT_EQ(instant("2017-01-01T06:59:60+07:00"), instant("2017-01-01T00:00:00Z"));
}

TEST(ParseInstant, AsksForTheZone) {
    const auto result = parse_instant("--at", "2026-11-30T14:55:00");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "--at \"2026-11-30T14:55:00\": the zone is missing");
    EXPECT_EQ(result.error().hint, "write it as 2026-11-30T14:55:00Z or 2026-11-30T21:55:00+07:00");
}

TEST(ParseInstant, RefusesEverythingElse) {
    for (const std::string_view text : {"",
                                        "now",
                                        "1796050500",
                                        "2026-11-30",
                                        "2026-11-30T14:55Z",
                                        "2026-13-01T00:00:00Z",
                                        "2026-00-01T00:00:00Z",
                                        "2026-02-30T00:00:00Z",
                                        "2025-02-29T00:00:00Z",
                                        "2026-11-30T24:00:00Z",
                                        "2026-11-30T14:60:00Z",
                                        "2026-11-30T14:55:61Z",
                                        "2026-11-30T14:55:60Z",
                                        "2026-11-30T14:55:00.Z",
                                        "2026-11-30T14:55:00,5Z",
                                        "2026-11-30T14:55:00+7:00",
                                        "2026-11-30T14:55:00+0700",
                                        "2026-11-30T14:55:00+24:00",
                                        "2026-11-30T14:55:00+07:60",
                                        "2026-11-30T14:55:00Zx",
                                        "2026-11-30T14:55:00 Z",
                                        " 2026-11-30T14:55:00Z",
                                        "26-11-30T14:55:00Z",
                                        "+2026-11-30T14:55:00Z",
                                        "2026-11-30T14:55:00CET"}) {
        EXPECT_FALSE(parse_instant("--at", text).ok()) << text;
    }
}

TEST(FormatInstant, AlwaysShowsMilliseconds) {
    EXPECT_EQ(format_instant(1796050500123), "2026-11-30T14:55:00.123Z");
    EXPECT_EQ(format_instant(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(format_instant(-1), "1969-12-31T23:59:59.999Z");
}

TEST(FormatInstant, StaysInsideFourDigitYears) {
    EXPECT_EQ(format_instant(std::numeric_limits<std::int64_t>::min()), "0000-01-01T00:00:00.000Z");
    EXPECT_EQ(format_instant(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999Z");
}

RC_GTEST_PROP(InstantProperty, AgreesWithTheSystemCalendarAndComesBack, ()) {
    const auto unix_ms = *rc::gen::inRange<std::int64_t>(-62'167'219'200'000, 253'402'300'800'000);
    const time_t seconds = std::chrono::floor<std::chrono::seconds>(milliseconds(unix_ms)).count();
    tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 64> expected{};
    std::snprintf(expected.data(), expected.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                  parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                  parts.tm_min, parts.tm_sec, static_cast<int>(unix_ms - seconds * 1000));
    RC_ASSERT(format_instant(unix_ms) == expected.data());
    RC_ASSERT(instant(format_instant(unix_ms)) == unix_ms);
}

}  // namespace
}  // namespace sekali::base
