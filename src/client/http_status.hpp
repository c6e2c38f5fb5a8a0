#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "engine/ports.hpp"

namespace sekali::client {

/// What an HTTP service answered.
struct HttpAnswer {
    int status = 0;
    std::string body;
    std::string retry_after;  ///< The header's value; empty: there was none.
};

/// 2xx is success with the body as its result; 408, 425, 429 and 5xx may be tried again, when
/// `Retry-After` says so; everything else is permanent. 425 and 429 say that nothing was applied.
[[nodiscard]] engine::Outcome outcome_of(const HttpAnswer& answer, std::int64_t unix_ms);

/// Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date, from `unix_ms` on. Nothing for what
/// is neither.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view value,
                                                                         std::int64_t unix_ms);

}  // namespace sekali::client
