#include "conformance/scene.hpp"

// Unique dispatch (G9). D02, D05 and D07 are failure scenarios, I23 to I33 interleavings.
namespace sekali::conformance {
namespace {

using engine::AdminReply;
using engine::EventKind;
using engine::Resolution;
using Kind = EnqueueReply::Kind;

class UniqueConformance : public Scene {
 protected:
    /// The live job that holds the slot of "u", or nothing.
    std::string holder() {
        return tx([](Tables& tables) {
            const auto row = tables.unique_holder("default", "charge", "u");
            return row ? row->job.id : std::string{};
        });
    }
    Spec unique(const std::string& id) { return {.id = id, .unique = "u"}; }
    Spec replacing(const std::string& id) {
        return {.id = id, .unique = "u", .on_duplicate = OnDuplicate::kReplace};
    }
};

TEST_P(UniqueConformance, G9_ARefusedEnqueueNamesTheWinner) {
    put(unique("j1"));
    const EnqueueReply reply = enqueue(unique("j2"));
    EXPECT_EQ(reply.kind, Kind::kDuplicate);
    ASSERT_TRUE(reply.winner);
    EXPECT_EQ(reply.winner->job.id, "j1");
    EXPECT_FALSE(find_job("j2"));
    EXPECT_TRUE(has_event("j2", EventKind::kUniqueRefused));
}

TEST_P(UniqueConformance, G9_SlotsAreScopedByKindAndNamespace) {
    put(unique("j1"));
    put({.id = "j2", .unique = "u", .kind = "mail"});
    put({.id = "j3", .unique = "u", .ns = "tenant"});
    EXPECT_EQ(enqueue(unique("j4")).kind, Kind::kDuplicate);
}

TEST_P(UniqueConformance, I32_ARepeatedEnqueueWithItsOwnIdIsEnqueued) {
    put(unique("j1"));
    EXPECT_EQ(enqueue(unique("j1")).kind, Kind::kEnqueued);
    succeed(start("A", "j1"));
    EXPECT_EQ(enqueue(unique("j1")).kind, Kind::kEnqueued);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
    EXPECT_TRUE(claim("A").empty());
}

TEST_P(UniqueConformance, G1_ADifferentJobOfTheSameIdIsRefused) {
    put({.id = "j1", .payload = "1"});
    const EnqueueReply reply = enqueue({.id = "j1", .payload = "2"});
    EXPECT_EQ(reply.kind, Kind::kIdTaken);
    EXPECT_EQ(tx([](Tables& tables) { return tables.payload("j1"); }), "1");
}

TEST_P(UniqueConformance, D02_ARolledBackWinnerHoldsNoSlot) {
    std::promise<Result<void>> rolled_back;
    backend().executor().submit(
        {{.work =
              [](Tables& tables) {
                  engine::EnqueueRequest request;
                  request.job.id = request.job.key = "j1";
                  request.job.kind = "charge";
                  request.job.unique_key = "u";
                  engine::enqueue(tables, request);
                  throw Failure({.code = ErrorCode::kRefused, .message = "rolled back"});
              },
          .done = [&](const Result<void>& result) { rolled_back.set_value(result); }}});
    backend().pump();
    EXPECT_FALSE(rolled_back.get_future().get().ok());
    put(unique("j2"));
    EXPECT_EQ(holder(), "j2");
}

TEST_P(UniqueConformance, D06_OneDuplicateFailsNoBatch) {
    put(unique("j0"));
    const auto refused = tx([](Tables& tables) {
        std::vector<std::string> ids;
        for (int i = 1; i <= 10; ++i) {
            engine::EnqueueRequest request;
            request.job.id = request.job.key = "j" + std::to_string(i);
            request.job.kind = "charge";
            if (i % 4 == 0) request.job.unique_key = "u";
            if (engine::enqueue(tables, request).kind == Kind::kDuplicate) {
                ids.push_back(request.job.id);
            }
        }
        return ids;
    });
    EXPECT_EQ(refused, (std::vector<std::string>{"j4", "j8"}));
    EXPECT_TRUE(find_job("j10"));
}

// ---- every way out -----------------------------------------------------------------------------

TEST_P(UniqueConformance, G9_SuccessFreesTheSlot) {
    put(unique("j1"));
    succeed(start("A", "j1"));
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_DeadFreesTheSlot) {
    put(unique("j1"));
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_ACrashLoopFreesTheSlot) {
    policy.max_crashes = 1;
    put(unique("j1"));
    start("A", "j1");
    crash("A");
    ASSERT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_CancelFreesTheSlot) {
    put(unique("j1"));
    cancel("j1");
    EXPECT_EQ(holder(), "");
    put(unique("j2"));
    const Attempt run = start("A", "j2");
    cancel("j2");
    EXPECT_EQ(holder(), "j2") << "it still runs";
    settle(run, ended(Outcome::Kind::kInterrupted, "cancelled"));
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_ADuplicateOfTheKeyFreesTheSlot) {
    put({.id = "j1", .key = "k"});
    succeed(start("A", "j1"));
    put({.id = "j2", .key = "k", .unique = "u"});
    begin(claim_job("A", "j2"));
    ASSERT_EQ(state("j2"), JobState::kDuplicate);
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_SkipOfABusyLockFreesTheSlot) {
    policy.on_busy = OnBusy::kSkip;
    acquire("l", "shell");
    put({.id = "j1", .lock = "l", .unique = "u"});
    begin(claim_job("A", "j1"));
    ASSERT_EQ(state("j1"), JobState::kCancelled);
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, G9_AResolvedJobFreesTheSlotAndAHeldOneKeepsIt) {
    policy.on_unknown = OnUnknown::kHold;
    put(unique("j1"));
    settle(start("A", "j1"), failure());
    ASSERT_EQ(state("j1"), JobState::kHeld);
    advance(48h);
    EXPECT_EQ(enqueue(unique("j2")).kind, Kind::kDuplicate) << "held is live";
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(holder(), "");
}

TEST_P(UniqueConformance, I32_ASlotLivesAsLongAsItsJob) {
    pause("default");
    put(unique("j1"));
    advance(24h * 30);
    recover();
    EXPECT_EQ(enqueue(unique("j2")).kind, Kind::kDuplicate);
}

TEST_P(UniqueConformance, G9_AWaitAndARetryKeepTheSlot) {
    put({.id = "j1", .lock = "l", .unique = "u"});
    acquire("l", "shell", 1h);
    begin(claim_job("A", "j1"));
    ASSERT_EQ(state("j1"), JobState::kWaiting);
    EXPECT_EQ(holder(), "j1");
    cancel("j1");
    put(unique("j2"));
    settle(start("A", "j2"), failure());
    ASSERT_EQ(state("j2"), JobState::kScheduled);
    EXPECT_EQ(holder(), "j2");
}

TEST_P(UniqueConformance, D07_OnlyItsOwnJobFreesASlot) {
    put(unique("j1"));
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    put(unique("j2"));
    tx([](Tables& tables) { return drop_dead(tables, "j1", "operator"); });
    EXPECT_EQ(holder(), "j2");
    EXPECT_EQ(enqueue(unique("j3")).kind, Kind::kDuplicate);
}

TEST_P(UniqueConformance, D08_APersonCanFreeASlot) {
    put(unique("j1"));
    const auto reply = tx([](Tables& tables) { return free_unique(tables, "j1", "operator"); });
    EXPECT_EQ(reply.kind, AdminReply::Kind::kDone);
    put(unique("j2"));
    succeed(start("A", "j1"));
    EXPECT_EQ(holder(), "j2");
}

// ---- until start -------------------------------------------------------------------------------

TEST_P(UniqueConformance, G9_UntilStartPromisesOneUnstartedJob) {
    Spec first = unique("j1");
    first.unique_until = UniqueUntil::kStart;
    put(first);
    EXPECT_EQ(enqueue(unique("j2")).kind, Kind::kDuplicate);
    const Attempt run = start("A", "j1");
    EXPECT_EQ(holder(), "");
    put(unique("j3"));
    EXPECT_EQ(holder(), "j3");
    settle(run, failure());
    EXPECT_EQ(state("j1"), JobState::kScheduled);
    EXPECT_EQ(holder(), "j3") << "a started job takes no slot back";
}

TEST_P(UniqueConformance, G9_UntilStartHoldsWhileTheJobOnlyWaits) {
    acquire("l", "shell");
    Spec first = unique("j1");
    first.unique_until = UniqueUntil::kStart;
    first.lock = "l";
    put(first);
    begin(claim_job("A", "j1"));
    EXPECT_EQ(holder(), "j1");
}

TEST_P(UniqueConformance, G9_UntilStartWithoutRecord) {
    policy.record = engine::RecordMode::kNone;
    Spec first = unique("j1");
    first.unique_until = UniqueUntil::kStart;
    put(first);
    start("A", "j1");
    EXPECT_EQ(holder(), "");
}

// ---- replace -----------------------------------------------------------------------------------

TEST_P(UniqueConformance, I33_ReplaceCancelsAWaitingHolderAndIsANewJob) {
    put(unique("j1"));
    Spec second = replacing("j2");
    second.payload = "2";
    const EnqueueReply reply = enqueue(second);
    EXPECT_EQ(reply.kind, Kind::kReplaced);
    ASSERT_TRUE(reply.winner);
    EXPECT_EQ(reply.winner->job.id, "j1");
    EXPECT_EQ(state("j1"), JobState::kCancelled);
    EXPECT_EQ(job("j1").reason, "replaced");
    EXPECT_TRUE(has_event("j1", EventKind::kReplaced));
    EXPECT_EQ(holder(), "j2");
    succeed(start("A", "j2"));
}

TEST_P(UniqueConformance, I33_ReplaceOfARetryStartsWithTheNewPayload) {
    put(unique("j1"));
    settle(start("A", "j1"), failure(/*nothing_applied=*/true));
    Spec second = replacing("j2");
    second.payload = "2";
    EXPECT_EQ(enqueue(second).kind, Kind::kReplaced);
    EXPECT_EQ(state("j1"), JobState::kCancelled);
    EXPECT_EQ(start("A", "j2").delivery.row.job.payload, "2");
}

TEST_P(UniqueConformance, D05_ReplaceLeavesARunningJobAlone) {
    put(unique("j1"));
    const Attempt run = start("A", "j1");
    EXPECT_EQ(enqueue(replacing("j2")).kind, Kind::kReplaced);
    EXPECT_EQ(state("j1"), JobState::kRunning);
    EXPECT_TRUE(renew(run).kept);
    EXPECT_FALSE(renew(run).cancel);
    EXPECT_TRUE(claim("B").empty()) << "the follow-up waits for its end";
    recover();
    EXPECT_TRUE(claim("B").empty());
    EXPECT_EQ(succeed(run).kind, Settled::Kind::kApplied);
    EXPECT_EQ(claim_ids("B"), (std::vector<std::string>{"j2"}));
}

TEST_P(UniqueConformance, G9_BehindARunningJobExactlyOneFollowUpRemainsWithTheNewestPayload) {
    put(unique("j1"));
    const Attempt run = start("A", "j1");
    for (int i = 2; i <= 5; ++i) {
        Spec next = replacing("j" + std::to_string(i));
        next.payload = std::to_string(i);
        EXPECT_EQ(enqueue(next).kind, Kind::kReplaced);
        EXPECT_TRUE(claim("B").empty()) << "it waits for the running one";
    }
    for (const char* id : {"j2", "j3", "j4"})
        EXPECT_EQ(state(id), JobState::kCancelled);
    succeed(run);
    const std::vector<Delivery> next = claim("B");
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(next[0].row.job.payload, "5");
}

TEST_P(UniqueConformance, G9_AFollowUpOfAKindWithoutRecordWaitsToo) {
    policy.record = engine::RecordMode::kNone;
    put(unique("j1"));
    const Attempt run = start("A", "j1");
    enqueue(replacing("j2"));
    recover();
    EXPECT_TRUE(claim("B").empty());
    succeed(run);
    EXPECT_EQ(claim_ids("B"), (std::vector<std::string>{"j2"}));
}

TEST_P(UniqueConformance, G9_AFollowUpRunsOnceTheRunningJobIsCancelledOrDead) {
    put(unique("j1"));
    const Attempt run = start("A", "j1");
    enqueue(replacing("j2"));
    settle(run, ended(Outcome::Kind::kPermanent));
    EXPECT_EQ(claim_ids("B"), (std::vector<std::string>{"j2"}));
}

TEST_P(UniqueConformance, G6_ReplaceOfAnUnknownHolderLeavesItHeldAndWaitsBehindIt) {
    policy.on_unknown = OnUnknown::kHold;
    put(unique("j1"));
    start("A", "j1");
    lapse();
    ASSERT_EQ(state("j1"), JobState::kReady);
    EXPECT_EQ(enqueue(replacing("j2")).kind, Kind::kReplaced);
    EXPECT_EQ(state("j1"), JobState::kHeld);
    EXPECT_EQ(holder(), "j2");
    recover();
    EXPECT_TRUE(claim("B").empty());
    resolve("j1", Resolution::Kind::kDead);
    EXPECT_EQ(claim_ids("B"), (std::vector<std::string>{"j2"}));
}

// ---- replay ------------------------------------------------------------------------------------

TEST_P(UniqueConformance, I32_AReplayTakesTheSlotAgain) {
    put(unique("j1"));
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    EXPECT_EQ(retry_dead("j1").kind, AdminReply::Kind::kDone);
    EXPECT_EQ(holder(), "j1");
    EXPECT_EQ(enqueue(unique("j2")).kind, Kind::kDuplicate);
}

TEST_P(UniqueConformance, I32_AReplayIsRefusedNamingTheWinner) {
    put(unique("j1"));
    settle(start("A", "j1"), ended(Outcome::Kind::kPermanent));
    put(unique("j2"));
    const AdminReply reply = retry_dead("j1");
    EXPECT_EQ(reply.kind, AdminReply::Kind::kSlotTaken);
    ASSERT_TRUE(reply.winner);
    EXPECT_EQ(reply.winner->job.id, "j2");
    EXPECT_EQ(state("j1"), JobState::kDead);
    EXPECT_EQ(holder(), "j2");
}

SEKALI_CONFORMS(UniqueConformance);

}  // namespace
}  // namespace sekali::conformance
