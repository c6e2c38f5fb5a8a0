#include "base/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

std::string message_of(const Result<void>& result) {
    return result.ok() ? "accepted" : result.error().message;
}

bool is_text(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        const Utf8Step step = decode_utf8(bytes, i);
        if (!step.valid || step.code_point == 0) return false;
        i += step.length;
    }
    return true;
}

TEST(CheckKey, NamesFieldSizeAndLimit) {
    EXPECT_EQ(message_of(check_key("key", "")),
              "key \"\" has 0 bytes (allowed: 1 to 512): it is empty");
    EXPECT_EQ(message_of(check_key("lock", std::string(513, 'k'))),
              "lock \"" + std::string(80, 'k') +
                  "…\" has 513 bytes (allowed: 1 to 512): it is too long, and keys are never cut");
    EXPECT_EQ(
        message_of(check_key("key", "a\nb")),
        "key \"a\\u{a}b\" has 3 bytes (allowed: 1 to 512): byte 1 is the control character U+000A");
    EXPECT_EQ(
        message_of(check_key("key", "ab\xFF\xFE")),
        "key \"ab\\x{ff}\\x{fe}\" has 4 bytes (allowed: 1 to 512): byte 2 is not valid UTF-8");
    EXPECT_EQ(check_key("key", "").error().code, ErrorCode::kUsage);
}

TEST(CheckKey, CountsBytesAndNotCharacters) {
    std::string text;
    for (int i = 0; i < 256; ++i)
        text += "é";
    EXPECT_TRUE(check_key("key", text).ok());
    EXPECT_FALSE(check_key("key", text + "a").ok());
}

TEST(CheckKey, RefusesEveryControlCharacter) {
    for (char32_t c = 0; c < 0x20; ++c) {
        std::string text = "a";
        append_utf8(text, c);
        EXPECT_FALSE(check_key("key", text).ok()) << static_cast<unsigned>(c);
    }
    for (char32_t c = 0x7F; c <= 0x9F; ++c) {
        std::string text;
        append_utf8(text, c);
        EXPECT_FALSE(check_key("key", text).ok()) << static_cast<unsigned>(c);
    }
    EXPECT_TRUE(check_key("key", "\xC2\xA0").ok());
}

TEST(CheckName, FollowsThePattern) {
    for (const std::string_view name : {"a", "Z", "0", "payment.charge", "a-b_c.d", "default"}) {
        EXPECT_TRUE(check_name("kind", name).ok()) << name;
    }
    EXPECT_TRUE(check_name("kind", std::string(64, 'x')).ok());
    for (const std::string_view name :
         {"", ".a", "-a", "_a", "a b", "a/b", "a:b", "é", "a\n", "a*", "../x", "$(id)", "a\xFF"}) {
        EXPECT_FALSE(check_name("kind", name).ok()) << name;
    }
    EXPECT_FALSE(check_name("kind", std::string_view("a\0b", 3)).ok());
}

TEST(CheckName, SaysWhatIsWrong) {
    EXPECT_EQ(message_of(check_name("queue", "a\x1b[b")),
              "queue \"a\\u{1b}[b\" has 4 bytes (allowed: 1 to 64): byte 1 is not one of A-Z a-z "
              "0-9 . _ -");
    EXPECT_TRUE(check_name("kind", "amq.x").ok());
    EXPECT_EQ(message_of(check_queue("queue", "amq.x")),
              "queue \"amq.x\" has 5 bytes and begins with amq., which AMQP brokers keep for "
              "themselves");
    EXPECT_TRUE(check_queue("queue", "amqp").ok());
    EXPECT_FALSE(check_queue("queue", "a b").ok());
}

TEST(ParseCount, ReadsWholeNumbersInRange) {
    EXPECT_EQ(parse_count("--processes", "0", 0, 10).value(), 0U);
    EXPECT_EQ(parse_count("--processes", "10", 0, 10).value(), 10U);
    EXPECT_EQ(parse_count("--processes", "18446744073709551615", 0, UINT64_MAX).value(),
              UINT64_MAX);
    for (const std::string_view text : {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "11",
                                        "one", "18446744073709551617", "99999999999999999999999"}) {
        EXPECT_FALSE(parse_count("--processes", text, 0, 10).ok()) << text;
    }
    EXPECT_EQ(parse_count("--max-attempts", "0", 1, 100).error().message,
              "--max-attempts must be a whole number from 1 to 100, not \"0\"");
}

TEST(CutText, MarksWhatItCuts) {
    EXPECT_EQ(cut_text("short", 5), "short");
    EXPECT_EQ(cut_text(std::string(100, 'x'), 30), std::string(10, 'x') + "… [cut, 100 bytes]");
    EXPECT_EQ(cut_text("ééééé", 5), "éé");
    EXPECT_EQ(cut_text("abc", 0), "");
}

RC_GTEST_PROP(CutTextProperty, FitsAndStaysText, ()) {
    std::string text = *testing::utf8_text();
    const std::size_t max = *rc::gen::inRange<std::size_t>(0, 100);
    const std::string cut = cut_text(text, max);
    RC_ASSERT(cut.size() <= max);
    RC_ASSERT(is_text(cut));
    if (text.size() <= max) RC_ASSERT(cut == text);
}

TEST(MakeStorable, E05_ReplacesWhatNoStoreTakes) {
    EXPECT_EQ(make_storable("good é\x1b\n", 100), "good é\x1b\n");
    EXPECT_EQ(make_storable(std::string("a\0b", 3), 100),
              "a\xEF\xBF\xBD"
              "b… [3 bytes, 1 of them not text]");
    EXPECT_EQ(make_storable("a\xFF\xFE", 100),
              "a\xEF\xBF\xBD\xEF\xBF\xBD… [3 bytes, 2 of them not text]");
    EXPECT_EQ(make_storable("", 100), "");
}

TEST(MakeStorable, E05_CutsTwentyMegabytes) {
    const std::string text = make_storable(std::string(20'000'000, 'x'), kMaxResultBytes);
    EXPECT_EQ(text.size(), kMaxResultBytes);
    EXPECT_TRUE(text.ends_with("x… [cut, 20000000 bytes]"));
    const std::string junk = make_storable(std::string(20'000'000, '\0'), kMaxResultBytes);
    EXPECT_LE(junk.size(), kMaxResultBytes);
    EXPECT_TRUE(is_text(junk));
    EXPECT_TRUE(junk.ends_with("… [cut, 20000000 bytes, 20000000 of them not text]"));
}

RC_GTEST_PROP(MakeStorableProperty, AnyBytesBecomeTextThatFits, (const std::string& bytes)) {
    const std::size_t max = *rc::gen::inRange<std::size_t>(0, 200);
    const std::string text = make_storable(bytes, max);
    RC_ASSERT(text.size() <= max);
    RC_ASSERT(is_text(text));
    if (is_text(bytes) && bytes.size() <= max) RC_ASSERT(text == bytes);
    RC_ASSERT(make_storable(text, max) == text);
}

}  // namespace
}  // namespace sekali::base
