#include "machine_rig.hpp"

namespace sekali::engine {
namespace {

using namespace std::chrono_literals;

using Kind = Outcome::Kind;

TEST(WorkerStop, GivesBackWhatHasNotBegunAndTakesNothingNew) {
    MachineRig rig(small_config(1));
    rig.fire(event::Start{});
    rig.deliver({ready_job("a"), ready_job("b")});
    rig.begin_next();
    rig.fire(event::StopRequested{});
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "b");
    rig.fire(event::ChangeSeen{});
    rig.advance_renewing(5s);
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    EXPECT_EQ(rig.count<action::AskStop>(), 0U) << "what runs may go on";
}

TEST(WorkerStop, GivesBackWhatAClaimOnItsWayBrings) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.fire(event::StopRequested{});
    EXPECT_FALSE(rig.exited());
    rig.deliver({ready_job("a")});
    EXPECT_EQ(rig.waiting<Begin>(), 0U);
    const auto back = rig.next<Return>();
    EXPECT_EQ(back.second.run.job_id, "a");
    rig.reply_queue(back.first, QueueReply{Done{}});
    EXPECT_TRUE(rig.exited());
}

TEST(WorkerStop, HandsBackABeginThatWasOnItsWay) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({ready_job("a")});
    rig.fire(event::StopRequested{});
    rig.begin_next();
    EXPECT_EQ(rig.count<action::StartHandler>(), 0U);
    const auto [tag, settle] = rig.next<Settle>();
    EXPECT_EQ(settle.outcome.kind, Kind::kInterrupted);
    EXPECT_EQ(settle.outcome.reason, "shutdown");
    EXPECT_TRUE(settle.outcome.nothing_applied);
    rig.reply_store(tag, StoreReply{settled_as(JobState::kReady)});
    EXPECT_TRUE(rig.exited());
}

TEST(WorkerQuiet, GivesBackWhatHasNotBegunAndLetsTheRestRun) {
    MachineRig rig(small_config(1));
    rig.fire(event::Start{});
    rig.deliver({ready_job("a"), ready_job("b")});
    rig.begin_next();
    rig.fire(event::QuietRequested{});
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "b");
    const auto told = rig.all<action::SubmitStore>().back();
    ASSERT_TRUE(std::holds_alternative<Heartbeat>(told.command));
    EXPECT_TRUE(std::get<Heartbeat>(told.command).worker.stopping) << "lists show it";
    rig.fire(event::ChangeSeen{});
    rig.advance_renewing(60s);
    EXPECT_EQ(rig.waiting<Claim>(), 0U);
    EXPECT_EQ(rig.count<action::AskStop>(), 0U) << "what runs has no bound";
    EXPECT_FALSE(rig.exited());
}

TEST(WorkerQuiet, GivesBackWhatAClaimOnItsWayBrings) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.fire(event::QuietRequested{});
    rig.deliver({ready_job("a")});
    EXPECT_EQ(rig.waiting<Begin>(), 0U);
    EXPECT_EQ(rig.next<Return>().second.run.job_id, "a");
    rig.fire(event::StopRequested{});
    EXPECT_FALSE(rig.exited()) << "the return is on its way";
}

TEST(WorkerStop, LetsTheRunningFinishThenLeaves) {
    MachineRig rig;
    const RunId run = rig.run_one(ready_job("a"));
    rig.fire(event::StopRequested{});
    rig.advance_renewing(3s);
    rig.end(run, Kind::kSuccess);
    rig.settle_next(settled_as(JobState::kSucceeded));
    EXPECT_EQ(rig.only<action::Exit>().unsettled, 0U);
    const auto last = rig.all<action::SubmitStore>().back();
    ASSERT_TRUE(std::holds_alternative<Heartbeat>(last.command));
    EXPECT_TRUE(std::get<Heartbeat>(last.command).leave);
}

TEST(WorkerStop, HandsBackBeforeTheGraceIsOver) {
    WorkerConfig config = small_config(1);
    config.grace = 10s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a", "exec"));
    const LocalTime stop = rig.now;
    rig.fire(event::StopRequested{});
    rig.advance_renewing(8s);
    EXPECT_EQ(rig.only<action::AskStop>().reason, StopReason::kShutdown);
    rig.advance_renewing(1500ms);
    EXPECT_EQ(rig.only<action::KillRun>().run, run);
    rig.end(run, Kind::kInterrupted);
    const auto [tag, settle] = rig.next<Settle>();
    EXPECT_EQ(settle.outcome.kind, Kind::kInterrupted);
    EXPECT_EQ(settle.outcome.reason, "shutdown");
    rig.reply_store(tag, StoreReply{settled_as(JobState::kReady)});
    EXPECT_TRUE(rig.exited());
    EXPECT_LT(rig.now, stop + 10s);
}

TEST(WorkerStop, AThreadThatWillNotEndIsHandedBackAndLeftBehind) {
    WorkerConfig config = small_config(1);
    config.grace = 10s;
    MachineRig rig(config);
    rig.run_one(ready_job("a"));
    const LocalTime stop = rig.now;
    rig.fire(event::StopRequested{});
    rig.advance_renewing(9600ms);
    const auto [tag, settle] = rig.next<Settle>();
    EXPECT_EQ(settle.outcome.kind, Kind::kInterrupted);
    EXPECT_FALSE(settle.outcome.process_gone);
    rig.reply_store(tag, StoreReply{settled_as(JobState::kScheduled)});
    EXPECT_TRUE(rig.exited());
    EXPECT_LT(rig.now, stop + 10s);
}

TEST(WorkerStop, TheSecondSignalEndsAtOnce) {
    MachineRig rig(small_config(2));
    rig.fire(event::Start{});
    rig.deliver({ready_job("a", "exec"), ready_job("b")});
    rig.begin_next();
    rig.begin_next();
    const RunId run = rig.all<action::StartHandler>().front().run;
    rig.fire(event::StopRequested{});
    rig.advance(100ms);
    rig.fire(event::StopNow{});
    EXPECT_EQ(rig.only<action::KillRun>().run, run);
    EXPECT_EQ(rig.count<action::AskStop>(), 2U);
    const auto stuck = rig.next<Settle>();
    EXPECT_EQ(stuck.second.run.job_id, "b");
    EXPECT_FALSE(stuck.second.outcome.process_gone);
    rig.reply_store(stuck.first, StoreReply{settled_as(JobState::kScheduled)});
    rig.end(run, Kind::kInterrupted);
    rig.settle_next(settled_as(JobState::kReady));
    EXPECT_TRUE(rig.exited());
}

TEST(WorkerStop, AStoreThatIsGoneDoesNotKeepItForEver) {
    WorkerConfig config = small_config(1);
    config.grace = 4s;
    MachineRig rig(config);
    const RunId run = rig.run_one(ready_job("a"));
    rig.upkeep_works = false;
    rig.fire(event::StopRequested{});
    rig.end(run, Kind::kSuccess);
    for (int i = 0; i < 100 && !rig.exited(); ++i) {
        rig.advance(100ms);
        while (rig.waiting<Settle>() > 0)
            rig.reply_store(rig.next<Settle>().first, store_down());
    }
    EXPECT_EQ(rig.only<action::Exit>().unsettled, 1U);
    EXPECT_TRUE(rig.log.back().index() == Action{action::Exit{}}.index());
}

TEST(WorkerStop, AfterTheExitNothingIsAnswered) {
    MachineRig rig;
    rig.fire(event::Start{});
    rig.deliver({});
    rig.fire(event::StopRequested{});
    ASSERT_TRUE(rig.exited());
    rig.log.clear();
    rig.fire(event::Tick{});
    rig.fire(event::ChangeSeen{});
    EXPECT_TRUE(rig.log.empty());
}

}  // namespace
}  // namespace sekali::engine
