#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "backends/rows/row_ports.hpp"
#include "conformance/backend.hpp"
#include "conformance/ports_of.hpp"
#include "engine/operations.hpp"

namespace sekali::conformance {

using namespace std::chrono_literals;
using engine::Begin;
using engine::BeginReply;
using engine::Delivery;
using engine::Effects;
using engine::EnqueueReply;
using engine::JobRow;
using engine::JobState;
using engine::KindPolicy;
using engine::LockRow;
using engine::Millis;
using engine::OnBusy;
using engine::OnDuplicate;
using engine::OnUnknown;
using engine::Outcome;
using engine::RecordKey;
using engine::RecordRow;
using engine::RecordState;
using engine::Settled;
using engine::StepIntentReply;
using engine::StoreTime;
using engine::Tables;
using engine::UniqueUntil;
using engine::WaitFor;

/// What a test says about a job; the rest is what most jobs have.
struct Spec {
    std::string id{};
    std::string key{};   ///< Empty: the job id.
    std::string lock{};  ///< Empty: none.
    std::string unique{};
    std::string payload = "{}";
    std::string kind = "charge";
    std::string queue = "default";
    std::string ns = "default";
    UniqueUntil unique_until = UniqueUntil::kEnd;
    OnDuplicate on_duplicate = OnDuplicate::kKeep;
    std::int32_t priority = 0;
    std::optional<Millis> delay{};
    std::optional<std::uint64_t> max_attempts{};
    std::string fingerprint_rule = "payload";
};

/// One claim of a job by a worker, and what its begin was given and answered.
struct Attempt {
    engine::Delivery delivery{};
    Begin request{};
    engine::Started started{};

    [[nodiscard]] engine::RunRef ref() const;
};

/// A store, a few workers and a clock that stands still: the stage of every conformance test. Calls
/// block until the port has answered and throw `Failure` when it answers with an error.
class Scene : public ::testing::TestWithParam<BackendKind> {
 protected:
    Scene();

    // ---- the stage
    void advance(Millis by) { backend_->advance(by); }
    /// The process of the worker is known to be gone from now on.
    void kill(const std::string& worker) { backend_->set_fate(worker, engine::OwnerFate::kDead); }
    /// Runs `work` in a transaction of its own and returns what it returns.
    template <typename Work>
    auto tx(Work work) -> std::invoke_result_t<Work, Tables&>;
    [[nodiscard]] StoreTime now();

    // ---- producers and people
    EnqueueReply enqueue(const Spec& spec);
    /// Enqueues where nothing can be in the way.
    void put(const Spec& spec);
    engine::AdminReply cancel(const std::string& id);
    engine::AdminReply retry_dead(const std::string& id);
    engine::AdminReply resolve(const std::string& id, engine::Resolution::Kind kind,
                               const std::string& result = {});
    void pause(const std::string& queue, bool paused = true);
    engine::PruneReply prune();

    // ---- workers
    engine::Claimed claim_reply(const std::string& worker, std::size_t limit = 100);
    std::vector<Delivery> claim(const std::string& worker, std::size_t limit = 100);
    std::vector<std::string> claim_ids(const std::string& worker, std::size_t limit = 100);
    /// Claims exactly this job, which must be the first in claim order.
    Delivery claim_job(const std::string& worker, const std::string& id);
    void give_back(const Attempt& run, std::optional<Millis> delay = std::nullopt);
    /// A begin of this delivery under `policy`, not sent yet.
    Attempt prepare(const Delivery& delivery);
    BeginReply begin(const Delivery& delivery);
    BeginReply begin(const Begin& request);
    /// Claims the job and begins it, which must start its handler.
    Attempt start(const std::string& worker, const std::string& id);
    Attempt start(const Delivery& delivery);
    Settled settle(const Attempt& run, const Outcome& outcome);
    Settled settle(const engine::Settle& request);
    Settled succeed(const Attempt& run, const std::string& result = "done");
    engine::Settle settlement(const Attempt& run, const Outcome& outcome) const;
    engine::Renewed renew(const Attempt& run);
    StepIntentReply step(const Attempt& run, const std::string& name, bool has_probe = false);
    void step_done(const Attempt& run, const std::string& name, const std::string& result);
    std::optional<Settled> answer(const Attempt& run, engine::Answer::Kind kind,
                                  const std::string& result = {}, bool resolves_job = false);
    void heartbeat(const std::string& worker);
    /// One pass of recovery by a worker that nothing ails.
    std::size_t recover(bool may_take_over = true);
    /// Lets every lease lapse and recovers.
    void lapse();
    /// Kills the worker and recovers what it had.
    void crash(const std::string& worker);

    engine::LockReply lock_call(const engine::LockCommand& command);
    engine::LockReply acquire(const std::string& name, const std::string& owner, Millis ttl = 30s);

    // ---- what is stored
    [[nodiscard]] std::optional<JobRow> find_job(const std::string& id);
    [[nodiscard]] JobRow job(const std::string& id);
    [[nodiscard]] JobState state(const std::string& id) { return job(id).state; }
    [[nodiscard]] std::optional<RecordRow> find_record(const std::string& key,
                                                       const std::string& kind = "charge");
    [[nodiscard]] RecordRow record(const std::string& key, const std::string& kind = "charge");
    [[nodiscard]] std::optional<LockRow> lock_row(const std::string& name);
    [[nodiscard]] std::vector<engine::StepRow> steps(const std::string& key);
    [[nodiscard]] std::vector<engine::EventRow> events(const std::string& key);
    [[nodiscard]] bool has_event(const std::string& key, engine::EventKind event);
    [[nodiscard]] std::vector<engine::AttemptRow> attempts(const std::string& key);

    // ---- how begin, settle and recovery are called
    KindPolicy policy;
    Millis lease = 15s;
    bool may_take_over = true;

    Backend& backend() { return *backend_; }
    rows::RowPorts& ports() { return ports_; }

    template <typename Reply, typename Port, typename Command>
    Result<Reply> call(Port& port, Command command);

 private:
    std::unique_ptr<Backend> backend_;
    rows::RowPorts ports_;
};

// ---- outcomes
[[nodiscard]] Outcome success(std::string result = "done");
[[nodiscard]] Outcome failure(bool nothing_applied = false);
[[nodiscard]] Outcome ended(Outcome::Kind kind, std::string reason = {});

// ---- what begin answered
template <typename Reply>
const Reply* as(const BeginReply& reply) {
    return std::get_if<Reply>(&reply);
}

[[nodiscard]] Begin begin_request(const Delivery& delivery, const KindPolicy& policy, Millis lease);

template <typename Work>
auto Scene::tx(Work work) -> std::invoke_result_t<Work, Tables&> {
    using Reply = std::invoke_result_t<Work, Tables&>;
    if constexpr (std::is_void_v<Reply>) {
        run_in(*backend_, std::move(work));
    } else {
        std::optional<Reply> reply;
        run_in(*backend_, [&](Tables& tables) { reply.emplace(work(tables)); });
        return *std::move(reply);
    }
}

template <typename Reply, typename Port, typename Command>
Result<Reply> Scene::call(Port& port, Command command) {
    std::vector<Command> commands;
    commands.push_back(std::move(command));
    auto replies = send_all<Port, Reply>(
        port, std::move(commands), [this] { backend_->pump(); },
        /*wait=*/true);
    return std::move(replies.at(0));
}

}  // namespace sekali::conformance

/// Runs a suite against every store that is built here.
#define SEKALI_CONFORMS(Suite)                                                                  \
    INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(::sekali::conformance::backends()), \
                             [](const auto& instance) { return instance.param.name; })
