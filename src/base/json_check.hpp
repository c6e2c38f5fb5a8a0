#pragma once

#include <cstddef>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::base {

/// Refuses what is not one strict JSON text (RFC 8259) of at most `max_bytes` bytes and `max_depth`
/// levels of nesting (never more than `kMaxJsonDepth`); the error names the byte offset.
///
/// Refused beyond the grammar: invalid UTF-8, a byte order mark, half a surrogate pair, and an
/// object with the same field twice (names are compared decoded). `\u0000` is accepted: it is six
/// plain bytes for every transport, and only the handler decodes it. A number may have any size.
/// Linear in the text but for sorting the names of large objects; no heap for small documents.
[[nodiscard]] Result<void> check_json(std::string_view text, std::size_t max_bytes,
                                      std::size_t max_depth);

}  // namespace sekali::base
