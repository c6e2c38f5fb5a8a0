#include "bench/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sekali::bench {

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    const auto place = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
    return values[std::min(place, values.size() - 1)];
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace sekali::bench
