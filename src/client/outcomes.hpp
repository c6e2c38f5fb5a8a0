#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// A child's standard output as a result that every store takes; `kept` is what was kept of `total`
/// bytes.
[[nodiscard]] std::string capped_result(std::string_view kept, std::uint64_t total);

inline constexpr const char* kFailedByTest = "a test made this fail";

/// What a fault point answers that the test told to fail.
[[nodiscard]] inline Error failed_by_test(Applied applied = Applied::kMaybe) {
    return {.code = ErrorCode::kUnreachable,
            .message = kFailedByTest,
            .applied = applied,
            .retryable = true};
}

}  // namespace sekali::client
