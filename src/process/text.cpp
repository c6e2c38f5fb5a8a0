#include "process/text.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace sekali::process {
namespace {

constexpr std::string_view kCutMark = "\xE2\x80\xA6";

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const base::Utf8Step step = base::decode_utf8(bytes, at);
        const bool good = step.valid && step.code_point != 0;
        text += good ? bytes.substr(at, step.length) : base::kReplacementCharacter;
        at += step.length;
    }
    return text;
}

std::string utf8_tail(std::string_view bytes, std::size_t limit) {
    const bool dropped = bytes.size() > limit;
    std::string text = valid_utf8(dropped ? bytes.substr(bytes.size() - limit) : bytes);
    if (!dropped && text.size() <= limit) return text;
    if (limit < kCutMark.size()) return {};
    std::size_t from = text.size() - std::min(text.size(), limit - kCutMark.size());
    while (from < text.size() && is_continuation(text[from]))
        ++from;
    return std::string(kCutMark) + text.substr(from);
}

}  // namespace sekali::process
