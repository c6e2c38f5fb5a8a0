#include "conformance/scene.hpp"

// Steps: recorded before and after, never run again once answered (G5).
namespace sekali::conformance {
namespace {

using Kind = StepIntentReply::Kind;

class StepsConformance : public Scene {
 protected:
    engine::StepIntent intent(const Attempt& run, const std::string& name,
                              const std::string& call_name) {
        engine::StepIntent request;
        request.run = run.ref();
        request.name = name;
        request.call = call_name;
        return request;
    }
    StepIntentReply send(const engine::StepIntent& request) {
        return tx([request](Tables& tables) { return step_intent(tables, request); });
    }
};

TEST_P(StepsConformance, G5_AnIntentIsDurableBeforeTheStepRuns) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(step(run, "charge").kind, Kind::kRun);
    ASSERT_EQ(steps("k").size(), 1U);
    EXPECT_EQ(steps("k")[0].name, "charge");
    EXPECT_FALSE(steps("k")[0].done);
    EXPECT_EQ(steps("k")[0].epoch, 1U);
    step_done(run, "charge", "receipt");
    EXPECT_TRUE(steps("k")[0].done);
    EXPECT_EQ(steps("k")[0].result, "receipt");
}

TEST_P(StepsConformance, G5_ARecordedStepNeverRunsAgain) {
    put({.id = "j1", .key = "k"});
    Attempt run = start("A", "j1");
    step(run, "charge");
    step_done(run, "charge", "receipt");
    settle(run, failure());
    advance(1h);
    run = start("B", "j1");
    ASSERT_EQ(run.started.steps.size(), 1U);
    EXPECT_EQ(run.started.steps[0].result, "receipt");
    const StepIntentReply reply = step(run, "charge");
    EXPECT_EQ(reply.kind, Kind::kDone);
    EXPECT_EQ(reply.result, "receipt");
}

TEST_P(StepsConformance, G5_StepsSurviveATakeover) {
    put({.id = "j1", .key = "k"});
    const Attempt lost = start("A", "j1");
    step(lost, "charge");
    step_done(lost, "charge", "receipt");
    step(lost, "mail");
    crash("A");
    const Attempt run = start("B", "j1");
    EXPECT_EQ(step(run, "charge").kind, Kind::kDone);
    EXPECT_EQ(step(run, "mail").kind, Kind::kRun) << "under rerun an open step runs again";
}

TEST_P(StepsConformance, G5_StepsBelongToTheKeyAndSurviveTheirJob) {
    policy.effects = Effects::kSteps;
    put({.id = "j1", .key = "k"});
    const Attempt first = start("A", "j1");
    step(first, "charge");
    step_done(first, "charge", "receipt");
    settle(first, ended(Outcome::Kind::kPermanent));
    put({.id = "j2", .key = "k"});
    EXPECT_EQ(step(start("A", "j2"), "charge").kind, Kind::kDone);
}

TEST_P(StepsConformance, G5_StepsOfAnotherPayloadSayNothing) {
    policy.effects = Effects::kSteps;
    put({.id = "j1", .key = "k", .payload = "1"});
    const Attempt first = start("A", "j1");
    step(first, "charge");
    step_done(first, "charge", "receipt");
    settle(first, ended(Outcome::Kind::kPermanent));
    put({.id = "j2", .key = "k", .payload = "2"});
    EXPECT_EQ(step(start("A", "j2"), "charge").kind, Kind::kRun);
}

TEST_P(StepsConformance, I29_TheSameNameTwiceInOneRunIsAnError) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(send(intent(run, "charge", "call 1")).kind, Kind::kRun);
    EXPECT_EQ(send(intent(run, "charge", "call 2")).kind, Kind::kUsedTwice);
    step_done(run, "charge", "receipt");
    EXPECT_EQ(send(intent(run, "charge", "call 3")).kind, Kind::kUsedTwice);
}

TEST_P(StepsConformance, I29_TheSameNameTwiceInALaterRunIsAnErrorToo) {
    put({.id = "j1", .key = "k"});
    Attempt run = start("A", "j1");
    send(intent(run, "charge", "call 1"));
    step_done(run, "charge", "receipt");
    settle(run, failure());
    advance(1h);
    run = start("A", "j1");
    EXPECT_EQ(send(intent(run, "charge", "call 1")).kind, Kind::kDone);
    EXPECT_EQ(send(intent(run, "charge", "call 2")).kind, Kind::kUsedTwice);
}

TEST_P(StepsConformance, I08_ARepeatedIntentGetsTheSameAnswer) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    EXPECT_EQ(send(intent(run, "charge", "call 1")).kind, Kind::kRun);
    EXPECT_EQ(send(intent(run, "charge", "call 1")).kind, Kind::kRun);
    step_done(run, "charge", "receipt");
    step_done(run, "charge", "another receipt");
    EXPECT_EQ(steps("k")[0].result, "receipt");
    EXPECT_EQ(steps("k").size(), 1U);
}

TEST_P(StepsConformance, G5_StepsKeepTheirOrder) {
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    for (const char* name : {"zeta", "alpha", "mid"}) {
        step(run, name);
        step_done(run, name, name);
    }
    std::vector<std::string> names;
    for (const engine::StepRow& row : steps("k"))
        names.push_back(row.name);
    EXPECT_EQ(names, (std::vector<std::string>{"zeta", "alpha", "mid"}));
}

TEST_P(StepsConformance, G6_AnOpenStepUnderHoldIsNotRunAgain) {
    policy.on_unknown = OnUnknown::kHold;
    put({.id = "j1", .key = "k"});
    const Attempt run = start("A", "j1");
    step(run, "charge");
    crash("A");
    EXPECT_NE(as<engine::HeldBack>(begin(claim_job("B", "j1"))), nullptr);
    resolve("j1", engine::Resolution::Kind::kSucceeded, "receipt by hand");
    const Attempt second = start("B", "j1");
    const StepIntentReply reply = step(second, "charge");
    EXPECT_EQ(reply.kind, Kind::kDone);
    EXPECT_EQ(reply.result, "receipt by hand");
}

TEST_P(StepsConformance, G6_TheLastOpenStepsAnswerClearsTheMarkWhereEffectsAreSteps) {
    policy.effects = Effects::kSteps;
    put({.id = "j1", .key = "k"});
    step(start("A", "j1"), "charge");
    crash("A");
    const Attempt run = start("B", "j1");
    ASSERT_TRUE(record("k").marked);
    step(run, "charge");
    step_done(run, "charge", "receipt");
    EXPECT_FALSE(record("k").marked);
}

TEST_P(StepsConformance, E09_ARetryRunsOnlyTheStepsThatAreLeft) {
    put({.id = "j1", .key = "k"});
    int sent = 0;
    const auto send_from = [&](int first_that_fails) {
        const Attempt run = start("A", "j1");
        for (int i = 0; i < 10; ++i) {
            const std::string name = "to " + std::to_string(i);
            if (step(run, name).kind == Kind::kDone) continue;
            if (i == first_that_fails) {
                settle(run, failure());
                return;
            }
            ++sent;
            step_done(run, name, "sent");
        }
        succeed(run);
    };
    send_from(7);
    advance(1h);
    send_from(-1);
    EXPECT_EQ(sent, 10);
    EXPECT_EQ(state("j1"), JobState::kSucceeded);
}

TEST_P(StepsConformance, G5_TheEpochTellsTwoJobsOfOneKeyApart) {
    put({.id = "j1", .key = "k"});
    const Attempt late = start("A", "j1");
    lapse();
    put({.id = "j2", .key = "k"});
    const std::vector<Delivery> again = claim("A");
    ASSERT_EQ(again.size(), 2U);
    // The same worker, and a first delivery as well.
    const Attempt present = start(again[1]);
    EXPECT_EQ(step(late, "s").kind, StepIntentReply::Kind::kSuperseded);
    EXPECT_EQ(step(present, "s").kind, StepIntentReply::Kind::kRun);
}

SEKALI_CONFORMS(StepsConformance);

}  // namespace
}  // namespace sekali::conformance
