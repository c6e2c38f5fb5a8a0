#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sekali::process {

/// Name of the variable by which the living processes of an attempt are found.
inline constexpr const char* kAttemptIdVariable = "SEKALI_ATTEMPT_ID";

struct StraysKilled {
    std::size_t count = 0;  ///< Processes that were sent SIGKILL.
    bool all_gone = true;   ///< None of them is alive any more.
};

/// Kills every living process that `/proc` shows with SEKALI_ATTEMPT_ID=`attempt_id` in its
/// environment, for the case that a worker and its guard both died. Looks again until none is
/// found, waits at most `patience`. Zombies and processes whose environment may not be read are
/// skipped, and so is the calling process. Blocks; thread-safe.
[[nodiscard]] StraysKilled kill_strays(
    std::string_view attempt_id,
    std::chrono::milliseconds patience = std::chrono::milliseconds{5000});

/// The same for many attempts at the price of one.
[[nodiscard]] StraysKilled kill_strays_of(std::span<const std::string> attempt_ids,
                                          std::chrono::milliseconds patience);

}  // namespace sekali::process
