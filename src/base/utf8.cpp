#include "base/utf8.hpp"

namespace sekali::base {
namespace {

struct Lead {
    std::size_t length;
    char32_t bits;
    char32_t smallest;  // below it the form is overlong
};

Lead classify(unsigned char byte) {
    if (byte < 0x80) return {1, byte, 0};
    if (byte >= 0xC2 && byte <= 0xDF) return {2, byte & 0x1FU, 0x80};
    if (byte >= 0xE0 && byte <= 0xEF) return {3, byte & 0x0FU, 0x800};
    if (byte >= 0xF0 && byte <= 0xF4) return {4, byte & 0x07U, 0x10000};
    return {0, 0, 0};
}

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

Utf8Step decode_utf8(std::string_view bytes, std::size_t offset) {
    const Lead lead = classify(static_cast<unsigned char>(bytes[offset]));
    if (lead.length == 0 || lead.length > bytes.size() - offset) return {};
    char32_t code_point = lead.bits;
    for (std::size_t i = 1; i < lead.length; ++i) {
        const char c = bytes[offset + i];
        if (!is_continuation(c)) return {};
        code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3FU);
    }
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    if (code_point < lead.smallest || surrogate || code_point > 0x10FFFF) return {};
    return {code_point, lead.length, true};
}

void append_utf8(std::string& out, char32_t code_point) {
    const auto tail = [&out, code_point](int shift) {
        out += static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
    };
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else if (code_point < 0x800) {
        out += static_cast<char>(0xC0 | (code_point >> 6));
        tail(0);
    } else if (code_point < 0x10000) {
        out += static_cast<char>(0xE0 | (code_point >> 12));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0 | (code_point >> 18));
        tail(12);
        tail(6);
        tail(0);
    }
}

std::size_t utf8_cut(std::string_view bytes, std::size_t max_bytes) {
    if (bytes.size() <= max_bytes) return bytes.size();
    constexpr std::size_t kLongestTail = 3;
    for (std::size_t back = 0; back <= kLongestTail && back <= max_bytes; ++back) {
        if (!is_continuation(bytes[max_bytes - back])) return max_bytes - back;
    }
    return max_bytes;
}

}  // namespace sekali::base
