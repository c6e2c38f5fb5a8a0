#include "process/text.hpp"

#include <algorithm>
#include <cstdint>

namespace sekali::process {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCutMark = "\xE2\x80\xA6";

unsigned char byte_at(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

bool is_continuation(unsigned char byte) {
    return (byte & 0xC0U) == 0x80U;
}

/// Length of the valid character at `at` (Unicode 15, table 3-7); 0 when there is none.
std::size_t character_length(std::string_view bytes, std::size_t at) {
    const unsigned char first = byte_at(bytes, at);
    if (first == 0) return 0;
    if (first < 0x80) return 1;
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    }
    if (length == 0 || bytes.size() - at < length) return 0;
    const unsigned char second = byte_at(bytes, at + 1);
    if (second < low || second > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (!is_continuation(byte_at(bytes, at + i))) return 0;
    }
    return length;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = character_length(bytes, at);
        text += length == 0 ? kReplacement : bytes.substr(at, length);
        at += std::max<std::size_t>(length, 1);
    }
    return text;
}

std::string utf8_tail(std::string_view bytes, std::size_t limit) {
    const bool dropped = bytes.size() > limit;
    std::string text = valid_utf8(dropped ? bytes.substr(bytes.size() - limit) : bytes);
    if (!dropped && text.size() <= limit) return text;
    if (limit < kCutMark.size()) return {};
    std::size_t from = text.size() - std::min(text.size(), limit - kCutMark.size());
    while (from < text.size() && is_continuation(byte_at(text, from)))
        ++from;
    return std::string(kCutMark) + text.substr(from);
}

}  // namespace sekali::process
