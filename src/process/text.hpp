#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sekali::process {

/// The bytes as valid UTF-8 without NUL: whatever is neither becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view bytes);

/// The end of a text as valid UTF-8 of at most `limit` bytes, begun at a whole character and marked
/// with a leading `…` when something was cut off.
[[nodiscard]] std::string utf8_tail(std::string_view bytes, std::size_t limit);

}  // namespace sekali::process
