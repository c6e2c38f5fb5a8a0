#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sekali/testing.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::Context;
using sekali::Outcome;
using sekali::testing::Harness;

struct Receipt {
    std::string id;
    static constexpr auto kFields = sekali::fields(sekali::field("id", &Receipt::id));
};
struct SendReceipt {
    std::string order_id;
    static constexpr std::string_view kKind = "receipt.send";
    static constexpr auto kFields =
        sekali::fields(sekali::field("order_id", &SendReceipt::order_id));
};
struct ChargePayment {
    std::string order_id;
    std::int64_t cents = 0;
    static constexpr std::string_view kKind = "payment.charge";
    static constexpr auto kFields =
        sekali::fields(sekali::field("order_id", &ChargePayment::order_id),
                       sekali::field("cents", &ChargePayment::cents));
    sekali::EnqueueOptions options() const {
        return {.key = sekali::key("payment", order_id), .lock = sekali::key("order", order_id)};
    }
};

/// Charges each step key once, however often it is asked.
struct Gateway {
    std::set<std::string> charged;
    int calls = 0;

    Receipt charge(const std::string& order, std::int64_t, const std::string& key) {
        ++calls;
        charged.insert(key);
        return {"receipt-" + order};
    }
    [[nodiscard]] std::optional<Receipt> find(const std::string& order,
                                              const std::string& key) const {
        if (!charged.contains(key)) return std::nullopt;
        return Receipt{"receipt-" + order};
    }
};

/// The handler of the contract's example.
class Payments : public testing::Test {
 protected:
    Gateway gateway;
    std::function<Outcome(Context&, const ChargePayment&)> before;
    Harness harness{[this](sekali::Worker& worker) {
        worker.handle<ChargePayment>(
            [this, &worker](Context& ctx, const ChargePayment& job) {
                const Receipt receipt = ctx.step(
                    "charge",
                    [&](const sekali::Step& s) {
                        return gateway.charge(job.order_id, job.cents, s.key());
                    },
                    [&](const sekali::Step& s) { return gateway.find(job.order_id, s.key()); });
                return ctx.commit([&](sekali::Transaction& tx) {
                    tx.execute("insert into payments values ($1, $2, $3)", job.order_id, job.cents,
                               receipt.id);
                    worker.client().enqueue(tx, SendReceipt{job.order_id}).value();
                });
            },
            {.timeout = 30s,
             .effects = sekali::Effects::kSteps,
             .on_unknown = sekali::OnUnknown::kProbe});
        worker.handle<SendReceipt>(
            [](Context&, const SendReceipt&) { return std::string("sent"); });
    }};
};

TEST_F(Payments, PerformRunsOneJobAndLeavesWhatItEnqueued) {
    const auto job = harness.perform(ChargePayment{"1001", 500});
    EXPECT_EQ(job.state, "succeeded");
    EXPECT_EQ(job.key, "payment:1001");
    ASSERT_EQ(harness.enqueued<SendReceipt>().size(), 1U);
    EXPECT_EQ(harness.enqueued<SendReceipt>()[0].order_id, "1001");
    EXPECT_TRUE(harness.succeeded("receipt.send").empty());
    EXPECT_EQ(harness.drain(), 1U);
    ASSERT_EQ(harness.succeeded("receipt.send").size(), 1U);
    EXPECT_EQ(harness.succeeded("receipt.send")[0].result, R"("sent")");
}

TEST_F(Payments, StatementsOfACommitAreKept) {
    harness.perform(ChargePayment{"1001", 500});
    ASSERT_EQ(harness.statements().size(), 1U);
    const std::vector<sekali::SqlValue> arguments{std::string("1001"), std::int64_t{500},
                                                  std::string("receipt-1001")};
    EXPECT_EQ(harness.statements()[0].arguments, arguments);
}

TEST_F(Payments, EveryCrashChargesOnceAndWritesOnce) {
    const char* points[] = {"claim.before",      "claim.after",       "lock.before",
                            "lock.after",        "begin.before",      "begin.after",
                            "handler.before",    "handler.after",     "step.intent.after",
                            "step.effect.after", "step.result.after", "commit.before",
                            "commit.inside",     "commit.after",      "ack.before",
                            "ack.after",         "unlock.before",     "unlock.after"};
    int order = 0;
    for (const char* point : points) {
        SCOPED_TRACE(point);
        const std::string id = std::to_string(++order);
        const auto writes = harness.statements().size();
        const auto crashes = harness.crashes();
        harness.crash_at(point);
        const auto job = harness.client().enqueue(ChargePayment{id, 1}).value();
        harness.drain();
        harness.advance(1h);
        harness.drain();
        EXPECT_EQ(harness.crashes(), crashes + 1);
        EXPECT_EQ(harness.client().show(job.id).value().state, "succeeded");
        EXPECT_EQ(gateway.charged.size(), static_cast<std::size_t>(order));
        EXPECT_EQ(gateway.calls, order);
        EXPECT_EQ(harness.statements().size(), writes + 1);
    }
}

struct Flaky {
    static constexpr std::string_view kKind = "flaky";
    static constexpr auto kFields = sekali::fields<Flaky>();
};

TEST(Harness, RetriesWaitForTheClock) {
    int runs = 0;
    Harness harness([&](sekali::Worker& worker) {
        worker.handle<Flaky>([&](Context& ctx, const Flaky&) -> Outcome {
            ++runs;
            if (ctx.attempt() < 2) return sekali::retry("not yet", 60s);
            return sekali::success();
        });
    });
    const auto job = harness.perform(Flaky{});
    EXPECT_EQ(job.state, "scheduled");
    EXPECT_EQ(harness.drain(), 0U);
    harness.advance(59s);
    EXPECT_EQ(harness.drain(), 0U);
    harness.advance(2s);
    EXPECT_EQ(harness.drain(), 1U);
    EXPECT_EQ(harness.succeeded("flaky").size(), 1U);
    EXPECT_EQ(runs, 2);
}

TEST(Harness, PoisonEndsAtTheCrashLimit) {
    Harness harness([](sekali::Worker& worker) {
        worker.handle<Flaky>([](Context&, const Flaky&) {}, {.max_crashes = 2});
    });
    const auto job = harness.client().enqueue(Flaky{}).value();
    harness.crash_at("handler.before");
    harness.crash_at("handler.before");
    harness.drain();
    EXPECT_EQ(harness.crashes(), 2U);
    EXPECT_EQ(harness.client().show(job.id).value().state, "dead");
    EXPECT_EQ(harness.client().show(job.id).value().reason, "worker_crash");
}

TEST(Harness, TimeInsideAHandlerReachesItsTimeout) {
    Harness* self = nullptr;
    Harness harness([&](sekali::Worker& worker) {
        worker.handle<Flaky>(
            [&](Context& ctx, const Flaky&) {
                self->advance(29s);
                EXPECT_FALSE(ctx.stop_token().stop_requested());
                self->advance(2s);
                EXPECT_TRUE(ctx.stop_token().stop_requested());
                throw std::runtime_error("stopped");
            },
            {.timeout = 30s});
    });
    self = &harness;
    const auto job = harness.perform(Flaky{});
    EXPECT_EQ(job.state, "scheduled");
    EXPECT_EQ(job.attempts, 1U);
}

TEST(Harness, RefusesWhatCannotBe) {
    const auto nothing = [](sekali::Worker&) {};
    Harness harness(nothing);
    EXPECT_THROW(harness.crash_at("nowhere"), sekali::Failure);
    EXPECT_EQ(harness.drain(), 0U);
    EXPECT_THROW(Harness(nothing, {.lease = 1ms}), sekali::Failure);
}

}  // namespace
