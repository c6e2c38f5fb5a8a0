#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "base/utf8.hpp"

namespace sekali::base {
namespace {

struct Range {
    char32_t first;
    char32_t last;
};

/// Unicode's Default_Ignorable_Code_Point, the controls, and what breaks or annotates lines.
constexpr std::array kHidden = {
    Range{0x0000, 0x001F},   Range{0x007F, 0x009F},   Range{0x00AD, 0x00AD},
    Range{0x034F, 0x034F},   Range{0x061C, 0x061C},   Range{0x115F, 0x1160},
    Range{0x17B4, 0x17B5},   Range{0x180B, 0x180F},   Range{0x200B, 0x200F},
    Range{0x2028, 0x202E},   Range{0x2060, 0x206F},   Range{0x3164, 0x3164},
    Range{0xFE00, 0xFE0F},   Range{0xFEFF, 0xFEFF},   Range{0xFFA0, 0xFFA0},
    Range{0xFFF0, 0xFFFB},   Range{0x1BCA0, 0x1BCA3}, Range{0x1D173, 0x1D17A},
    Range{0xE0000, 0xE0FFF},
};

bool is_hidden(char32_t code_point) {
    const auto* after =
        std::upper_bound(kHidden.begin(), kHidden.end(), code_point,
                         [](char32_t value, const Range& range) { return value < range.first; });
    return after != kHidden.begin() && code_point <= std::prev(after)->last;
}

}  // namespace

std::string printable(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t i = 0; i < bytes.size();) {
        const Utf8Step step = decode_utf8(bytes, i);
        if (!step.valid) {
            out += fmt::format("\\x{{{:02x}}}", static_cast<unsigned char>(bytes[i]));
        } else if (is_hidden(step.code_point)) {
            out += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(step.code_point));
        } else if (bytes[i] == '\\') {
            out += "\\\\";
        } else {
            out += bytes.substr(i, step.length);
        }
        i += step.length;
    }
    return out;
}

std::string quoted(std::string_view bytes) {
    constexpr std::size_t kShownBytes = 80;
    const std::size_t shown = utf8_cut(bytes, kShownBytes);
    return fmt::format("\"{}{}\"", printable(bytes.substr(0, shown)),
                       shown < bytes.size() ? "…" : "");
}

}  // namespace sekali::base
