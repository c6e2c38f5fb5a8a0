#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/rows/row_ports.hpp"
#include "conformance/backend.hpp"
#include "conformance/ports_of.hpp"
#include "conformance/redis_locks.hpp"

// What every lock service promises: one holder, a token, a bounded life, a fence that only grows.
namespace sekali::conformance {
namespace {

using namespace std::chrono_literals;
using engine::LockAcquire;
using engine::LockCommand;
using engine::LockPort;
using engine::LockRelease;
using engine::LockRenew;
using engine::LockReply;
using engine::Millis;
using Kind = LockReply::Kind;

/// What passes by itself during a test, where the clock is not the test's.
constexpr Millis kSlack{10'000};

struct LockServiceKind {
    std::string name;
    std::function<std::unique_ptr<LockBackend>()> make;
};
void PrintTo(const LockServiceKind& kind, std::ostream* out) {
    *out << kind.name;
}

class RowLocks final : public LockBackend {
 public:
    explicit RowLocks(std::unique_ptr<Backend> backend)
        : backend_(std::move(backend)), ports_(backend_->executor()) {}
    LockPort& port() override { return ports_; }
    void pump() override { backend_->pump(); }
    void advance(Millis by) override { backend_->advance(by); }

 private:
    std::unique_ptr<Backend> backend_;
    rows::RowPorts ports_;
};

std::vector<LockServiceKind> lock_services() {
    std::vector<LockServiceKind> kinds;
    for (const BackendKind& backend : backends()) {
        kinds.push_back(
            {backend.name, [make = backend.make] { return std::make_unique<RowLocks>(make()); }});
    }
    for (const auto profile : {redis::LockProfile::kRedisson, redis::LockProfile::kString}) {
        kinds.push_back({profile == redis::LockProfile::kRedisson ? "redisson" : "redis_string",
                         [profile] { return make_redis_locks(profile); }});
    }
    return kinds;
}

class LockConformance : public ::testing::TestWithParam<LockServiceKind> {
 protected:
    LockConformance() : backend_(GetParam().make()) {}

    LockReply send(LockCommand command) { return send_batch({std::move(command)}).at(0); }
    std::vector<LockReply> send_batch(std::vector<LockCommand> commands) {
        auto answers = send_all<LockPort, LockReply>(
            backend_->port(), std::move(commands), [this] { backend_->pump(); }, true);
        std::vector<LockReply> replies;
        for (auto& answer : answers)
            replies.push_back(std::move(answer).value());
        return replies;
    }
    LockReply acquire(const std::string& owner, const std::string& name = "l", Millis ttl = 30s) {
        return send(LockAcquire{"default", name, owner, "token of " + owner, ttl});
    }
    LockReply renew(const std::string& owner, Millis ttl = 30s) {
        return send(LockRenew{"default", "l", "token of " + owner, ttl});
    }
    LockReply release(const std::string& owner) {
        return send(LockRelease{"default", "l", "token of " + owner});
    }
    void advance(Millis by) { backend_->advance(by); }

 private:
    std::unique_ptr<LockBackend> backend_;
};

TEST_P(LockConformance, G4_OneHolderAtATime) {
    EXPECT_EQ(acquire("A").kind, Kind::kAcquired);
    const LockReply busy = acquire("B");
    EXPECT_EQ(busy.kind, Kind::kBusy);
    // Who holds it is named by its owner, or by its token where nothing else is kept.
    EXPECT_TRUE(busy.holder == "A" || busy.holder == "token of A") << busy.holder;
    EXPECT_LE(busy.remaining, 30s);
    EXPECT_GT(busy.remaining, 30s - kSlack);
}

TEST_P(LockConformance, G4_OfManyInOneBatchOneGetsIt) {
    std::vector<LockCommand> commands;
    for (int i = 0; i < 20; ++i) {
        const std::string owner = "W" + std::to_string(i);
        commands.emplace_back(LockAcquire{"default", "l", owner, "token of " + owner, 30s});
    }
    int acquired = 0;
    for (const LockReply& reply : send_batch(commands)) {
        acquired += reply.kind == Kind::kAcquired ? 1 : 0;
    }
    EXPECT_EQ(acquired, 1);
}

TEST_P(LockConformance, I08_ARepeatedAcquireWithItsTokenIsTheSameGrant) {
    const LockReply first = acquire("A");
    advance(5s);
    const LockReply again = acquire("A");
    EXPECT_EQ(again.kind, Kind::kAcquired);
    EXPECT_EQ(again.fence, first.fence);
}

TEST_P(LockConformance, G4_TheFenceRisesWithEachGrant) {
    std::uint64_t last = 0;
    for (const char* owner : {"A", "B", "C"}) {
        const LockReply reply = acquire(owner);
        ASSERT_EQ(reply.kind, Kind::kAcquired);
        EXPECT_GT(reply.fence, last);
        last = reply.fence;
        release(owner);
    }
}

TEST_P(LockConformance, B01_AnAbandonedLockEndsByItself) {
    acquire("A", "l", 30s);
    advance(30s - kSlack);
    EXPECT_EQ(acquire("B").kind, Kind::kBusy);
    advance(kSlack);
    EXPECT_EQ(acquire("B").kind, Kind::kAcquired);
}

TEST_P(LockConformance, G4_RenewingKeepsItForAnyTime) {
    const LockReply first = acquire("A");
    for (int i = 0; i < 20; ++i) {
        advance(10s);
        const LockReply renewed = renew("A");
        EXPECT_EQ(renewed.kind, Kind::kAcquired);
        EXPECT_EQ(renewed.fence, first.fence);
        EXPECT_EQ(acquire("B").kind, Kind::kBusy);
    }
}

TEST_P(LockConformance, G4_AStaleHolderIsToldAndTouchesNothing) {
    acquire("A");
    advance(31s);
    const LockReply second = acquire("B");
    ASSERT_EQ(second.kind, Kind::kAcquired);
    EXPECT_EQ(renew("A").kind, Kind::kLost);
    EXPECT_EQ(release("A").kind, Kind::kLost);
    EXPECT_EQ(acquire("C").kind, Kind::kBusy);
    const LockReply kept = renew("B");
    EXPECT_EQ(kept.kind, Kind::kAcquired);
    EXPECT_EQ(kept.fence, second.fence);
}

TEST_P(LockConformance, B04_ARenewalAfterTheReleaseRevivesNothing) {
    acquire("A");
    EXPECT_EQ(release("A").kind, Kind::kReleased);
    EXPECT_EQ(renew("A").kind, Kind::kLost);
    EXPECT_EQ(acquire("B").kind, Kind::kAcquired);
    EXPECT_EQ(release("A").kind, Kind::kLost);
}

TEST_P(LockConformance, G4_ALockNobodyKnowsIsLost) {
    EXPECT_EQ(renew("A").kind, Kind::kLost);
    EXPECT_EQ(release("A").kind, Kind::kLost);
}

TEST_P(LockConformance, L01_NamesAndNamespacesAreKeptApart) {
    std::set<std::string> busy;
    for (const char* name : {"a:b", "a%3Ab", "A:b", "a:b ", "a", "\u00e9", "e\u0301"}) {
        EXPECT_EQ(acquire("A", name).kind, Kind::kAcquired) << name;
    }
    EXPECT_EQ(send(LockAcquire{"tenant", "a", "B", "token of B", 30s}).kind, Kind::kAcquired);
    EXPECT_EQ(acquire("B", "a").kind, Kind::kBusy);
}

INSTANTIATE_TEST_SUITE_P(On, LockConformance, ::testing::ValuesIn(lock_services()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace sekali::conformance
