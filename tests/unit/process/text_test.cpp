#include "process/text.hpp"

#include <gtest/gtest.h>

namespace sekali::process {
namespace {

using namespace std::string_literals;

TEST(ValidUtf8, KeepsWholeCharacters) {
    const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \n";
    EXPECT_EQ(valid_utf8(text), text);
}

TEST(ValidUtf8, ReplacesWhatIsNone) {
    const std::string mark = "\xEF\xBF\xBD";
    EXPECT_EQ(valid_utf8("\xFF\xFE"), mark + mark);
    EXPECT_EQ(valid_utf8("a\0b"s), "a" + mark + "b");
    EXPECT_EQ(valid_utf8("\xC0\x80"), mark + mark) << "overlong";
    EXPECT_EQ(valid_utf8("\xED\xA0\x80"), mark + mark + mark) << "surrogate";
    EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), mark + mark + mark + mark) << "above U+10FFFF";
    EXPECT_EQ(valid_utf8("x\xE2\x82"), "x" + mark + mark) << "cut off";
}

TEST(Utf8Tail, KeepsAShortText) {
    EXPECT_EQ(utf8_tail("abc", 3), "abc");
    EXPECT_EQ(utf8_tail("", 0), "");
}

TEST(Utf8Tail, CutsAtAWholeCharacterAndMarksIt) {
    EXPECT_EQ(utf8_tail("0123456789", 6),
              "\xE2\x80\xA6"
              "789");
    EXPECT_EQ(utf8_tail("aaaa\xE2\x82\xAC"
                        "b",
                        6),
              "\xE2\x80\xA6"
              "b");
    EXPECT_EQ(utf8_tail("0123", 2), "");
}

TEST(Utf8Tail, StaysBelowTheLimitWhenBytesAreReplaced) {
    const std::string text = utf8_tail(std::string(100, '\xFF'), 100);
    EXPECT_LE(text.size(), 100U);
    EXPECT_TRUE(text.starts_with("\xE2\x80\xA6\xEF\xBF\xBD"));
}

}  // namespace
}  // namespace sekali::process
