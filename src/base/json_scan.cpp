#include "base/json_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace sekali::base {
namespace {

constexpr const char* kRepeatedField = "the object has this field twice";
constexpr const char* kTooDeep = "nested too deeply";

/// What stands between the quotes of the string that begins at `quote`.
std::string_view string_content(std::string_view text, std::size_t quote) {
    std::size_t end = quote + 1;
    while (text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
    return text.substr(quote + 1, end - quote - 1);
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_high_surrogate(char32_t unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}
bool is_low_surrogate(char32_t unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/// Marks, by the high bit of its byte, the first of eight bytes (the lowest of the word) that is a
/// quote, a backslash, a control character or not ASCII; marks above the first may be wrong, for a
/// subtraction borrows.
std::uint64_t not_plain(std::uint64_t word) {
    constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
    constexpr std::uint64_t kHighs = 0x8080808080808080ULL;
    const std::uint64_t quote = word ^ (kOnes * '"');
    const std::uint64_t backslash = word ^ (kOnes * '\\');
    const std::uint64_t marks =
        (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) | word;
    return marks & kHighs;
}

bool is_plain(char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
           c != '"' && c != '\\';
}

}  // namespace

int DecodedBytes::next() {
    if (pending_pos_ < pending_.size()) {
        return static_cast<unsigned char>(pending_[pending_pos_++]);
    }
    if (pos_ == content_.size()) return kEnd;
    const char c = content_[pos_++];
    if (c != '\\') return static_cast<unsigned char>(c);
    pending_.clear();
    pending_pos_ = 0;
    decode_escape();
    return static_cast<unsigned char>(pending_[pending_pos_++]);
}

void DecodedBytes::decode_escape() {
    switch (const char c = content_[pos_++]) {
        case 'b':
            pending_ = '\b';
            return;
        case 'f':
            pending_ = '\f';
            return;
        case 'n':
            pending_ = '\n';
            return;
        case 'r':
            pending_ = '\r';
            return;
        case 't':
            pending_ = '\t';
            return;
        case 'u':
            break;
        default:
            pending_ = c;
            return;
    }
    char32_t code_point = take_hex4();
    if (is_high_surrogate(code_point)) {
        pos_ += 2;  // the \u of the low half
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (take_hex4() - 0xDC00);
    }
    append_utf8(pending_, code_point);
}

char32_t DecodedBytes::take_hex4() {
    char32_t value = 0;
    for (int i = 0; i < 4; ++i) {
        value = value << 4 | static_cast<char32_t>(hex_digit(content_[pos_++]));
    }
    return value;
}

std::string decode_content(std::string_view content) {
    if (content.find('\\') == std::string_view::npos) return std::string(content);
    std::string out;
    out.reserve(content.size());
    DecodedBytes bytes(content);
    for (int byte = bytes.next(); byte != DecodedBytes::kEnd; byte = bytes.next()) {
        out += static_cast<char>(byte);
    }
    return out;
}

FieldNames::FieldNames(std::string_view text)
    : text_(text), memory_(buffer_.data(), buffer_.size()), entries_(&memory_) {
    entries_.reserve(kInlineEntries);
}

void FieldNames::add(std::size_t offset, std::string_view content, bool escaped) {
    const std::hash<std::string_view> hash;
    entries_.push_back({escaped ? hash(decode_content(content)) : hash(content), offset});
}

std::optional<std::size_t> FieldNames::close(std::size_t mark) {
    constexpr std::size_t kFew = 16;
    const bool few = entries_.size() - mark <= kFew;
    const std::optional<std::size_t> repeated = few ? find_few(mark) : find_many(mark);
    entries_.resize(mark);
    return repeated;
}

std::string_view FieldNames::content_at(std::size_t offset) const {
    std::size_t end = offset;
    while (text_[end] != '"')
        end += text_[end] == '\\' ? 2 : 1;
    return text_.substr(offset, end - offset);
}

/// A total order by hash, then by decoded name; so that even names crafted to collide cost no more
/// than sorting their bytes.
int FieldNames::compare(const Entry& a, const Entry& b) const {
    if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
    DecodedBytes left(content_at(a.offset));
    DecodedBytes right(content_at(b.offset));
    for (;;) {
        const int l = left.next();
        const int r = right.next();
        if (l != r) return l < r ? -1 : 1;
        if (l == DecodedBytes::kEnd) return 0;
    }
}

std::optional<std::size_t> FieldNames::find_few(std::size_t mark) const {
    for (std::size_t later = mark + 1; later < entries_.size(); ++later) {
        for (std::size_t earlier = mark; earlier < later; ++earlier) {
            if (compare(entries_[earlier], entries_[later]) == 0) return entries_[later].offset;
        }
    }
    return std::nullopt;
}

std::optional<std::size_t> FieldNames::find_many(std::size_t mark) {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(mark);
    std::sort(begin, entries_.end(), [this](const Entry& a, const Entry& b) {
        const int order = compare(a, b);
        return order != 0 ? order < 0 : a.offset < b.offset;
    });
    std::optional<std::size_t> first;
    for (auto it = begin; it + 1 < entries_.end(); ++it) {
        const std::size_t offset = (it + 1)->offset;
        if (compare(*it, *(it + 1)) == 0 && (!first || offset < *first)) first = offset;
    }
    return first;
}

void JsonScanner::skip_space() {
    while (pos_ < text_.size()) {
        const char c = text_[pos_];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        ++pos_;
    }
}

bool JsonScanner::value() {
    skip_space();
    switch (peek()) {
        case '{':
            return object([](std::string_view, std::string_view) {});
        case '[':
            return array([](std::string_view) {});
        case '"':
            return string();
        case 't':
            return literal("true");
        case 'f':
            return literal("false");
        case 'n':
            return literal("null");
        default:
            return number();
    }
}

bool JsonScanner::string() {
    const std::size_t open = pos_++;
    escaped_ = false;
    for (;;) {
        skip_plain();
        if (pos_ == text_.size()) return fail("the string is not closed", open);
        const char c = text_[pos_];
        if (c == '"') {
            ++pos_;
            return true;
        }
        if (c == '\\') {
            if (!escape()) return false;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            return fail("a control character in a string must be escaped");
        } else {
            const Utf8Step step = decode_utf8(text_, pos_);
            if (!step.valid) return fail("not valid UTF-8");
            pos_ += step.length;
        }
    }
}

bool JsonScanner::end() {
    skip_space();
    return pos_ == text_.size() || fail("something follows the value");
}

Error JsonScanner::error() const {
    std::string what = what_;
    if (what_ == kRepeatedField) what += ": " + quoted(string_content(text_, at_));
    if (what_ == kTooDeep) what += fmt::format(" (allowed: {} levels)", max_depth_);
    return usage_error(fmt::format("not valid JSON at byte {}: {}", at_, what));
}

bool JsonScanner::fail(const char* what, std::size_t at) {
    what_ = what;
    at_ = at;
    return false;
}

bool JsonScanner::enter() {
    if (depth_ == max_depth_) return fail(kTooDeep);
    ++depth_;
    ++pos_;
    return true;
}

/// Ends where the value begins.
bool JsonScanner::field_name(std::string_view& content) {
    skip_space();
    if (peek() != '"') return fail("a field name in double quotes must stand here");
    const std::size_t begin = pos_ + 1;
    if (!string()) return false;
    content = text_.substr(begin, pos_ - 1 - begin);
    names_.add(begin, content, escaped_);
    skip_space();
    if (peek() != ':') return fail("a colon must follow the field name");
    ++pos_;
    skip_space();
    return true;
}

bool JsonScanner::literal(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) return fail("not a JSON value");
    pos_ += word.size();
    return true;
}

bool JsonScanner::number() {
    const std::size_t begin = pos_;
    if (pos_ == text_.size()) return fail("the text ends where a value must stand");
    if (text_[pos_] == '-') ++pos_;
    if (!is_digit(peek())) return fail("not a JSON value", begin);
    if (peek() == '0') {
        ++pos_;
        if (is_digit(peek())) return fail("a number must not begin with 0", begin);
    } else {
        digits();
    }
    if (peek() == '.') {
        ++pos_;
        if (!digits()) return fail("a digit must follow the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
        ++pos_;
        if (peek() == '+' || peek() == '-') ++pos_;
        if (!digits()) return fail("a digit must follow the exponent");
    }
    return true;
}

bool JsonScanner::digits() {
    const std::size_t begin = pos_;
    while (is_digit(peek()))
        ++pos_;
    return pos_ != begin;
}

bool JsonScanner::escape() {
    escaped_ = true;
    constexpr std::string_view kSimple = "\"\\/bfnrt";
    if (pos_ + 1 == text_.size()) return fail("the text ends within an escape");
    const char c = text_[pos_ + 1];
    if (c == 'u') return unicode_escape();
    if (kSimple.find(c) == std::string_view::npos) return fail("not an escape of JSON");
    pos_ += 2;
    return true;
}

bool JsonScanner::unicode_escape() {
    const std::size_t begin = pos_;
    unsigned unit = 0;
    if (!hex4(unit)) return false;
    if (is_low_surrogate(unit)) return fail("half a surrogate pair", begin);
    if (!is_high_surrogate(unit)) return true;
    if (text_.substr(pos_, 2) != "\\u") return fail("half a surrogate pair", begin);
    if (!hex4(unit)) return false;
    return is_low_surrogate(unit) || fail("half a surrogate pair", begin);
}

/// Steps over a whole \uXXXX.
bool JsonScanner::hex4(unsigned& value) {
    if (text_.size() - pos_ < 6) return fail("the text ends within an escape");
    value = 0;
    for (std::size_t i = 2; i < 6; ++i) {
        const int digit = hex_digit(text_[pos_ + i]);
        if (digit < 0) return fail("four hex digits must follow \\u");
        value = value << 4 | static_cast<unsigned>(digit);
    }
    pos_ += 6;
    return true;
}

bool JsonScanner::next_item(char close, bool& more) {
    skip_space();
    more = peek() == ',';
    if (!more && peek() != close) return fail("a comma or the closing bracket must stand here");
    ++pos_;
    return true;
}

void JsonScanner::skip_plain() {
    while (std::endian::native == std::endian::little &&
           text_.size() - pos_ >= sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, text_.data() + pos_, sizeof word);
        if (const std::uint64_t marks = not_plain(word)) {
            pos_ += static_cast<std::size_t>(std::countr_zero(marks)) / 8;
            return;
        }
        pos_ += sizeof word;
    }
    while (pos_ < text_.size() && is_plain(text_[pos_]))
        ++pos_;
}

bool JsonScanner::close_object(std::size_t mark) {
    --depth_;
    const std::optional<std::size_t> repeated = names_.close(mark);
    return !repeated || fail(kRepeatedField, *repeated - 1);
}

}  // namespace sekali::base
