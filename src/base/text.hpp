#pragma once

#include <string>
#include <string_view>

namespace sekali::base {

/// `bytes` for a terminal: control, invisible and direction-changing characters as `\u{…}`, bytes
/// that are not UTF-8 as `\x{…}`, a backslash doubled. Different bytes never give the same text.
[[nodiscard]] std::string printable(std::string_view bytes);

/// `printable` in double quotes, cut to a length that fits an error message.
[[nodiscard]] std::string quoted(std::string_view bytes);

}  // namespace sekali::base
