#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/worker_machine.hpp"
#include "simulation/sim_judge.hpp"
#include "simulation/sim_random.hpp"

namespace sekali::sim {

class World;

/// One worker process of the world: the machine under test, a shell around it, and its handlers.
class Process {
 public:
    Process(World& world, std::string id, engine::WorkerConfig config);

    void start();
    /// Runs `work` here, later; not at all when the process is gone by then, and not while it is
    /// paused.
    void later(Millis delay, std::function<void()> work);
    void deliver(engine::Event event);
    void stop();
    void crash(const std::string& why);
    void pause(Millis length);
    /// Its clock jumps ahead, as a clock does that goes on while its host sleeps.
    void leap(Millis length);
    void resume();

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] bool alive() const { return alive_; }
    [[nodiscard]] std::size_t commands() const { return commands_; }

 private:
    struct Op {
        enum class Kind : std::uint8_t {
            kWork,
            kLock,
            kEffect,
            kStep,
            kCommit,
            kEnd,
            kCrash,
            kHang
        } kind{};
        Millis time{};
        std::string name{};
        engine::Outcome outcome{};
    };
    /// A handler is a list of things to do. It is a machine too, so that a seed replays it.
    struct Handler {
        engine::RunRef ref;
        std::vector<Op> plan;
        std::size_t next = 0;
        bool stubborn = false;  ///< Does not look at its stop token.
        bool stopped = false;
        bool waits = false;  ///< For an answer of the store.
        std::uint64_t calls = 0;
    };

    [[nodiscard]] engine::LocalTime local_now() const;
    [[nodiscard]] Millis world_time(engine::LocalTime at) const;
    void run_or_defer(std::function<void()> work);
    void perform(engine::Action action);
    void perform_one(engine::action::SubmitQueue& submit);
    void perform_one(engine::action::SubmitStore& submit);
    void perform_one(engine::action::SubmitLock& submit);
    void perform_one(engine::action::StartHandler& start);
    void perform_one(engine::action::AskProbe& ask);
    void perform_one(engine::action::AskStop& ask);
    void perform_one(engine::action::KillRun& kill);
    void perform_one(engine::action::CompleteCommit& complete);
    void perform_one(engine::action::RunClosed& closed);
    void perform_one(engine::action::SetTimer& set);
    void perform_one(engine::action::Recycle& recycle);
    void perform_one(engine::action::Exit& exit);

    [[nodiscard]] std::vector<Op> draw_plan(const engine::JobRow& row);
    [[nodiscard]] engine::Outcome draw_failure();
    void go_on(RunId run, Millis delay);
    void next_op(RunId run);
    void do_lock(RunId run, const engine::LockAcquire& request);
    void do_step(RunId run, const std::string& name, bool probe_said_no, std::uint64_t call);
    void step_reply(RunId run, const std::string& name, std::uint64_t call,
                    const Result<engine::StoreReply>& reply);
    void store_step(RunId run, const std::string& name);
    void end(RunId run, engine::Outcome outcome);
    void gone();

    World& world_;
    std::string id_;
    engine::WorkerConfig config_;
    SimRandom random_;
    engine::WorkerMachine machine_;
    Millis clock_offset_;
    double clock_rate_;
    bool alive_ = true;
    bool paused_ = false;
    std::uint64_t pauses_ = 0;  ///< Begun or ended so far.
    std::uint64_t timer_ = 0;
    std::size_t commands_ = 0;
    std::vector<std::function<void()>> backlog_;
    std::map<RunId, Handler> handlers_;
};

}  // namespace sekali::sim
