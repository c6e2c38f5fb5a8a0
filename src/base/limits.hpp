#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::base {

inline constexpr std::size_t kMaxKeyBytes = 512;
inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kDefaultMaxPayloadBytes = 1024 * 1024;
inline constexpr std::size_t kMaxJsonDepth = 128;
inline constexpr std::size_t kMaxResultBytes = 64 * 1024;
inline constexpr std::size_t kMaxErrorBytes = 8 * 1024;

/// Refuses what cannot be an idempotency, lock or unique key: anything but 1 to 512 bytes of UTF-8
/// without control characters. Nothing is trimmed, folded or normalised. `field` is named in the
/// error.
[[nodiscard]] Result<void> check_key(std::string_view field, std::string_view value);

/// Refuses what cannot be a kind, queue or namespace: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
[[nodiscard]] Result<void> check_name(std::string_view field, std::string_view value);

/// `check_name` for a queue that jobs are to go through. It may not begin with `amq.`: AMQP 0-9-1
/// reserves that, and no transport shall differ.
[[nodiscard]] Result<void> check_queue(std::string_view field, std::string_view value);

/// A whole decimal number from `min` to `max`; signs, blanks and decimals are refused.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view field, std::string_view text,
                                                std::uint64_t min, std::uint64_t max);

/// `text` in at most `max_bytes` bytes. What is longer is cut between two characters and ends with
/// `… [cut, N bytes]`, N being its full size (without that mark where it does not fit).
[[nodiscard]] std::string cut_text(std::string text, std::size_t max_bytes);

/// A handler's output as text that every store takes, in at most `max_bytes` bytes: good text
/// unchanged; NUL and bytes that are not UTF-8 replaced by U+FFFD, and a mark at the end that says
/// so.
[[nodiscard]] std::string make_storable(std::string bytes, std::size_t max_bytes);

}  // namespace sekali::base
