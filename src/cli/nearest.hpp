#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sekali::cli {

/// Up to three of `names` that a hand may have meant by `word`, nearest first; none when all are
/// far.
[[nodiscard]] std::vector<std::string> nearest(std::string_view word,
                                               std::span<const std::string_view> names);

/// "Did you mean a, b or c?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> names,
                                       std::string_view prefix = "");

}  // namespace sekali::cli
