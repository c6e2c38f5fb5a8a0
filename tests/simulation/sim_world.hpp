#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "backends/rows/row_ports.hpp"
#include "simulation/sim_broker.hpp"
#include "simulation/sim_judge.hpp"
#include "simulation/sim_locks.hpp"
#include "simulation/sim_options.hpp"
#include "simulation/sim_process.hpp"
#include "simulation/sim_store.hpp"
#include "simulation/sim_trace.hpp"

namespace sekali::sim {

/// A whole fleet on one thread: worker machines, the memory store behind an unreliable wire,
/// producers, people, and an outside world that remembers what was done to it. One seed draws it
/// all.
class World {
 public:
    World(const Options& options, bool prints);
    ~World();

    /// Runs faults, then healing, then the end. The violations are the judge's.
    void run();
    [[nodiscard]] const std::vector<std::string>& violations() const { return judge_.violations(); }
    [[nodiscard]] std::uint64_t trace_hash() const { return trace_.hash(); }

    // What a process sees of its world.
    void at(Millis when, std::function<void()> work);
    [[nodiscard]] Millis now() const { return now_; }
    [[nodiscard]] StoreTime store_now() const { return store_->now(); }
    [[nodiscard]] SimStore& store() { return *store_; }
    [[nodiscard]] SimRandom& random() { return random_; }
    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] const std::map<std::string, engine::KindSetup>& kinds() const { return kinds_; }
    [[nodiscard]] Judge& judge() { return judge_; }
    void trace(const std::string& text) { trace_.line(now_, text); }
    /// Counts that something of this name was reached.
    void mark(const std::string& name) { ++marks_[name]; }
    [[nodiscard]] const std::map<std::string, std::size_t>& marks() const { return marks_; }
    [[nodiscard]] bool healed() const { return healed_; }
    [[nodiscard]] bool ending() const { return ending_; }
    [[nodiscard]] std::string draw_lock();
    [[nodiscard]] bool is_poison(const std::string& job) const { return poison_.contains(job); }
    void process_gone(Process& process);

    void call(Process& from, engine::QueueCommand command,
              std::function<void(Result<engine::QueueReply>)> answer);
    void call(Process& from, engine::StoreCommand command,
              std::function<void(Result<engine::StoreReply>)> answer);
    void call(Process& from, engine::LockCommand command,
              std::function<void(Result<engine::LockReply>)> answer);
    /// `ctx.lock`, which is the store's also where lock keys are a service's.
    void call_store_lock(Process& from, engine::LockAcquire request,
                         std::function<void(Result<engine::LockReply>)> answer);

    // The outside world.
    void take_effect(const RunRef& ref, const std::string& step);
    /// It happens although its caller has gone on, or is dead, by then.
    void take_effect_later(const RunRef& ref, Millis delay);
    [[nodiscard]] bool has_effect(const engine::RecordKey& key, const std::string& step) const;

 private:
    struct Entry {
        Millis when{};
        std::uint64_t tie = 0;
        std::uint64_t number = 0;
        std::function<void()> work;
        bool operator>(const Entry& other) const {
            return std::tie(when, tie, number) > std::tie(other.when, other.tie, other.number);
        }
    };

    [[nodiscard]] SimStore::Clock host_clock() const;
    void run_until(Millis end);
    template <typename Port, typename Reply, typename Command>
    void send(Process& from, Command command, std::function<void(Result<Reply>)> answer,
              bool may_go_outside = true);
    template <typename Port, typename Reply, typename Command>
    void execute(Command command, std::function<void(Result<Reply>)> answer);
    void executed(const engine::QueueCommand& command, const Result<engine::QueueReply>& reply,
                  bool effects_ran);
    void begun_by_claim(const engine::Claim& claim, const engine::Delivery& delivery);
    void executed(const engine::StoreCommand& command, const Result<engine::StoreReply>& reply,
                  bool effects_ran);
    void executed(const engine::LockCommand& command, const Result<engine::LockReply>& reply,
                  bool effects_ran);
    void mark_reply(const engine::StoreCommand& command, const engine::StoreReply& reply);
    void step_soon();
    void step_store();
    void fail_power();
    void transact(std::function<void(engine::Tables&)> work, std::function<void()> done);

    void start_worker(std::size_t slot);
    void schedule_faults();
    void schedule_lock_service();
    void schedule_broker();
    void publish(const engine::EnqueueRequest& request);
    [[nodiscard]] std::optional<engine::QueueReply> ask_broker(const engine::QueueCommand& command);
    void wake_lines();
    void at_rate(double times_a_minute, const std::function<void()>& work);
    [[nodiscard]] Process* random_process();
    void schedule_jobs();
    [[nodiscard]] engine::EnqueueRequest draw_job(std::size_t number);
    void enqueue(engine::EnqueueRequest request);
    void meddle();
    void break_lock();
    void answer_held(bool all);
    void heal();
    [[nodiscard]] bool at_rest();
    void check_idle();
    void stop_all();

    Options options_;
    Millis now_{};
    SimRandom random_;
    std::map<std::string, engine::KindSetup> kinds_;
    Trace trace_;
    Judge judge_;
    std::unique_ptr<SimStore> store_;
    rows::RowPorts ports_;
    LockService locks_;
    Broker broker_;
    std::uint64_t entries_ = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
    std::vector<std::unique_ptr<Process>> processes_;  ///< Also those that are gone.
    std::map<std::string, std::size_t> slots_;
    std::size_t incarnations_ = 0;
    Millis timeout_;  ///< Of a request, where its sender gives up.
    bool step_scheduled_ = false;
    std::size_t steps_ = 0;
    Millis stalled_until_{};
    Millis outage_until_{};
    std::set<std::string> touched_;
    bool touched_all_ = false;
    bool changed_ = false;  ///< Something was written since the workers were told.
    std::set<std::string> poison_;
    std::size_t enqueues_open_ = 0;
    std::size_t transactions_open_ = 0;
    Millis late_until_{};  ///< Until then a request may arrive whose lease is new.
    struct Effect {
        std::size_t times = 0;
        std::string step_key;  ///< Which came with the first request.
    };
    std::map<std::tuple<engine::RecordKey, std::string>, Effect> effects_;
    std::map<std::string, std::size_t> marks_;
    bool healed_ = false;
    bool ending_ = false;
};

}  // namespace sekali::sim
