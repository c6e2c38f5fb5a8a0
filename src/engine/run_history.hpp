#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model.hpp"

namespace sekali::engine {

/// Enough for a p99 of every kind that matters, and quick to read.
constexpr std::size_t kMeasuredRuns = 10'000;

/// A run that ended, as history has it.
struct RecordedRun {
    std::string kind;
    std::string outcome;
    Millis took{};
};

/// How long the runs of a kind took that ended by their own word: what was cut off says nothing
/// about how long it would have taken.
struct RunTimes {
    std::string kind;
    std::uint64_t runs = 0;
    Millis p99{};
    Millis longest{};
};

/// What the newest runs of a namespace come to.
struct RunHistory {
    std::vector<RunTimes> times;  ///< By kind.
    std::uint64_t runs = 0;       ///< All of them.
    std::uint64_t lapses = 0;     ///< Runs whose lease lapsed although their process lived.
};

[[nodiscard]] RunHistory measure(const std::vector<RecordedRun>& runs);

}  // namespace sekali::engine
