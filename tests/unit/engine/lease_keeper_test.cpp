#include "engine/lease_keeper.hpp"

#include <gtest/gtest.h>

namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

constexpr LocalTime kStart{1h};

TEST(Lease, IsOverBeforeTheStoreCanThinkSo) {
    const Lease lease(10s, kStart);
    EXPECT_LT(lease.deadline(), kStart + 10s);
    EXPECT_GE(lease.deadline(), kStart + 8s);
}

TEST(Lease, CountsFromWhenTheRenewalWasSentNotAnswered) {
    Lease lease(9s, kStart);
    lease.sent(kStart + 3s);
    lease.kept(kStart + 3s);
    EXPECT_EQ(lease.deadline(), Lease(9s, kStart + 3s).deadline());
    EXPECT_EQ(lease.renew_at(), kStart + 6s);
}

TEST(Lease, AnOlderAnswerTakesNothingBack) {
    Lease lease(9s, kStart);
    lease.kept(kStart + 6s);
    lease.kept(kStart + 3s);
    EXPECT_EQ(lease.deadline(), Lease(9s, kStart + 6s).deadline());
}

TEST(Lease, AFailedRenewalIsAskedForAgainSoon) {
    Lease lease(12s, kStart);
    lease.sent(kStart + 4s);
    lease.failed(kStart + 5s);
    EXPECT_EQ(lease.renew_at(), kStart + 6s);
}

TEST(StoreTrust, NeedsAWholeLeaseOfAnswers) {
    StoreTrust trust(9s);
    EXPECT_FALSE(trust.whole_lease(kStart));
    for (auto at = kStart; at <= kStart + 9s; at += 1s) {
        trust.seen(at);
        trust.answered(at, at);
        EXPECT_EQ(trust.whole_lease(at), at >= kStart + 9s);
    }
}

TEST(StoreTrust, AFailureStartsItAgain) {
    StoreTrust trust(3s);
    for (auto at = kStart; at <= kStart + 4s; at += 500ms)
        trust.answered(at, at);
    trust.failed();
    EXPECT_FALSE(trust.whole_lease(kStart + 4s));
    trust.answered(kStart + 5s, kStart + 5s);
    EXPECT_FALSE(trust.whole_lease(kStart + 5s));
}

TEST(StoreTrust, AGapAboveAThirdStartsItAgain) {
    StoreTrust trust(3s);
    for (auto at = kStart; at <= kStart + 4s; at += 500ms)
        trust.answered(at, at);
    EXPECT_TRUE(trust.whole_lease(kStart + 4s));
    EXPECT_FALSE(trust.whole_lease(kStart + 5s + 1ms));
    trust.answered(kStart + 5s + 1ms, kStart + 5s + 1ms);
    EXPECT_FALSE(trust.whole_lease(kStart + 5s + 1ms));
}

TEST(StoreTrust, SaysUntilWhenItHolds) {
    StoreTrust trust(3s);
    EXPECT_EQ(trust.whole_lease_until(), LocalTime{});
    for (auto at = kStart; at <= kStart + 4s; at += 500ms) {
        trust.seen(at);
        trust.answered(at, at);
    }
    EXPECT_EQ(trust.whole_lease_until(), kStart + 5s);
    trust.failed();
    EXPECT_EQ(trust.whole_lease_until(), LocalTime{});
}

TEST(StoreTrust, ASlowAnswerIsAGap) {
    StoreTrust trust(3s);
    for (auto at = kStart; at <= kStart + 4s; at += 500ms)
        trust.answered(at, at);
    // It may have been the store's answer of 1.1 s ago.
    trust.answered(kStart + 4s + 100ms, kStart + 5s + 200ms);
    EXPECT_FALSE(trust.whole_lease(kStart + 5s + 200ms));
}

TEST(StoreTrust, APauseOfThisProcessStartsItAgain) {
    StoreTrust trust(3s);
    for (auto at = kStart; at <= kStart + 4s; at += 500ms) {
        trust.seen(at);
        trust.answered(at, at);
    }
    trust.seen(kStart + 60s);
    trust.answered(kStart + 60s, kStart + 60s);
    EXPECT_FALSE(trust.whole_lease(kStart + 60s));
}

}  // namespace
}  // namespace sekali::engine
