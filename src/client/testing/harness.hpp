#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/passage.hpp"
#include "client/run.hpp"
#include "client/testing/recording_session.hpp"
#include "client/testing/stepped_executor.hpp"
#include "client/worker_core.hpp"
#include "engine/worker_machine.hpp"
#include "sekali/testing.hpp"

namespace sekali::testing {

using client::FaultPoints;

/// Drives the worker machine on one thread, as the shell of a real worker does with many.
class Harness::Impl final : private internal::RunHost {
 public:
    Impl(const std::function<void(Worker&)>& register_handlers, const WorkerOptions& options);

    [[nodiscard]] Client& client() { return worker_->client(); }
    std::size_t drain();
    void advance(engine::Millis time);
    void perform(const std::string& job_id);
    void crash_at(std::string_view fault_point);
    [[nodiscard]] std::size_t crashes() const { return crashes_; }
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> seen(
        std::string_view kind) const;
    [[nodiscard]] const std::vector<Statement>& statements() const { return statements_; }
    void answer_queries(AnswerQueries answer) { answer_queries_ = std::move(answer); }

 private:
    /// An answer on its way to the machine, with the fault points in front of it.
    struct Arrival {
        engine::Event event;
        FaultPoints points;
    };
    struct Seen {
        std::string id;
        std::string kind;
        std::string payload;
    };
    struct Performer;

    void configure(const WorkerOptions& options);
    void start_worker();
    void bury_worker();
    bool advance_protocol();
    bool run_handler();
    void perform(std::vector<engine::Action> actions);
    [[nodiscard]] bool has_work();
    void let_pass(engine::Millis time);
    void skip_to_timer();
    void note_commit(const Result<engine::StoreReply>& reply);
    void note_new_jobs();
    void reach_all(const FaultPoints& points);
    void stay_dead() const;

    engine::Settled commit(engine::RunId run, Effects effects, std::string result) override;
    Result<engine::StoreReply> ask_store(engine::StoreCommand command) override;
    Result<engine::LockReply> ask_lock(engine::LockCommand command) override;
    [[nodiscard]] bool may_take_over() const override;
    void lock_taken(engine::event::LockTaken taken) override;
    void pause(engine::Millis time, const std::stop_token&) override { let_pass(time); }
    [[nodiscard]] engine::LocalTime now() const override { return now_; }
    bool reach(std::size_t fault_index) override;
    void log(const internal::Run&, LogSeverity, std::string_view) override {}

    SteppedExecutor* executor_ = nullptr;  ///< Owned by the backend.
    std::shared_ptr<client::Backend> backend_;
    std::optional<Worker> worker_;
    AnswerQueries answer_queries_;
    std::vector<Statement> statements_;
    std::vector<Statement> uncommitted_;
    std::vector<Seen> seen_;
    std::set<std::string> known_ids_;

    engine::WorkerConfig config_;
    std::unique_ptr<engine::Random> random_;
    std::unique_ptr<engine::WorkerMachine> machine_;
    engine::LocalTime now_{std::chrono::hours{1}};
    std::optional<engine::LocalTime> timer_;
    std::deque<Arrival> arrivals_;
    std::deque<engine::action::StartHandler> starts_;
    internal::Run* running_ = nullptr;
    std::optional<engine::Settled> settled_;
    std::string closed_job_;
    std::size_t started_ = 0;

    std::multiset<std::size_t> deadly_;  ///< Fault points at which a worker dies, each once.
    bool dead_ = false;
    std::size_t crashes_ = 0;
};

}  // namespace sekali::testing
