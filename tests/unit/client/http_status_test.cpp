#include "client/http_status.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace std::chrono_literals;
using sekali::client::outcome_of;
using sekali::client::parse_retry_after;
using Kind = sekali::engine::Outcome::Kind;

// 2026-11-30T15:00:00Z
constexpr std::int64_t kNow = 1'796'050'800'000;

TEST(HttpStatus, MapsEveryClass) {
    const auto kind = [](int status) {
        return outcome_of({.status = status, .body = "b", .retry_after = ""}, kNow).kind;
    };
    for (const int status : {200, 201, 204, 299})
        EXPECT_EQ(kind(status), Kind::kSuccess) << status;
    for (const int status : {408, 425, 429, 500, 502, 503, 599}) {
        EXPECT_EQ(kind(status), Kind::kRetry) << status;
    }
    for (const int status : {301, 400, 401, 404, 409, 410, 422, 499}) {
        EXPECT_EQ(kind(status), Kind::kPermanent) << status;
    }
}

TEST(HttpStatus, BodyIsTheResultOrTheError) {
    EXPECT_EQ(outcome_of({.status = 200, .body = R"({"id":7})", .retry_after = ""}, kNow).result,
              R"({"id":7})");
    const auto refused =
        outcome_of({.status = 422, .body = "no such card", .retry_after = ""}, kNow);
    EXPECT_EQ(refused.error, "HTTP status 422: no such card");
}

TEST(HttpStatus, OnlyTooEarlyAndTooManySayThatNothingWasApplied) {
    const auto untouched = [](int status) {
        return outcome_of({.status = status, .body = "", .retry_after = ""}, kNow).nothing_applied;
    };
    EXPECT_TRUE(untouched(425));
    EXPECT_TRUE(untouched(429));
    EXPECT_FALSE(untouched(408));
    EXPECT_FALSE(untouched(503));
}

TEST(HttpStatus, RetryAfterIsSecondsOrADate) {
    EXPECT_EQ(parse_retry_after("120", kNow), 120s);
    EXPECT_EQ(parse_retry_after("0", kNow), 0s);
    EXPECT_EQ(parse_retry_after("Mon, 30 Nov 2026 15:00:10 GMT", kNow), 10s);
    EXPECT_EQ(parse_retry_after("Monday, 30-Nov-26 15:00:10 GMT", kNow), 10s);
    EXPECT_EQ(parse_retry_after("Mon Nov 30 15:00:10 2026", kNow), 10s);
    EXPECT_EQ(parse_retry_after("Mon, 30 Nov 2026 14:00:00 GMT", kNow), 0s);
    for (const char* bad : {"", "soon", "-1", "1.5", "99999999999999999999", "Mon, 30 Nov 2026"}) {
        EXPECT_EQ(parse_retry_after(bad, kNow), std::nullopt) << bad;
    }
    EXPECT_EQ(outcome_of({.status = 503, .body = "", .retry_after = "7"}, kNow).delay, 7s);
    EXPECT_EQ(outcome_of({.status = 503, .body = "", .retry_after = ""}, kNow).delay, std::nullopt);
}

}  // namespace
