#include "base/text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
    EXPECT_EQ(printable("order:1001 é 漢 🙂"), "order:1001 é 漢 🙂");
    EXPECT_EQ(printable(""), "");
}

TEST(Printable, ShowsWhatATerminalWouldObeyOrHide) {
    EXPECT_EQ(printable("a\n\x1b[31m\x7f"), "a\\u{a}\\u{1b}[31m\\u{7f}");
    EXPECT_EQ(printable("\xC2\x9B"), "\\u{9b}");
    EXPECT_EQ(printable("a\xE2\x80\x8B"
                        "b"),
              "a\\u{200b}b");
    EXPECT_EQ(printable("\xE2\x80\xAE"), "\\u{202e}");
    EXPECT_EQ(printable("\xE2\x81\xA6\xEF\xBB\xBF\xC2\xAD"), "\\u{2066}\\u{feff}\\u{ad}");
    EXPECT_EQ(printable("\xF3\xA0\x80\x81"), "\\u{e0001}");
    EXPECT_EQ(printable("\xFF\xC3"), "\\x{ff}\\x{c3}");
    EXPECT_EQ(printable("\\u{a}"), "\\\\u{a}");
}

TEST(Quoted, CutsLongText) {
    EXPECT_EQ(quoted("a\n"), "\"a\\u{a}\"");
    EXPECT_EQ(base::quoted(std::string(1'000'000, 'x')), "\"" + std::string(80, 'x') + "…\"");
    EXPECT_EQ(base::quoted(std::string(79, 'x') + "é"), "\"" + std::string(79, 'x') + "…\"");
}

/// The inverse of `printable`, which exists because it is injective.
std::string unprintable(const std::string& shown) {
    std::string bytes;
    for (std::size_t i = 0; i < shown.size(); ++i) {
        if (shown[i] != '\\') {
            bytes += shown[i];
        } else if (shown[i + 1] == '\\') {
            bytes += shown[++i];
        } else {
            const std::size_t close = shown.find('}', i);
            const auto value = std::stoul(shown.substr(i + 3, close - i - 3), nullptr, 16);
            if (shown[i + 1] == 'x') {
                bytes += static_cast<char>(value);
            } else {
                append_utf8(bytes, static_cast<char32_t>(value));
            }
            i = close;
        }
    }
    return bytes;
}

RC_GTEST_PROP(PrintableProperty, DifferentBytesNeverLookAlike, (const std::string& junk)) {
    const std::string bytes = junk + *testing::utf8_text() + junk;
    const std::string shown = printable(bytes);
    RC_ASSERT(unprintable(shown) == bytes);
    for (const char c : shown)
        RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace
}  // namespace sekali::base
