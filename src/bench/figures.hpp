#pragma once

#include <vector>

namespace sekali::bench {

/// The smallest value that is not exceeded by `share` (0 to 1) of all; 0 when there is none.
[[nodiscard]] double percentile(std::vector<double> values, double share);
/// The value in the middle, or the mean of the two there; 0 when there is none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace sekali::bench
