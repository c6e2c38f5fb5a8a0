#pragma once

#include <string>
#include <utility>

#include "sekali/result.hpp"

namespace sekali::base {

/// Bad input or configuration: nothing was done, and the same call fails again.
[[nodiscard]] inline Error usage_error(std::string message, std::string hint = {}) {
    Error error;
    error.code = ErrorCode::kUsage;
    error.message = std::move(message);
    error.hint = std::move(hint);
    return error;
}

}  // namespace sekali::base
