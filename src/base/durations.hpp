#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::base {

/// Whether `0s` is a sensible value for the setting.
enum class DurationRule : std::uint8_t { kPositive, kZeroAllowed };

/// The longest duration that is accepted; far from where adding it to a time could overflow.
inline constexpr std::chrono::milliseconds kMaxDuration = std::chrono::hours(24) * 36500;

/// Reads `250ms`, `30s`, `5m`, `2h` or `1d`: one whole number with its unit, up to `kMaxDuration`.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view field,
                                                               std::string_view text,
                                                               DurationRule rule);

/// The shortest form that `parse_duration` reads back to the same value, e.g. `90s`, `2h`, `0s`.
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

/// Reads an RFC 3339 time, whose zone must be written, as milliseconds since 1970; what is finer
/// than a millisecond is dropped.
[[nodiscard]] Result<std::int64_t> parse_instant(std::string_view field, std::string_view text);

/// `2026-11-30T14:55:00.123Z`. Times outside the years 0 to 9999 are shown as the nearest one
/// inside.
[[nodiscard]] std::string format_instant(std::int64_t unix_ms);

}  // namespace sekali::base
