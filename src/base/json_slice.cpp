#include "base/json_slice.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/errors.hpp"
#include "base/json_scan.hpp"
#include "base/limits.hpp"

namespace sekali::base {
namespace {

constexpr std::size_t kMaxLineDepth = kMaxJsonDepth + 1;

/// `~1` is a slash and `~0` a tilde.
std::string unescape_token(std::string_view token) {
    std::string out;
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '~') {
            out += token[i];
        } else {
            out += token[++i] == '1' ? '/' : '~';
        }
    }
    return out;
}

std::optional<std::size_t> array_index(std::string_view token) {
    if (token.size() > 1 && token.front() == '0') return std::nullopt;
    std::size_t index = 0;
    const char* end = token.data() + token.size();
    const auto [rest, problem] = std::from_chars(token.data(), end, index);
    if (problem != std::errc{} || rest != end) return std::nullopt;
    return index;
}

std::optional<std::string_view> child(std::string_view json, std::string_view token) {
    JsonScanner scanner(json, kMaxLineDepth);
    std::optional<std::string_view> found;
    scanner.skip_space();
    if (scanner.peek() == '{') {
        const std::string wanted = unescape_token(token);
        const bool good = scanner.object([&](std::string_view name, std::string_view slice) {
            if (!found && decode_content(name) == wanted) found = slice;
        });
        return good ? found : std::nullopt;
    }
    const std::optional<std::size_t> wanted = array_index(token);
    if (scanner.peek() != '[' || !wanted) return std::nullopt;
    std::size_t index = 0;
    const bool good = scanner.array([&](std::string_view slice) {
        if (index++ == *wanted) found = slice;
    });
    return good ? found : std::nullopt;
}

std::optional<std::string_view> whole_value(std::string_view json) {
    JsonScanner scanner(json, kMaxLineDepth);
    scanner.skip_space();
    const std::size_t begin = scanner.position();
    if (!scanner.value()) return std::nullopt;
    return json.substr(begin, scanner.position() - begin);
}

}  // namespace

Result<std::vector<JsonField>> read_object(std::string_view text) {
    JsonScanner scanner(text, kMaxLineDepth);
    scanner.skip_space();
    if (scanner.peek() != '{') return usage_error("not a JSON object at byte 0");
    std::vector<JsonField> fields;
    const bool good = scanner.object([&](std::string_view name, std::string_view slice) {
        fields.push_back({decode_content(name), slice});
    });
    if (!good || !scanner.end()) return scanner.error();
    return fields;
}

Result<std::string> decode_json_string(std::string_view slice) {
    JsonScanner scanner(slice, 0);
    if (scanner.peek() != '"') return usage_error("not a JSON string");
    if (!scanner.string() || !scanner.end()) return scanner.error();
    const std::size_t close = slice.rfind('"');
    return decode_content(slice.substr(1, close - 1));
}

bool is_json_pointer(std::string_view pointer) {
    if (!pointer.empty() && pointer.front() != '/') return false;
    for (std::size_t i = 0; i < pointer.size(); ++i) {
        if (pointer[i] != '~') continue;
        if (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1'))
            return false;
    }
    return true;
}

std::optional<std::string_view> find_pointer(std::string_view json, std::string_view pointer) {
    if (!is_json_pointer(pointer)) return std::nullopt;
    std::optional<std::string_view> at = whole_value(json);
    while (at && !pointer.empty()) {
        pointer.remove_prefix(1);
        const std::string_view token = pointer.substr(0, pointer.find('/'));
        at = child(*at, token);
        pointer.remove_prefix(token.size());
    }
    return at;
}

}  // namespace sekali::base
