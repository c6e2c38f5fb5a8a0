#include "client/http_status.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/durations.hpp"
#include "base/limits.hpp"
#include "client/outcomes.hpp"

namespace sekali::client {
namespace {

using std::chrono::milliseconds;

constexpr int kRequestTimeout = 408;
constexpr int kTooEarly = 425;
constexpr int kTooManyRequests = 429;

bool may_be_tried_again(int status) {
    return status == kRequestTimeout || status == kTooEarly || status == kTooManyRequests ||
           status >= 500;
}

/// The three date forms that RFC 9110, 5.6.7 has a recipient accept.
std::optional<std::int64_t> parse_http_date(const std::string& text) {
    for (const char* form :
         {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
        std::tm fields{};
        const char* end = ::strptime(text.c_str(), form, &fields);
        if (end != nullptr && *end == '\0') return std::int64_t{::timegm(&fields)} * 1000;
    }
    return std::nullopt;
}

}  // namespace

std::optional<milliseconds> parse_retry_after(std::string_view value, std::int64_t unix_ms) {
    if (value.empty()) return std::nullopt;
    const auto most = static_cast<std::uint64_t>(base::kMaxDuration.count()) / 1000;
    if (const auto seconds = base::parse_count("Retry-After", value, 0, most)) {
        return milliseconds{static_cast<std::int64_t>(*seconds) * 1000};
    }
    const auto date = parse_http_date(std::string(value));
    if (!date) return std::nullopt;
    return std::clamp(milliseconds{*date - unix_ms}, milliseconds{0}, base::kMaxDuration);
}

engine::Outcome outcome_of(const HttpAnswer& answer, std::int64_t unix_ms) {
    engine::Outcome outcome;
    if (answer.status >= 200 && answer.status < 300) {
        outcome.result = base::make_storable(answer.body, base::kMaxResultBytes);
        return outcome;
    }
    std::string error = fmt::format("HTTP status {}", answer.status);
    if (!answer.body.empty()) error += ": " + answer.body;
    error = base::make_storable(std::move(error), base::kMaxErrorBytes);
    if (!may_be_tried_again(answer.status)) {
        outcome.kind = engine::Outcome::Kind::kPermanent;
        outcome.error = std::move(error);
        return outcome;
    }
    const bool untouched = answer.status == kTooEarly || answer.status == kTooManyRequests;
    outcome = failed_run(std::move(error), untouched);
    outcome.delay = parse_retry_after(answer.retry_after, unix_ms);
    return outcome;
}

}  // namespace sekali::client
