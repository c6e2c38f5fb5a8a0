#include "backends/rows/nearest_keys.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sekali::rows {
namespace {

/// Further apart than this is no slip of the keyboard; it also bounds the work on long keys.
constexpr std::size_t kFurthest = 8;

/// Levenshtein distance, within a band of `kFurthest` around the diagonal; above it when they are
/// further.
std::size_t distance(std::string_view a, std::string_view b) {
    const std::size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (gap > kFurthest) return kFurthest + 1;
    std::vector<std::size_t> above(b.size() + 1);
    std::iota(above.begin(), above.end(), std::size_t{0});
    std::vector<std::size_t> here(b.size() + 1);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::fill(here.begin(), here.end(), kFurthest + 1);
        if (i <= kFurthest) here[0] = i;
        const std::size_t from = i > kFurthest ? i - kFurthest : 1;
        const std::size_t to = std::min(b.size(), i + kFurthest);
        for (std::size_t j = from; j <= to; ++j) {
            const std::size_t changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            here[j] = std::min({changed, above[j] + 1, here[j - 1] + 1, kFurthest + 1});
        }
        std::swap(above, here);
    }
    return above[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view key, const std::vector<std::string>& candidates,
                                 std::size_t limit) {
    std::vector<std::pair<std::size_t, std::string_view>> ranked;
    for (const std::string_view candidate : candidates) {
        const bool part = candidate.find(key) != std::string_view::npos ||
                          (!candidate.empty() && key.find(candidate) != std::string_view::npos);
        const std::size_t far = part ? std::size_t{1} : distance(key, candidate);
        if (far <= kFurthest) ranked.emplace_back(far, candidate);
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::string> names;
    for (const auto& [far, name] : ranked) {
        if (names.size() == limit) break;
        names.emplace_back(name);
    }
    return names;
}

}  // namespace sekali::rows
