#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sekali::base {

/// One step through bytes that should be UTF-8.
struct Utf8Step {
    char32_t code_point = 0;  ///< Only meaningful when `valid`.
    std::size_t length = 1;   ///< Bytes of this step; 1 for a byte that belongs to no character.
    bool valid = false;
};

/// Decodes the character at `offset`, which must be less than the size. Overlong forms, surrogates
/// and code points beyond U+10FFFF are invalid (RFC 3629).
[[nodiscard]] Utf8Step decode_utf8(std::string_view bytes, std::size_t offset);

/// Appends the UTF-8 form of a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

/// The largest cut of at most `max_bytes` bytes that splits no character.
[[nodiscard]] std::size_t utf8_cut(std::string_view bytes, std::size_t max_bytes);

/// What stands for bytes that are not UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace sekali::base
