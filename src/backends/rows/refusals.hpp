#pragma once

#include <cstdint>
#include <string_view>

#include "engine/model.hpp"

// What every store of rows refuses, in the same words.
namespace sekali::rows {

/// The place that a page of jobs ended at; 0 for the first page. Throws `Failure` with `kUsage`.
[[nodiscard]] std::int64_t parse_continuation(std::string_view after);

/// Throws `Failure` where a database holds the name of no event.
[[nodiscard]] engine::EventKind stored_event(std::string_view name);

/// `place` is `live` or `final`.
[[noreturn]] void throw_no_job(std::string_view place, std::string_view id);
[[noreturn]] void throw_job_exists(std::string_view id);

}  // namespace sekali::rows
