#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace sekali {

namespace detail {

template <typename T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

template <typename T>
inline constexpr bool kIsKeyText =
    std::is_convertible_v<const T&, std::string_view> && !std::is_same_v<T, std::nullptr_t>;

template <typename T>
inline constexpr bool kIsKeyNumber =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !kIsCharacter<T>;

inline void append_key_text(std::string& out, std::string_view part) {
    for (const char c : part) {
        if (c == '%') {
            out += "%25";
        } else if (c == ':') {
            out += "%3A";
        } else {
            out += c;
        }
    }
}

template <typename T>
void append_key_part(std::string& out, const T& part) {
    static_assert(!std::is_floating_point_v<T>,
                  "sekali::key: a floating point number has no single text form, so two services "
                  "would build different keys; pass an integer (cents, not euros) or a string");
    static_assert(!std::is_same_v<T, bool>,
                  "sekali::key: a bool is written 1, true or yes by different programs; pass the "
                  "string that you mean");
    static_assert(
        kIsKeyText<T> || kIsKeyNumber<T> || std::is_floating_point_v<T> || std::is_same_v<T, bool>,
        "sekali::key: a part must be a string or an integer; convert it first");
    if constexpr (kIsKeyNumber<T>) {
        std::array<char, std::numeric_limits<T>::digits10 + 2> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), part).ptr;
        out.append(digits.data(), end);
    } else if constexpr (kIsKeyText<T>) {
        if constexpr (std::is_pointer_v<T>) {
            if (part == nullptr)
                throw std::invalid_argument("sekali::key: a part is a null pointer");
        }
        append_key_text(out, part);
    }
}

}  // namespace detail

/// Builds a key from parts, so that different parts never give the same key: they are joined by `:`
/// after `%` has become `%25` and `:` has become `%3A`.
///
/// Parts are strings and integers. The length is checked when the key is used (1 to 512 bytes).
/// Throws `std::invalid_argument` when a part is a null `const char*`. Thread-safe, does not block.
template <typename First, typename... Rest>
[[nodiscard]] std::string key(const First& first, const Rest&... rest) {
    std::string out;
    detail::append_key_part<std::decay_t<const First&>>(out, first);
    ((out += ':', detail::append_key_part<std::decay_t<const Rest&>>(out, rest)), ...);
    return out;
}

}  // namespace sekali
