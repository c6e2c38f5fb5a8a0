#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sekali::rows {

/// Existing keys on each side of an unknown one, in byte order, that are compared with it.
constexpr std::size_t kNeighbours = 50;

/// The candidates that a person may have meant by `key`, likeliest first: by edit distance in
/// bytes, where a candidate that contains the key, or is contained in it, counts as close.
[[nodiscard]] std::vector<std::string> nearest(std::string_view key,
                                               const std::vector<std::string>& candidates,
                                               std::size_t limit);

}  // namespace sekali::rows
