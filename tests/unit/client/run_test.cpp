#include "client/run.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace {

using namespace sekali;
using engine::Settled;
using engine::StepIntentReply;
using Kind = engine::Outcome::Kind;

/// Answers what the test has put in, in order.
class ScriptedHost final : public internal::RunHost {
 public:
    Settled commit(engine::RunId, Effects, std::string result) override {
        committed.push_back(std::move(result));
        return next_settled;
    }
    Result<engine::StoreReply> ask_store(engine::StoreCommand command) override {
        asked.push_back(std::move(command));
        if (replies.empty()) return engine::StoreReply(engine::Done{});
        auto reply = std::move(replies.front());
        replies.pop_front();
        return reply;
    }
    Result<engine::LockReply> ask_lock(engine::LockCommand command) override {
        took_over.push_back(std::get<engine::LockAcquire>(command).may_take_over);
        return lock_reply;
    }
    [[nodiscard]] bool may_take_over() const override { return trusted; }
    void lock_taken(engine::event::LockTaken taken) override { locks.push_back(taken.name); }
    void pause(engine::Millis time, const std::stop_token&) override { clock += time; }
    [[nodiscard]] engine::LocalTime now() const override { return clock; }
    bool reach(std::size_t) override { return false; }
    void log(const internal::Run&, LogSeverity, std::string_view message) override {
        lines.emplace_back(message);
    }

    void answer(StepIntentReply::Kind kind, std::string result = {}) {
        replies.emplace_back(engine::StoreReply(StepIntentReply{kind, std::move(result)}));
    }

    Settled next_settled;
    std::deque<Result<engine::StoreReply>> replies;
    engine::LockReply lock_reply;
    std::vector<engine::StoreCommand> asked;
    std::vector<std::string> committed;
    std::vector<std::string> locks;
    std::vector<bool> took_over;  ///< Whether each request for a lock might do so.
    bool trusted = false;         ///< The store has answered for a whole lease.
    std::vector<std::string> lines;
    engine::LocalTime clock{};
};

class RunTest : public testing::Test {
 protected:
    RunTest() {
        engine::action::StartHandler start;
        start.ref.record = {"default", "kind", "key"};
        start.started.attempt = 3;
        start.started.epoch = 9;
        start.ref.epoch = 9;
        run.emplace(std::move(start), engine::Millis{30'000}, host);
    }
    engine::Outcome perform(const std::function<Outcome(Context&)>& handler) {
        return run->perform(handler);
    }

    ScriptedHost host;
    std::optional<internal::Run> run;
};

TEST_F(RunTest, ALostHandlerIsLeftAtEveryLaterCallAndItsValueIsDiscarded) {
    host.answer(StepIntentReply::Kind::kSuperseded);
    int past = 0;
    int left = 0;
    const auto outcome = perform([&](Context& ctx) {
        const auto attempt = [&](auto&& call) {
            try {
                call();
                ++past;
            } catch (const std::exception&) {
                ++past;
            } catch (...) {
                ++left;
            }
        };
        attempt([&] { ctx.step("one", [](const Step&) {}); });
        attempt([&] { ctx.step("two", [](const Step&) {}); });
        attempt([&] { ctx.lock("name"); });
        attempt([&] { static_cast<void>(ctx.commit([](Transaction&) {})); });
        return success(std::string("ignored"));
    });
    EXPECT_EQ(past, 0);
    EXPECT_EQ(left, 4);
    EXPECT_EQ(outcome.kind, Kind::kInterrupted);
    EXPECT_EQ(outcome.reason, "superseded");
    EXPECT_TRUE(outcome.result.empty());
    EXPECT_TRUE(host.committed.empty());
}

TEST_F(RunTest, ALostLeaseLeavesTheNextCall) {
    const auto outcome = perform([&](Context& ctx) {
        run->ask_stop(engine::StopReason::kLockLost);
        EXPECT_TRUE(ctx.stop_token().stop_requested());
        ctx.step("one", [](const Step&) { ADD_FAILURE(); });
        return success();
    });
    EXPECT_EQ(outcome.kind, Kind::kInterrupted);
    EXPECT_EQ(outcome.reason, "lock_lost");
    EXPECT_TRUE(host.asked.empty());
}

TEST_F(RunTest, AShutdownOnlyAsks) {
    const auto outcome = perform([&](Context& ctx) {
        run->ask_stop(engine::StopReason::kShutdown);
        host.answer(StepIntentReply::Kind::kRun);
        return success(ctx.step("one", [](const Step&) { return 5; }));
    });
    EXPECT_EQ(outcome.kind, Kind::kSuccess);
    EXPECT_EQ(outcome.result, "5");
}

TEST_F(RunTest, AnExceptionAfterAStopIsThatStop) {
    for (const auto& [reason, kind] :
         {std::pair{engine::StopReason::kTimeout, Kind::kTimeout},
          std::pair{engine::StopReason::kCancel, Kind::kInterrupted}}) {
        engine::action::StartHandler start;
        run.emplace(std::move(start), engine::Millis{30'000}, host);
        const auto outcome = perform([&](Context&) -> Outcome {
            run->ask_stop(reason);
            throw std::runtime_error("gave up");
        });
        EXPECT_EQ(outcome.kind, kind);
        EXPECT_EQ(outcome.error, "gave up");
    }
}

TEST_F(RunTest, OnlyAnExplicitRetrySaysThatNothingWasApplied) {
    EXPECT_TRUE(perform([](Context&) { return retry("later"); }).nothing_applied);
    EXPECT_TRUE(perform([](Context&) -> Outcome { throw RetryableError("x"); }).nothing_applied);
    EXPECT_FALSE(
        perform([](Context&) -> Outcome { throw std::runtime_error("x"); }).nothing_applied);
    EXPECT_FALSE(perform([](Context&) -> Outcome { throw 1; }).nothing_applied);
}

TEST_F(RunTest, AStepKeepsItsCallOverRepeatedRequests) {
    Error silent;
    silent.retryable = true;
    host.replies.emplace_back(silent);
    host.answer(StepIntentReply::Kind::kRun);
    perform([](Context& ctx) {
        ctx.step("one", [](const Step&) {});
        return success();
    });
    ASSERT_EQ(host.asked.size(), 3U);
    const auto& first = std::get<engine::StepIntent>(host.asked[0]);
    const auto& second = std::get<engine::StepIntent>(host.asked[1]);
    EXPECT_EQ(first.call, second.call);
    EXPECT_FALSE(first.call.empty());
    EXPECT_EQ(std::get<engine::StepResult>(host.asked[2]).result, "null");
}

TEST_F(RunTest, ARecordedStepIsNotRunAgain) {
    host.answer(StepIntentReply::Kind::kDone, "41");
    const auto outcome = perform([](Context& ctx) {
        const int value = ctx.step("one", [](const Step&) -> int {
            ADD_FAILURE();
            return 0;
        });
        return success(value + 1);
    });
    EXPECT_EQ(outcome.result, "42");
}

TEST_F(RunTest, AProbeThatKnowsAnswersForTheStep) {
    host.answer(StepIntentReply::Kind::kAsk);
    const auto outcome = perform([](Context& ctx) {
        return success(ctx.step(
            "one",
            [](const Step&) -> int {
                ADD_FAILURE();
                return 0;
            },
            [](const Step&) -> std::optional<int> { return 7; }));
    });
    EXPECT_EQ(outcome.result, "7");
    EXPECT_EQ(std::get<engine::StepResult>(host.asked.back()).result, "7");
}

TEST_F(RunTest, AProbeThatSaysNoLetsTheStepRun) {
    host.answer(StepIntentReply::Kind::kAsk);
    host.answer(StepIntentReply::Kind::kRun);
    perform([](Context& ctx) {
        ctx.step(
            "one", [](const Step&) {}, [](const Step&) { return false; });
        return success();
    });
    EXPECT_TRUE(std::get<engine::StepIntent>(host.asked[1]).probe_said_no);
}

TEST_F(RunTest, AProbeThatThrowsHolds) {
    host.answer(StepIntentReply::Kind::kAsk);
    const auto outcome = perform([](Context& ctx) {
        ctx.step(
            "one", [](const Step&) {},
            [](const Step&) -> bool { throw std::runtime_error("gateway is down"); });
        return success();
    });
    EXPECT_EQ(outcome.kind, Kind::kHold);
    EXPECT_EQ(host.lines,
              std::vector<std::string>{"the probe of step one failed: gateway is down"});
}

TEST_F(RunTest, ABusyLockSnoozesAfterItsWait) {
    host.lock_reply.kind = engine::LockReply::Kind::kBusy;
    const auto outcome = perform([](Context& ctx) {
        ctx.lock("account", std::chrono::milliseconds{350});
        return success();
    });
    EXPECT_EQ(outcome.kind, Kind::kSnooze);
    EXPECT_EQ(outcome.delay, std::chrono::seconds{1});
    EXPECT_EQ(host.clock.time_since_epoch().count(), 350);
    EXPECT_TRUE(host.locks.empty());
}

TEST_F(RunTest, AGrantedLockIsHandedToTheWorker) {
    host.lock_reply.kind = engine::LockReply::Kind::kAcquired;
    host.lock_reply.fence = 12;
    perform([](Context& ctx) {
        EXPECT_EQ(ctx.lock("account").fence, 12U);
        EXPECT_THROW(ctx.lock(""), Failure);
        return success();
    });
    EXPECT_EQ(host.locks, std::vector<std::string>{"account"});
}

TEST_F(RunTest, ALapsedLockIsTakenOnlyWhereTheStoreHasAnsweredLongEnough) {
    host.lock_reply.kind = engine::LockReply::Kind::kAcquired;
    perform([this](Context& ctx) {
        ctx.lock("one");
        host.trusted = true;
        ctx.lock("two");
        return success();
    });
    EXPECT_EQ(host.took_over, (std::vector<bool>{false, true}));
}

TEST_F(RunTest, AFencedCommitLeavesTheHandler) {
    host.next_settled.kind = Settled::Kind::kLockFenced;
    const auto outcome = perform([](Context& ctx) {
        const Outcome done = ctx.commit([](Transaction&) {});
        ADD_FAILURE();
        return done;
    });
    EXPECT_EQ(outcome.reason, "lock_fenced");
}

}  // namespace
