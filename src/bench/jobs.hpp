#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/levels.hpp"

namespace sekali::bench {

inline constexpr std::string_view kKind = "bench.charge";
inline constexpr std::string_view kQueue = "bench";

/// What a job of the bench is made of; empty keys are none.
struct JobDraft {
    std::string id;
    std::string payload;
    std::string key;
    std::string lock_key;
    std::string unique_key;
};

/// Jobs of a level with distinct keys. Those of calls with other `first` share none.
[[nodiscard]] std::vector<JobDraft> make_jobs(const Level& level, std::uint64_t first,
                                              std::size_t count);

}  // namespace sekali::bench
