#include "cli/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sekali::cli {
namespace {

constexpr std::size_t kShown = 3;
constexpr std::size_t kLongestCompared = 64;

/// Edits between two words, where swapping two neighbours is one.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, change});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string_view> names) {
    if (word.size() > kLongestCompared) return {};
    std::vector<std::pair<std::size_t, std::string_view>> found;
    const std::size_t furthest = std::max<std::size_t>(1, word.size() / 3);
    for (const std::string_view name : names) {
        const bool begins = word.size() >= 2 && name.starts_with(word);
        const std::size_t edits = begins ? 0 : distance(word, name);
        if (edits <= furthest) found.emplace_back(edits, name);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> out;
    for (const auto& [edits, name] : found) {
        if (out.size() < kShown) out.emplace_back(name);
    }
    return out;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names,
                         std::string_view prefix) {
    const std::vector<std::string> found = nearest(word, names);
    if (found.empty()) return "";
    std::string text = "did you mean ";
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (i > 0) text += i + 1 == found.size() ? " or " : ", ";
        text += '`';
        text += prefix;
        text += found[i] + '`';
    }
    return text + '?';
}

}  // namespace sekali::cli
