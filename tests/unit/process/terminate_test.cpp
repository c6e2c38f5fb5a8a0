#include "process/terminate.hpp"

#include <gtest/gtest.h>

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using Action = Termination::Action;

constexpr Termination::Clock::time_point kStart{100s};

TEST(Termination, SendsTermAndAfterTheGraceKill) {
    Termination termination;
    EXPECT_EQ(termination.tick(kStart), Action::kNone);
    EXPECT_EQ(termination.deadline(), std::nullopt);
    EXPECT_EQ(termination.request(StopReason::kTimeout, kStart, 5s), Action::kSendTerm);
    EXPECT_EQ(termination.deadline(), kStart + 5s);
    EXPECT_EQ(termination.tick(kStart + 4999ms), Action::kNone);
    EXPECT_FALSE(termination.record().kill_sent);
    EXPECT_EQ(termination.tick(kStart + 5s), Action::kSendKill);
    EXPECT_EQ(termination.deadline(), std::nullopt);
    EXPECT_EQ(termination.tick(kStart + 10s), Action::kNone);
    EXPECT_TRUE(termination.record().term_sent);
    EXPECT_TRUE(termination.record().kill_sent);
}

TEST(Termination, KeepsTheFirstReasonAndTheNearestEnd) {
    Termination termination;
    EXPECT_EQ(termination.request(StopReason::kShutdown, kStart, 10s), Action::kSendTerm);
    EXPECT_EQ(termination.request(StopReason::kLeaseLost, kStart + 1s, 20s), Action::kNone);
    EXPECT_EQ(termination.deadline(), kStart + 10s);
    EXPECT_EQ(termination.request(StopReason::kCancel, kStart + 2s, 3s), Action::kNone);
    EXPECT_EQ(termination.deadline(), kStart + 5s);
    EXPECT_EQ(termination.record().reason, StopReason::kShutdown);
}

TEST(Termination, KillsAtOnceWithoutGrace) {
    Termination fresh;
    EXPECT_EQ(fresh.request(StopReason::kShutdown, kStart, 0s), Action::kSendKill);
    EXPECT_FALSE(fresh.record().term_sent);

    Termination asked;
    EXPECT_EQ(asked.request(StopReason::kShutdown, kStart, 10s), Action::kSendTerm);
    EXPECT_EQ(asked.request(StopReason::kShutdown, kStart + 1s, -1s), Action::kSendKill);
    EXPECT_EQ(asked.request(StopReason::kShutdown, kStart + 1s, 0s), Action::kNone);
}

}  // namespace
}  // namespace sekali::process
