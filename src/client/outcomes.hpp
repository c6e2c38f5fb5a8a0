#pragma once

#include <string>
#include <utility>

#include "engine/ports.hpp"

namespace sekali::client {

/// A run that failed and may be tried again.
[[nodiscard]] inline engine::Outcome failed_run(std::string error, bool nothing_applied) {
    engine::Outcome outcome;
    outcome.kind = engine::Outcome::Kind::kRetry;
    outcome.error = std::move(error);
    outcome.nothing_applied = nothing_applied;
    return outcome;
}

inline constexpr const char* kFailedByTest = "a test made this fail";

}  // namespace sekali::client
