#include "simulation/sim_process.hpp"

#include <utility>

#include "simulation/sim_world.hpp"

namespace sekali::sim {

using namespace std::chrono_literals;
using engine::Effects;
using engine::JobState;
using engine::LocalTime;
using engine::Outcome;
using engine::RunRef;
using engine::Settled;
using engine::StepIntentReply;
namespace event = engine::event;
namespace action = engine::action;

namespace {

constexpr Millis kClockStart = std::chrono::hours{1};

Outcome outcome_of(Outcome::Kind kind) {
    Outcome outcome;
    outcome.kind = kind;
    return outcome;
}

}  // namespace

Process::Process(World& world, std::string id, engine::WorkerConfig config)
    : world_(world),
      id_(std::move(id)),
      config_(std::move(config)),
      random_(world.random().bits()),
      machine_(config_, random_),
      clock_offset_(kClockStart + random_.between(0ms, 1h)),
      clock_rate_(1.0 + world.options().drift * (2 * random_.next() - 1)) {}

LocalTime Process::local_now() const {
    const double ran = static_cast<double>(world_.now().count()) * clock_rate_;
    return LocalTime{clock_offset_ + Millis{static_cast<Millis::rep>(ran)}};
}

Millis Process::world_time(LocalTime at) const {
    const auto ran = static_cast<double>((at.time_since_epoch() - clock_offset_).count());
    return Millis{static_cast<Millis::rep>(ran / clock_rate_) + 1};
}

void Process::start() {
    world_.trace(id_ + " starts");
    deliver(event::Start{});
}

void Process::run_or_defer(std::function<void()> work) {
    if (!alive_) return;
    if (paused_) {
        backlog_.push_back(std::move(work));
    } else {
        work();
    }
}

void Process::later(Millis delay, std::function<void()> work) {
    world_.at(world_.now() + delay,
              [this, work = std::move(work)]() mutable { run_or_defer(std::move(work)); });
}

void Process::deliver(engine::Event event) {
    if (!alive_) return;
    std::vector<engine::Action> actions = machine_.on(std::move(event), local_now());
    for (engine::Action& action : actions) {
        if (!alive_) return;
        if (!world_.healed() && random_.chance(world_.options().crashes)) {
            crash("at an action");
            return;
        }
        perform(std::move(action));
    }
}

void Process::stop() {
    run_or_defer([this] {
        world_.trace(id_ + " gets a signal");
        if (!world_.ending()) world_.mark("fault: stop");
        deliver(event::StopRequested{});
        if (random_.chance(0.3)) {
            later(random_.between(10ms, 2s), [this] { deliver(event::StopNow{}); });
        }
        later(config_.grace + 3s, [this, pauses = pauses_] {
            if (pauses != pauses_) return;
            world_.judge().violation("G13", id_ + " did not end within its grace");
        });
    });
}

void Process::crash(const std::string& why) {
    if (!alive_) return;
    world_.trace(id_ + " dies: " + why);
    world_.mark("fault: crash " + why);
    world_.judge().crashed(id_);
    gone();
}

void Process::gone() {
    alive_ = false;
    handlers_.clear();
    backlog_.clear();
    world_.process_gone(*this);
}

void Process::pause(Millis length) {
    if (!alive_ || paused_) return;
    world_.trace(id_ + " is paused");
    world_.mark("fault: pause");
    paused_ = true;
    world_.judge().paused(id_, true);
    world_.at(world_.now() + length, [this, pauses = ++pauses_] {
        if (pauses == pauses_) resume();
    });
}

void Process::leap(Millis length) {
    if (!alive_) return;
    world_.trace(id_ + " finds its clock " + std::to_string(length.count()) + " ms ahead");
    world_.mark("fault: clock leap");
    clock_offset_ += length;
    run_or_defer([this] { deliver(event::Tick{}); });
}

void Process::resume() {
    if (!alive_ || !paused_) return;
    world_.trace(id_ + " goes on");
    paused_ = false;
    ++pauses_;
    // A process that wakes runs whatever comes first, not what its clock would say.
    auto backlog = std::exchange(backlog_, {});
    while (!backlog.empty()) {
        const auto next =
            backlog.begin() + static_cast<std::ptrdiff_t>(random_.below(backlog.size()));
        auto work = std::move(*next);
        backlog.erase(next);
        run_or_defer(std::move(work));
    }
    world_.judge().paused(id_, false);
}

// ---- actions

void Process::perform(engine::Action action) {
    std::visit([this](auto& one) { perform_one(one); }, action);
}

void Process::perform_one(action::SubmitQueue& submit) {
    ++commands_;
    world_.call(*this, std::move(submit.command),
                [this, tag = submit.tag](Result<engine::QueueReply> reply) {
                    deliver(event::QueueAnswered{tag, std::move(reply)});
                });
}

void Process::perform_one(action::SubmitStore& submit) {
    ++commands_;
    world_.call(*this, std::move(submit.command),
                [this, tag = submit.tag](Result<engine::StoreReply> reply) {
                    deliver(event::StoreAnswered{tag, std::move(reply)});
                });
}

void Process::perform_one(action::SubmitLock& submit) {
    ++commands_;
    world_.call(*this, std::move(submit.command),
                [this, tag = submit.tag](Result<engine::LockReply> reply) {
                    deliver(event::LockAnswered{tag, std::move(reply)});
                });
}

void Process::perform_one(action::StartHandler& start) {
    world_.trace(id_ + " runs " + start.ref.job_id + " epoch " + std::to_string(start.ref.epoch));
    world_.judge().handler_started({id_, start.run}, start.ref, world_.store_now());
    Handler handler;
    handler.ref = start.ref;
    handler.plan = draw_plan(start.delivery.row);
    handler.stubborn = !world_.healed() && random_.chance(world_.options().misbehaviour);
    handlers_.emplace(start.run, std::move(handler));
    go_on(start.run, 0ms);
}

void Process::perform_one(action::AskProbe& ask) {
    world_.trace(id_ + " asks about " + ask.ref.job_id);
    const bool cannot_tell = !world_.healed() && random_.chance(0.1);
    later(random_.between(1ms, 50ms), [this, run = ask.run, key = ask.ref.record, cannot_tell] {
        auto answer = world_.has_effect(key, {}) ? engine::Answer::Kind::kHappened
                                                 : engine::Answer::Kind::kDidNot;
        if (cannot_tell) answer = engine::Answer::Kind::kCannotTell;
        deliver(event::ProbeEnded{run, answer, "probed"});
    });
}

void Process::perform_one(action::AskStop& ask) {
    world_.mark("stop: " + std::string(to_string(ask.reason)));
    world_.trace(id_ + " stops run " + std::to_string(ask.run) + ": " +
                 std::string(to_string(ask.reason)));
    world_.judge().handler_told({id_, ask.run});
    const auto found = handlers_.find(ask.run);
    if (found == handlers_.end()) return;
    found->second.stopped = true;
    if (!found->second.stubborn && !found->second.waits) go_on(ask.run, random_.between(0ms, 50ms));
}

void Process::perform_one(action::KillRun& kill) {
    world_.mark("kill");
    world_.trace(id_ + " kills run " + std::to_string(kill.run));
    if (handlers_.contains(kill.run)) end(kill.run, outcome_of(Outcome::Kind::kInterrupted));
}

void Process::perform_one(action::CompleteCommit& complete) {
    world_.judge().handler_commits({id_, complete.run}, false);
    const auto found = handlers_.find(complete.run);
    if (found == handlers_.end()) return;
    Handler& handler = found->second;
    handler.waits = false;
    const auto kind = complete.settled.kind;
    if (kind == Settled::Kind::kEffectsFailed) {
        handler.plan = {{.kind = Op::Kind::kEnd, .outcome = draw_failure()}};
        handler.next = 0;
    } else if (kind != Settled::Kind::kApplied) {
        handler.plan = {
            {.kind = Op::Kind::kEnd, .outcome = outcome_of(Outcome::Kind::kInterrupted)}};
        handler.next = 0;
    }
    go_on(complete.run, 1ms);
}

void Process::perform_one(action::RunClosed& closed) {
    world_.trace(id_ + " closes run " + std::to_string(closed.run) + " of " + closed.ref.job_id);
}

void Process::perform_one(action::SetTimer& set) {
    const std::uint64_t number = ++timer_;
    const Millis wait = std::max(0ms, world_time(set.at) - world_.now());
    later(wait, [this, number] {
        if (number == timer_) deliver(event::Tick{});
    });
}

void Process::perform_one(action::Recycle& recycle) {
    world_.mark("recycle");
    world_.trace(id_ + " wants to be replaced: " + recycle.reason);
}

void Process::perform_one(action::Exit& exit) {
    world_.trace(id_ + " exits, unsettled " + std::to_string(exit.unsettled));
    if (world_.ending() && exit.unsettled > 0) {
        world_.judge().violation("G13", id_ + " left runs behind although all was well");
    }
    world_.judge().crashed(id_);
    gone();
}

// ---- handlers

Outcome Process::draw_failure() {
    Outcome outcome;
    const double draw = random_.next();
    outcome.kind = draw < 0.7    ? Outcome::Kind::kRetry
                   : draw < 0.8  ? Outcome::Kind::kPermanent
                   : draw < 0.95 ? Outcome::Kind::kSnooze
                                 : Outcome::Kind::kCancel;
    if (outcome.kind == Outcome::Kind::kSnooze) outcome.delay = random_.between(10ms, 2s);
    return outcome;
}

std::vector<Process::Op> Process::draw_plan(const engine::JobRow& row) {
    using Kind = Op::Kind;
    const Options& options = world_.options();
    const bool calm = world_.healed();
    std::vector<Op> plan;
    const auto work = [&] {
        const bool is_long = !calm && random_.chance(0.15);
        plan.push_back({.kind = Kind::kWork,
                        .time = random_.between(0ms, is_long ? options.lease * 3 : 300ms)});
    };
    const auto maybe_fail = [&](bool nothing_applied) {
        if (calm || !random_.chance(options.failures / 2)) return;
        Outcome outcome = draw_failure();
        outcome.nothing_applied = nothing_applied;
        plan.push_back({.kind = Kind::kEnd, .outcome = std::move(outcome)});
    };
    work();
    if (world_.is_poison(row.job.id)) plan.push_back({.kind = Kind::kCrash});
    if (!calm && random_.chance(options.misbehaviour / 4)) plan.push_back({.kind = Kind::kHang});
    maybe_fail(true);
    const Effects effects = world_.kinds().at(row.job.kind).policy.effects;
    const bool has_record =
        world_.kinds().at(row.job.kind).policy.record == engine::RecordMode::kKept;
    if (effects == Effects::kCommit) {
        const std::string lock = options.locks > 0 ? world_.draw_lock() : std::string{};
        if (!lock.empty() && lock != row.job.lock_key && random_.chance(0.3)) {
            plan.push_back({.kind = Kind::kLock, .name = lock});
            work();
        }
        plan.push_back({.kind = Kind::kCommit});
    } else if (effects == Effects::kSteps && has_record) {
        for (const char* name : {"one", "two", "three"}) {
            plan.push_back({.kind = Kind::kStep, .name = name});
            work();
            maybe_fail(false);
        }
    } else {
        plan.push_back({.kind = Kind::kEffect});
        work();
        maybe_fail(false);
    }
    plan.push_back({.kind = Kind::kEnd, .outcome = outcome_of(Outcome::Kind::kSuccess)});
    plan.back().outcome.result = "done by " + row.job.id;
    return plan;
}

void Process::go_on(RunId run, Millis delay) {
    const auto found = handlers_.find(run);
    if (found == handlers_.end()) return;
    const std::uint64_t call = ++found->second.calls;  // what was planned before is void
    later(delay, [this, run, call] {
        const auto handler = handlers_.find(run);
        if (handler != handlers_.end() && handler->second.calls == call) next_op(run);
    });
}

void Process::next_op(RunId run) {
    Handler& handler = handlers_.at(run);
    if (handler.stopped && !handler.stubborn) {
        Outcome outcome =
            outcome_of(random_.chance(0.5) ? Outcome::Kind::kInterrupted : Outcome::Kind::kRetry);
        end(run, std::move(outcome));
        return;
    }
    const Op op = handler.plan.at(handler.next++);
    switch (op.kind) {
        case Op::Kind::kWork:
            go_on(run, op.time);
            break;
        case Op::Kind::kLock: {
            engine::LockAcquire request;
            request.ns = "default";
            request.name = op.name;
            request.owner = id_;
            request.token = id_ + "/" + std::to_string(run) + "/" + op.name;
            request.ttl = config_.lease;
            request.may_take_over = local_now() < machine_.status().may_take_over_until;
            do_lock(run, request);
            break;
        }
        case Op::Kind::kEffect:
            if (!world_.healed() && world_.options().late_effects > 0 &&
                random_.chance(world_.options().late_effects)) {
                world_.take_effect_later(handler.ref, random_.between(1ms, config_.lease * 2));
            } else {
                world_.take_effect(handler.ref, {});
            }
            go_on(run, 1ms);
            break;
        case Op::Kind::kStep:
            do_step(run, op.name, false, ++handler.calls);
            break;
        case Op::Kind::kCommit: {
            handler.waits = true;
            world_.judge().handler_commits({id_, run}, true);
            const bool fails = !world_.healed() && random_.chance(world_.options().failures / 4);
            deliver(event::CommitRequested{
                run,
                [fails, &store = world_.store(),
                 name = handler.ref.record.kind + "/" +
                        handler.ref.record.key](Transaction& transaction) -> Result<void> {
                    store.write_effect(transaction, name);
                    if (fails) return Error{.code = ErrorCode::kRefused, .message = "constraint"};
                    return {};
                },
                "done by " + handler.ref.job_id});
            break;
        }
        case Op::Kind::kEnd:
            end(run, op.outcome);
            break;
        case Op::Kind::kCrash:
            if (world_.kinds().at(handler.ref.record.kind).killable) {
                end(run, outcome_of(Outcome::Kind::kCrashed));
            } else {
                crash("a poison job");
            }
            break;
        case Op::Kind::kHang:
            break;
    }
}

/// `ctx.lock` that waits for nobody: a busy lock is a snooze.
void Process::do_lock(RunId run, const engine::LockAcquire& request) {
    handlers_.at(run).waits = true;
    const engine::LocalTime asked = local_now();
    world_.call_store_lock(*this, request,
                           [this, run, request, asked](const Result<engine::LockReply>& reply) {
                               const auto found = handlers_.find(run);
                               if (found == handlers_.end()) return;
                               found->second.waits = false;
                               if (found->second.stopped && !found->second.stubborn) {
                                   go_on(run, 1ms);
                               } else if (!reply.ok()) {
                                   do_lock(run, request);
                               } else if (reply->kind == engine::LockReply::Kind::kAcquired) {
                                   deliver(event::LockTaken{run, request.name, request.token,
                                                            reply->fence, request.ttl, asked});
                                   go_on(run, 1ms);
                               } else {
                                   end(run, outcome_of(Outcome::Kind::kSnooze));
                               }
                           });
}

/// A step as the context does it: intent, effect, result, each asked for again until it is
/// answered.
void Process::do_step(RunId run, const std::string& name, bool probe_said_no, std::uint64_t call) {
    Handler& handler = handlers_.at(run);
    handler.waits = true;
    engine::StepIntent intent;
    intent.run = handler.ref;
    intent.name = name;
    intent.call = std::to_string(call);
    intent.has_probe = true;
    intent.probe_said_no = probe_said_no;
    world_.call(*this, engine::StoreCommand{intent},
                [this, run, name, call, probe_said_no](Result<engine::StoreReply> reply) {
                    const auto found = handlers_.find(run);
                    if (found == handlers_.end()) return;
                    found->second.waits = false;
                    if (reply.ok()) {
                        step_reply(run, name, call, reply);
                    } else if (found->second.stopped && !found->second.stubborn) {
                        go_on(run, 1ms);
                    } else {
                        do_step(run, name, probe_said_no, call);
                    }
                });
}

void Process::step_reply(RunId run, const std::string& name, std::uint64_t call,
                         const Result<engine::StoreReply>& reply) {
    Handler& handler = handlers_.at(run);
    const RunRef& ref = handler.ref;
    switch (std::get<StepIntentReply>(*reply).kind) {
        case StepIntentReply::Kind::kRun:
            world_.take_effect(ref, name);
            store_step(run, name);
            break;
        case StepIntentReply::Kind::kDone:
            go_on(run, 1ms);
            break;
        case StepIntentReply::Kind::kAsk:
            if (world_.has_effect(ref.record, name)) {
                store_step(run, name);
            } else {
                do_step(run, name, true, call);
            }
            break;
        case StepIntentReply::Kind::kHold:
            end(run, outcome_of(Outcome::Kind::kHold));
            break;
        case StepIntentReply::Kind::kUsedTwice:
        case StepIntentReply::Kind::kSuperseded:
            end(run, outcome_of(Outcome::Kind::kInterrupted));
            break;
    }
}

void Process::store_step(RunId run, const std::string& name) {
    Handler& handler = handlers_.at(run);
    handler.waits = true;
    world_.call(*this, engine::StoreCommand{engine::StepResult{handler.ref, name, "result"}},
                [this, run, name](const Result<engine::StoreReply>& reply) {
                    const auto found = handlers_.find(run);
                    if (found == handlers_.end()) return;
                    found->second.waits = false;
                    if (reply.ok() || (found->second.stopped && !found->second.stubborn)) {
                        go_on(run, 1ms);
                    } else {
                        store_step(run, name);
                    }
                });
}

void Process::end(RunId run, Outcome outcome) {
    world_.judge().handler_ended({id_, run});
    handlers_.erase(run);
    later(0ms, [this, run, outcome = std::move(outcome)] {
        deliver(event::HandlerEnded{run, outcome});
    });
}

}  // namespace sekali::sim
