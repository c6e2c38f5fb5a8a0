#include "backends/rows/refusals.hpp"

#include <charconv>
#include <string>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "sekali/result.hpp"

namespace sekali::rows {

std::int64_t parse_continuation(std::string_view after) {
    if (after.empty()) return 0;
    std::int64_t seq = 0;
    const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), seq);
    if (error != std::errc{} || end != after.data() + after.size()) {
        throw Failure(
            base::usage_error("after: " + base::quoted(after) + " is no continuation of a list"));
    }
    return seq;
}

engine::EventKind stored_event(std::string_view name) {
    const auto kind = engine::parse_event_kind(name);
    if (!kind) {
        throw Failure(
            {.code = ErrorCode::kInternal,
             .message = "an event of the unknown kind " + std::string(name) + " is stored"});
    }
    return *kind;
}

void throw_no_job(std::string_view place, std::string_view id) {
    throw Failure(
        {.code = ErrorCode::kInternal,
         .message = "there is no " + std::string(place) + " job " + std::string(id) + " to write"});
}

void throw_job_exists(std::string_view id) {
    throw Failure({.code = ErrorCode::kConflict,
                   .message = "there is a job " + std::string(id) + " already"});
}

}  // namespace sekali::rows
