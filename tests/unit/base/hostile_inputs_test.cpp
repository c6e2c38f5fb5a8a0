// Inputs that have broken other systems; each test is named after its line in the list of hostile
// inputs.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/durations.hpp"
#include "base/json_check.hpp"
#include "base/json_slice.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/shell_words.hpp"
#include "base/text.hpp"
#include "sekali/key.hpp"

namespace sekali::base {
namespace {

bool key_accepted(std::string_view value) {
    return check_key("key", value).ok();
}

bool payload_accepted(std::string_view text) {
    return check_json(text, kDefaultMaxPayloadBytes, kMaxJsonDepth).ok();
}

bool count_accepted(std::string_view text, std::uint64_t min, std::uint64_t max) {
    return parse_count("count", text, min, max).ok();
}

std::string one_log_line(std::string_view key) {
    std::string line;
    JsonWriter(line).begin_object().field("key", key).end_object();
    return line;
}

TEST(HostileInputs, X01_EmptyKeyIsRefusedAndBlanksAreKept) {
    EXPECT_FALSE(key_accepted(""));
    EXPECT_TRUE(key_accepted(" "));
    EXPECT_TRUE(key_accepted("   "));
    EXPECT_EQ(key("  "), "  ");
}

TEST(HostileInputs, X02_LongKeysAreRefusedAndNeverCut) {
    const std::string longest(kMaxKeyBytes, 'k');
    EXPECT_TRUE(key_accepted(longest));
    EXPECT_FALSE(key_accepted(longest + "k"));
    const Result<void> huge = check_key("key", std::string(1'000'000, 'k'));
    ASSERT_FALSE(huge.ok());
    EXPECT_NE(huge.error().message.find("1000000 bytes"), std::string::npos);
    EXPECT_LT(huge.error().message.size(), 200U);
}

TEST(HostileInputs, X03_ControlBytesSplitNoLine) {
    for (const std::string_view value : {"a\nb", "a\r\nSET x 1", "\x1b]0;title\x07", "a\x7f"}) {
        const Result<void> result = check_key("key", value);
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().message.find_first_of("\n\r\x1b\x07\x7f"), std::string::npos);
        EXPECT_EQ(one_log_line(value).find_first_of("\n\r\x1b\x07\x7f"), std::string::npos);
    }
}

TEST(HostileInputs, X05_InvalidUtf8IsRefusedAndShownEscaped) {
    EXPECT_FALSE(key_accepted("\xFF\xFE"));
    EXPECT_EQ(printable("\xFF\xFE"), "\\x{ff}\\x{fe}");
}

TEST(HostileInputs, X06_ComposedAndDecomposedLettersDiffer) {
    EXPECT_TRUE(key_accepted("é"));
    EXPECT_TRUE(key_accepted("e\xCC\x81"));
    EXPECT_NE(key("é"), key("e\xCC\x81"));
}

TEST(HostileInputs, X08_InvisibleCharactersAreKeptAndShown) {
    EXPECT_TRUE(key_accepted("a\xE2\x80\x8B"));
    EXPECT_TRUE(
        key_accepted("\xE2\x80\xAE"
                     "a"));
    EXPECT_NE(key("a\xE2\x80\x8B"), key("a"));
    EXPECT_EQ(printable("a\xE2\x80\x8B\xE2\x80\xAE"), "a\\u{200b}\\u{202e}");
}

TEST(HostileInputs, X09_PartsNeverCollide) {
    EXPECT_NE(key("a:b", "c"), key("a", "b:c"));
    EXPECT_NE(key("a:b", "c"), key("a:b:c"));
    EXPECT_NE(key("a", "b:c"), key("a:b:c"));
    EXPECT_NE(key("a", "b", "c"), key("a:b", "c"));
}

TEST(HostileInputs, X11_KeysThatLookLikeCodeAreData) {
    for (const std::string_view value :
         {"'; DROP TABLE jobs; --", "%s%n", "../x", "$(id)", "`id`"}) {
        EXPECT_TRUE(key_accepted(value)) << value;
        const std::string line = one_log_line(value);
        EXPECT_EQ(decode_json_string(*find_pointer(line, "/key")).value(), value);
    }
    EXPECT_FALSE(split_command("./charge.sh $(id)").ok());
}

TEST(HostileInputs, X13_QueueNames) {
    std::string wide;
    for (int i = 0; i < 128; ++i)
        wide += "é";
    const Result<void> result = check_name("queue", wide);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message.find("256 bytes"), std::string::npos);
    EXPECT_FALSE(check_queue("queue", "amq.x").ok());
    EXPECT_FALSE(check_name("queue", "").ok());
}

TEST(HostileInputs, X15_NotANumberIsNotJson) {
    for (const std::string_view text :
         {"NaN", "Infinity", "-Infinity", "{\"k\":NaN}", "[nan]", "[inf]", "{\"k\":1.#QNAN}"}) {
        EXPECT_FALSE(payload_accepted(text)) << text;
    }
    EXPECT_TRUE(payload_accepted("[-0.0, 0.30000000000000004]"));
}

TEST(HostileInputs, X16_RepeatedFieldsAreRefused) {
    EXPECT_FALSE(payload_accepted(R"({"amount":1,"amount":100})"));
    EXPECT_FALSE(payload_accepted(R"({"amount":1,"\u0061mount":100})"));
    EXPECT_FALSE(read_object(R"({"key":"a","kind":"b","key":"c"})").ok());
}

TEST(HostileInputs, X18_PayloadAtTheLimit) {
    const std::string text = '"' + std::string(kDefaultMaxPayloadBytes - 2, 'x') + '"';
    EXPECT_TRUE(payload_accepted(text));
    EXPECT_FALSE(payload_accepted(text + " "));
}

TEST(HostileInputs, X19_OneRuleForOddText) {
    EXPECT_TRUE(payload_accepted(R"("\u0000")"));
    EXPECT_FALSE(payload_accepted(std::string_view("\"\0\"", 3)));
    EXPECT_FALSE(payload_accepted(R"("\ud800")"));
    EXPECT_FALSE(payload_accepted(R"("\ud800\u0041")"));
    EXPECT_FALSE(payload_accepted(R"("\udc00\ud800")"));
    EXPECT_FALSE(payload_accepted(R"({"\udfff":1})"));
    EXPECT_FALSE(payload_accepted("\xEF\xBB\xBF{}"));
    EXPECT_FALSE(payload_accepted("{} x"));
    EXPECT_FALSE(payload_accepted("{}{}"));
    EXPECT_FALSE(payload_accepted(std::string_view("{}\0", 3)));
    // A key never holds NUL, however it was written.
    EXPECT_FALSE(key_accepted(decode_json_string(R"("a\u0000")").value()));
}

TEST(HostileInputs, X20_AnyJsonValueIsAPayload) {
    EXPECT_FALSE(payload_accepted(""));
    for (const std::string_view text : {"null", "[]", "{}", "0", "\"\"", "false"}) {
        EXPECT_TRUE(payload_accepted(text)) << text;
        const std::string line = "{\"payload\":" + std::string(text) + "}";
        EXPECT_EQ(find_pointer(line, "/payload"), text);
    }
}

TEST(HostileInputs, X22_CountsDoNotWrap) {
    for (const std::string_view text :
         {"0", "-1", "2147483648", "4294967297", "18446744073709551617", "1.0", ""}) {
        EXPECT_FALSE(count_accepted(text, 1, 1000)) << text;
    }
    for (const std::string_view text : {"-9223372036854775808", "9223372036854775807", "10"}) {
        EXPECT_FALSE(count_accepted(text, 0, 9)) << text;
    }
}

TEST(HostileInputs, X23_ZeroDurationsAreRefused) {
    for (const std::string_view text : {"0s", "0ms", "0", "-1s", "1", "1e9s", "99999999999d"}) {
        EXPECT_FALSE(parse_duration("--ttl", text, DurationRule::kPositive).ok()) << text;
    }
}

TEST(HostileInputs, X24_ConcurrencyIsBounded) {
    for (const std::string_view text : {"0", "-1", "100000"}) {
        EXPECT_FALSE(count_accepted(text, 1, 1024)) << text;
    }
}

}  // namespace
}  // namespace sekali::base
