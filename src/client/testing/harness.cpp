#include "client/testing/harness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <type_traits>

#include "base/assert.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/text.hpp"
#include "client/blocking.hpp"
#include "client/outcomes.hpp"
#include "client/worker_plan.hpp"
#include "observe/job_view.hpp"

namespace sekali::testing {
namespace {

using namespace engine;

constexpr std::size_t kMostRounds = 100'000;
constexpr std::size_t kAllJobs = 1'000'000;

/// The same jitter in every test run.
class FixedRandom final : public Random {
 public:
    double next() override { return uniform_(engine_); }

 private:
    std::mt19937_64 engine_{1};
    std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

[[noreturn]] void refuse(std::string message) {
    throw Failure(base::usage_error(std::move(message)));
}

}  // namespace

/// One action of the machine, carried out.
struct Harness::Impl::Performer {
    Impl& impl;

    template <typename Answered, typename Port, typename Submit>
    void submit(Port& port, Submit&& command, const client::Passage& passage) const {
        impl.reach_all(passage.departing());
        using Reply = decltype(Answered::reply);
        std::vector<typename Port::Call> calls;
        calls.push_back(
            {std::move(command.command), [this, tag = command.tag, passage](Reply reply) {
                 if constexpr (std::is_same_v<Answered, event::StoreAnswered>) {
                     impl.note_commit(reply);
                 }
                 FaultPoints points = passage.arriving(reply);
                 impl.arrivals_.push_back({Answered{tag, std::move(reply)}, points});
             }});
        port.submit(std::move(calls));
    }
    void operator()(action::SubmitQueue&& command) const {
        const client::Passage passage(command.command);
        submit<event::QueueAnswered, QueuePort>(impl.backend_->ports(), std::move(command),
                                                passage);
    }
    void operator()(action::SubmitStore&& command) const {
        const client::Passage passage(command.command, true, true);
        submit<event::StoreAnswered, StorePort>(impl.backend_->ports(), std::move(command),
                                                passage);
    }
    void operator()(action::SubmitLock&& command) const {
        const client::Passage passage(command.command);
        submit<event::LockAnswered, LockPort>(impl.backend_->ports(), std::move(command), passage);
    }
    void operator()(action::StartHandler&& start) const {
        impl.starts_.push_back(std::move(start));
    }
    void operator()(action::AskProbe&& ask) const {
        const auto& handlers = internal::WorkerAccess::core(*impl.worker_).handlers;
        const auto& probe = handlers.find(ask.delivery.row.job.kind)->second.probe;
        event::ProbeEnded ended{ask.run, Answer::Kind::kCannotTell, {}};
        try {
            const auto found = probe(internal::facts_of(std::move(ask.delivery.row.job)));
            ended.answer = found ? Answer::Kind::kHappened : Answer::Kind::kDidNot;
            ended.result = found.value_or("");
        } catch (const std::exception&) {
            ended.answer = Answer::Kind::kCannotTell;
        }
        impl.arrivals_.push_back({std::move(ended), {}});
    }
    void operator()(action::AskStop&& stop) const {
        if (impl.running_ != nullptr && impl.running_->id() == stop.run) {
            impl.running_->ask_stop(stop.reason);
        }
    }
    void operator()(action::CompleteCommit&& complete) const { impl.settled_ = complete.settled; }
    void operator()(action::RunClosed&& closed) const { impl.closed_job_ = closed.ref.job_id; }
    void operator()(action::SetTimer&& timer) const { impl.timer_ = timer.at; }
    void operator()(action::KillRun&&) const {}
    void operator()(action::Recycle&&) const {}
    void operator()(action::Exit&&) const {}
};

Harness::Impl::Impl(const std::function<void(Worker&)>& register_handlers,
                    const WorkerOptions& options)
    : random_(std::make_unique<FixedRandom>()) {
    client::check_worker_options(options).value();
    auto executor = std::make_unique<SteppedExecutor>();
    executor_ = executor.get();
    backend_ = std::make_shared<client::Backend>(
        "memory:", std::move(executor),
        [](std::string_view) -> Result<client::Liveness> { return client::Liveness{}; });
    auto core = std::make_shared<internal::ClientCore>(
        backend_, client::EnqueueScope{.ns = options.ns, .max_payload = options.max_payload});
    worker_ = internal::WorkerAccess::make(std::make_unique<internal::WorkerCore>(
        internal::ClientAccess::make(std::move(core)), options));
    register_handlers(*worker_);
    configure(options);
    executor_->after_commit = [this] { note_new_jobs(); };
    start_worker();
}

void Harness::Impl::configure(const WorkerOptions& options) {
    config_.ns = options.ns;
    config_.host = "harness";
    config_.queues = options.queues;
    config_.concurrency = 1;
    config_.lease = options.lease;
    config_.grace = options.grace;
    config_.queue = backend_->ports().traits();
    for (const auto& [kind, handler] : internal::WorkerAccess::core(*worker_).handlers) {
        if (!handler.handler) refuse(fmt::format("kind {} has a probe but no handler", kind));
        config_.kinds.emplace(kind, client::kind_setup(handler.options, client::HandledBy::kLocal,
                                                       handler.probe != nullptr));
    }
}

void Harness::Impl::start_worker() {
    config_.worker = fmt::format("worker-{}", crashes_ + 1);
    machine_ = std::make_unique<WorkerMachine>(config_, *random_);
    arrivals_.push_back({event::Start{}, {}});
}

/// Everything that the dead worker knew is gone; what the store has is what is left.
void Harness::Impl::bury_worker() {
    executor_->store().set_dead(config_.worker);
    ++crashes_;
    dead_ = false;
    arrivals_.clear();
    starts_.clear();
    timer_.reset();
    settled_.reset();
    start_worker();
}

std::size_t Harness::Impl::drain() {
    const std::size_t before = started_;
    arrivals_.push_back({event::ChangeSeen{}, {}});
    for (std::size_t round = 0; round < kMostRounds; ++round) {
        if (dead_) bury_worker();
        if (advance_protocol() || run_handler()) continue;
        if (!has_work()) return started_ - before;
        skip_to_timer();
    }
    refuse("the worker still finds work after 100000 rounds");
}

void Harness::Impl::perform(const std::string& job_id) {
    arrivals_.push_back({event::ChangeSeen{}, {}});
    closed_job_.clear();
    for (std::size_t round = 0; round < kMostRounds; ++round) {
        if (dead_) bury_worker();
        if (advance_protocol() || run_handler()) {
            if (closed_job_ == job_id) return;
            continue;
        }
        if (!has_work()) return;
        skip_to_timer();
    }
    refuse("the worker did not come to the job in 100000 rounds");
}

/// While a handler runs, the worker goes on renewing and watching; else nothing happens.
void Harness::Impl::advance(Millis time) {
    const LocalTime until = now_ + time;
    while (running_ != nullptr && !dead_ && timer_ && *timer_ <= until) {
        skip_to_timer();
        while (advance_protocol()) {
        }
    }
    if (until > now_) let_pass(until - now_);
}

void Harness::Impl::let_pass(Millis time) {
    executor_->store().advance(time);
    now_ += time;
}

void Harness::Impl::skip_to_timer() {
    if (timer_ && *timer_ > now_) let_pass(*timer_ - now_);
}

/// What effects wrote counts as soon as it is durable, also where the worker dies before it knows.
void Harness::Impl::note_commit(const Result<StoreReply>& reply) {
    const auto* settled = reply.ok() ? std::get_if<Settled>(&*reply) : nullptr;
    if (settled == nullptr) return;
    if (settled->kind == Settled::Kind::kApplied) {
        std::move(uncommitted_.begin(), uncommitted_.end(), std::back_inserter(statements_));
    }
    uncommitted_.clear();
}

/// One step of everything but handlers; false when there is nothing to do before time passes.
bool Harness::Impl::advance_protocol() {
    try {
        if (!arrivals_.empty()) {
            Arrival next = std::move(arrivals_.front());
            arrivals_.pop_front();
            reach_all(next.points);
            perform(machine_->on(std::move(next.event), now_));
            return true;
        }
        if (timer_ && *timer_ <= now_) {
            timer_.reset();
            perform(machine_->on(event::Tick{}, now_));
            return true;
        }
        return false;
    } catch (const internal::LeaveRun&) {
        // Only a death leaves from here; a handler that is inside has to be left, too.
        if (running_ != nullptr) throw;
        return true;
    }
}

void Harness::Impl::perform(std::vector<Action> actions) {
    for (Action& next : actions)
        std::visit(Performer{*this}, std::move(next));
}

bool Harness::Impl::run_handler() {
    if (starts_.empty()) return false;
    action::StartHandler start = std::move(starts_.front());
    starts_.pop_front();
    const std::string kind = start.delivery.row.job.kind;
    const auto& core = internal::WorkerAccess::core(*worker_);
    const auto handler = client::wrapped(core.handlers.find(kind)->second.handler, core.middleware);
    internal::Run run(std::move(start), config_.kinds.at(kind).policy.lock_ttl, *this);
    running_ = &run;
    ++started_;
    engine::Outcome outcome;
    try {
        reach(base::fault_index("handler.before"));
        outcome = run.perform(handler);
        if (!dead_) reach(base::fault_index("handler.after"));
    } catch (const internal::LeaveRun&) {
        SEKALI_ASSERT(dead_, "a run was left that is not dead");
    }
    running_ = nullptr;
    if (!dead_) arrivals_.push_back({event::HandlerEnded{run.id(), std::move(outcome)}, {}});
    return true;
}

/// Whether something could run now, were it not for a timer of the worker.
bool Harness::Impl::has_work() {
    bool work = false;
    ClaimSpec spec;
    spec.ns = config_.ns;
    spec.queues = config_.queues;
    spec.limit = 1;
    for (const auto& [kind, setup] : config_.kinds)
        spec.kinds.push_back(kind);
    executor_
        ->read([&](Tables& tables) {
            const auto due = tables.next_run_at(spec);
            work = !tables.claimable(spec).empty() || (due && *due <= tables.now()) ||
                   !tables.lapsed_jobs(spec.ns, spec.kinds, 0, 1).empty();
        })
        .value();
    return work;
}

void Harness::Impl::note_new_jobs() {
    executor_
        ->read([&](Tables& tables) {
            JobFilter filter;
            filter.ns = config_.ns;
            filter.limit = kAllJobs;
            for (const JobRow& row : tables.list_jobs(filter).items) {
                if (!known_ids_.insert(row.job.id).second) continue;
                seen_.push_back({row.job.id, row.job.kind, tables.payload(row.job.id)});
            }
        })
        .value();
}

std::vector<std::pair<std::string, std::string>> Harness::Impl::seen(std::string_view kind) const {
    std::vector<std::pair<std::string, std::string>> jobs;
    for (const Seen& job : seen_) {
        if (job.kind == kind) jobs.emplace_back(job.id, job.payload);
    }
    return jobs;
}

// ---- death

void Harness::Impl::crash_at(std::string_view fault_point) {
    const auto* point =
        std::find_if(base::kFaultPoints.begin(), base::kFaultPoints.end(),
                     [&](const base::FaultPoint& known) { return known.name == fault_point; });
    if (point == base::kFaultPoints.end()) {
        refuse(fmt::format("no fault point is named {}", base::quoted(fault_point)));
    }
    deadly_.insert(static_cast<std::size_t>(point - base::kFaultPoints.begin()));
}

/// Inside a commit the death only shows once the transaction has been rolled back.
bool Harness::Impl::reach(std::size_t fault_index) {
    const auto found = deadly_.find(fault_index);
    if (found == deadly_.end()) return false;
    deadly_.erase(found);
    dead_ = true;
    if (fault_index == base::fault_index("commit.inside")) return true;
    throw internal::LeaveRun{};
}

void Harness::Impl::reach_all(const FaultPoints& points) {
    for (const std::size_t index : points.all())
        reach(index);
}

void Harness::Impl::stay_dead() const {
    if (dead_) throw internal::LeaveRun{};
}

// ---- what a handler asks for

Settled Harness::Impl::commit(RunId run, Effects effects, std::string result) {
    stay_dead();
    const auto recorded = [this, &effects](Transaction& tx) {
        RecordingSession session(internal::TransactionAccess::session(tx).tables(),
                                 answer_queries_);
        Transaction recording(session);
        auto written = effects(recording);
        uncommitted_ = session.statements();
        return written;
    };
    settled_.reset();
    arrivals_.push_back({event::CommitRequested{run, recorded, std::move(result)}, {}});
    while (!settled_) {
        stay_dead();
        if (!advance_protocol()) skip_to_timer();
    }
    stay_dead();
    return *settled_;
}

Result<StoreReply> Harness::Impl::ask_store(StoreCommand command) {
    stay_dead();
    return client::ask<StorePort, StoreReply>(backend_->ports(), std::move(command));
}

Result<LockReply> Harness::Impl::ask_lock(LockCommand command) {
    stay_dead();
    return client::ask<LockPort, LockReply>(backend_->ports(), std::move(command));
}

bool Harness::Impl::may_take_over() const {
    return now_ < machine_->status().may_take_over_until;
}

void Harness::Impl::lock_taken(event::LockTaken taken) {
    arrivals_.push_back({std::move(taken), {}});
}

}  // namespace sekali::testing

namespace sekali::testing {

Harness::Harness(const std::function<void(Worker&)>& register_handlers,
                 const WorkerOptions& options)
    : impl_(std::make_unique<Impl>(register_handlers, options)) {}

Harness::~Harness() = default;

Client& Harness::client() {
    return impl_->client();
}
std::size_t Harness::drain() {
    return impl_->drain();
}
void Harness::advance(std::chrono::milliseconds time) {
    impl_->advance(time);
}
void Harness::crash_at(std::string_view fault_point) {
    impl_->crash_at(fault_point);
}
std::size_t Harness::crashes() const {
    return impl_->crashes();
}

JobInfo Harness::perform_job(const std::string& id) {
    impl_->perform(id);
    return client().show(id).value();
}

std::vector<JobInfo> Harness::jobs(std::string_view kind) const {
    std::vector<JobInfo> jobs;
    for (const auto& [id, payload] : impl_->seen(kind)) {
        jobs.push_back(impl_->client().show(id).value());
        jobs.back().payload = payload;
    }
    return jobs;
}

std::vector<JobInfo> Harness::succeeded(std::string_view kind) const {
    std::vector<JobInfo> all = jobs(kind);
    std::erase_if(all, [](const JobInfo& job) { return job.state != "succeeded"; });
    return all;
}

std::vector<std::string> Harness::payloads(std::string_view kind) const {
    std::vector<std::string> found;
    for (const auto& [id, payload] : impl_->seen(kind))
        found.push_back(payload);
    return found;
}

const std::vector<Statement>& Harness::statements() const {
    return impl_->statements();
}

void Harness::answer_queries(
    std::function<std::vector<std::vector<SqlValue>>(const Statement&)> answer) {
    impl_->answer_queries(std::move(answer));
}

}  // namespace sekali::testing
