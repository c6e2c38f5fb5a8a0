#include "base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace sekali::base {
namespace {

bool is_control(char32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point <= 0x9F);
}

bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_name_character(char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

/// The kept part and the mark together never exceed `max_bytes`.
std::string cut_with_mark(std::string text, std::size_t max_bytes, std::string_view mark) {
    if (mark.size() > max_bytes) {
        text.resize(utf8_cut(text, max_bytes));
        return text;
    }
    text.resize(utf8_cut(text, max_bytes - mark.size()));
    text += mark;
    return text;
}

bool is_storable(const Utf8Step& step) {
    return step.valid && step.code_point != 0;
}

std::size_t count_unstorable(std::string_view bytes) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes.size();) {
        const Utf8Step step = decode_utf8(bytes, i);
        if (!is_storable(step)) ++count;
        i += step.length;
    }
    return count;
}

/// Stops once `enough` bytes are written: a longer text is cut anyway.
std::string replace_unstorable(std::string_view bytes, std::size_t enough) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size() && out.size() <= enough;) {
        const Utf8Step step = decode_utf8(bytes, i);
        out += is_storable(step) ? bytes.substr(i, step.length) : kReplacementCharacter;
        i += step.length;
    }
    return out;
}

}  // namespace

Result<void> check_key(std::string_view field, std::string_view value) {
    const auto refuse = [&](std::string_view what) {
        return usage_error(fmt::format("{} {} has {} bytes (allowed: 1 to {}): {}", field,
                                       quoted(value), value.size(), kMaxKeyBytes, what));
    };
    if (value.empty()) return refuse("it is empty");
    if (value.size() > kMaxKeyBytes) return refuse("it is too long, and keys are never cut");
    for (std::size_t i = 0; i < value.size();) {
        const Utf8Step step = decode_utf8(value, i);
        if (!step.valid) return refuse(fmt::format("byte {} is not valid UTF-8", i));
        if (is_control(step.code_point)) {
            return refuse(fmt::format("byte {} is the control character U+{:04X}", i,
                                      static_cast<unsigned>(step.code_point)));
        }
        i += step.length;
    }
    return {};
}

Result<void> check_name(std::string_view field, std::string_view value) {
    const auto refuse = [&](std::string_view what) {
        return usage_error(fmt::format("{} {} has {} bytes (allowed: 1 to {}): {}", field,
                                       quoted(value), value.size(), kMaxNameBytes, what),
                           "names are made of A-Z a-z 0-9 . _ - and begin with a letter or digit");
    };
    if (value.empty()) return refuse("it is empty");
    if (value.size() > kMaxNameBytes) return refuse("it is too long");
    if (!is_alphanumeric(value.front())) {
        return refuse("it must begin with a letter or digit");
    }
    const auto* bad = std::find_if_not(value.begin(), value.end(), is_name_character);
    if (bad != value.end()) {
        return refuse(fmt::format("byte {} is not one of A-Z a-z 0-9 . _ -", bad - value.begin()));
    }
    return {};
}

Result<void> check_queue(std::string_view field, std::string_view value) {
    if (!value.starts_with("amq.")) return check_name(field, value);
    return usage_error(fmt::format("{} {} has {} bytes and begins with amq., which AMQP brokers "
                                   "keep for themselves",
                                   field, quoted(value), value.size()),
                       "kinds and namespaces may begin with it");
}

Result<std::uint64_t> parse_count(std::string_view field, std::string_view text, std::uint64_t min,
                                  std::uint64_t max) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc{} || rest != end || value < min || value > max) {
        return usage_error(fmt::format("{} must be a whole number from {} to {}, not {}", field,
                                       min, max, quoted(text)));
    }
    return value;
}

std::string cut_text(std::string text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) return text;
    const std::string mark = fmt::format("… [cut, {} bytes]", text.size());
    return cut_with_mark(std::move(text), max_bytes, mark);
}

std::string make_storable(std::string bytes, std::size_t max_bytes) {
    const std::size_t unstorable = count_unstorable(bytes);
    if (unstorable == 0) return cut_text(std::move(bytes), max_bytes);
    const std::string mark =
        fmt::format("… [{} bytes, {} of them not text]", bytes.size(), unstorable);
    std::string text = replace_unstorable(bytes, max_bytes);
    if (text.size() + mark.size() <= max_bytes) return text + mark;
    const std::string cut_mark =
        fmt::format("… [cut, {} bytes, {} of them not text]", bytes.size(), unstorable);
    return cut_with_mark(std::move(text), max_bytes, cut_mark);
}

}  // namespace sekali::base
