#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace sekali::process {

struct StraysKilled {
    std::size_t count = 0;  ///< Processes that were sent SIGKILL.
    bool all_gone = true;   ///< None of them is alive any more.
};

/// Kills every living process of this host whose environment has SEKALI_ATTEMPT_ID=`attempt_id`,
/// for the case that a worker and its guard both died. Looks again until none is found, waits at
/// most `patience`. Zombies and processes whose environment may not be read are skipped, and so is
/// the calling process. Blocks; thread-safe.
[[nodiscard]] StraysKilled kill_strays(
    std::string_view attempt_id,
    std::chrono::milliseconds patience = std::chrono::milliseconds{5000});

}  // namespace sekali::process
