#include "sekali/key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "unit/base/random_json.hpp"

namespace sekali {
namespace {

TEST(Key, JoinsStringsAndIntegers) {
    const char* pointer = "p";
    EXPECT_EQ(key("payment", std::string("1001")), "payment:1001");
    EXPECT_EQ(key(std::string_view("a"), 1, -2, 3U, pointer), "a:1:-2:3:p");
    EXPECT_EQ(key("only"), "only");
    EXPECT_EQ(key(std::uint8_t{7}, std::int8_t{-7}), "7:-7");
    EXPECT_EQ(
        key(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max()),
        "-9223372036854775808:18446744073709551615");
}

TEST(Key, EscapesTheSeparator) {
    EXPECT_EQ(key("a:b", "50%"), "a%3Ab:50%25");
    EXPECT_NE(key("a:b", "c"), key("a", "b:c"));
    EXPECT_NE(key("a%3Ab"), key("a:b"));
    EXPECT_NE(key("a", ""), key("a"));
    EXPECT_NE(key("", "a"), key("a", ""));
}

TEST(Key, KeepsBytesAsTheyAre) {
    EXPECT_EQ(key(" a ", std::string("\0b", 2)), std::string(" a :\0b", 6));
    EXPECT_NE(key("é"), key("e\xCC\x81"));
}

TEST(Key, RefusesANullPointer) {
    const char* missing = nullptr;
    EXPECT_THROW((void)key("tenant", missing), std::invalid_argument);
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ':') {
            parts.emplace_back();
        } else if (text[i] == '%') {
            parts.back() += text.substr(i, 3) == "%3A" ? ':' : '%';
            i += 2;
        } else {
            parts.back() += text[i];
        }
    }
    return parts;
}

RC_GTEST_PROP(KeyProperty, PartsComeBack, ()) {
    const std::string a = *testing::utf8_text();
    const std::string b = *testing::utf8_text();
    const auto number = *rc::gen::arbitrary<std::int64_t>();
    const std::vector<std::string> parts = {a, std::to_string(number), b};
    RC_ASSERT(split(key(a, number, b)) == parts);
}

}  // namespace
}  // namespace sekali
