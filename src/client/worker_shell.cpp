#include "client/worker_shell.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "base/faults.hpp"
#include "base/ids.hpp"
#include "client/outcomes.hpp"
#include "client/passage.hpp"

namespace sekali::client {
namespace {

using namespace engine;

/// How long one look for changes may take: a worker that ends waits for no longer.
constexpr Millis kWatchSlice{100};
/// The store works on what the first events led to while the others are dealt with.
constexpr std::ptrdiff_t kEventsAtOnce = 64;
/// With so many runs under way events come in crowds. To let one gather for a moment costs less
/// than to be woken by each of its members, handlers that wait for the same processors.
constexpr std::size_t kCrowd = 64;
constexpr std::chrono::microseconds kGathering{100};

class SeededRandom final : public Random {
 public:
    double next() override { return uniform_(engine_); }

 private:
    std::mt19937_64 engine_{std::stoull(base::random_hex(8), nullptr, 16)};
    std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

/// True when the test wants a failure at one of the points.
bool reach(const FaultPoints& points) {
    bool fail = false;
    for (const std::size_t index : points.all())
        fail |= base::fault_reached(index);
    return fail;
}

/// Gathers one call, so that its answer becomes an event, and marks the fault points around it.
template <typename Call, typename Answered, typename Submit>
void gather(std::vector<Call>& calls, const std::shared_ptr<Inbox>& inbox, Submit&& submit,
            Passage passage) {
    using Reply = decltype(Answered::reply);
    const Tag tag = submit.tag;
    if (reach(passage.departing())) {
        inbox->push(Answered{tag, failed_by_test(Applied::kNo)});
        return;
    }
    calls.push_back({std::move(submit.command), [inbox, tag, passage](Reply reply) {
                         if (reach(passage.arriving(reply))) reply = failed_by_test();
                         inbox->push(Answered{tag, std::move(reply)});
                     }});
}

template <typename Port, typename Call>
void submit_all(Port& port, std::vector<Call>& calls) {
    if (!calls.empty()) port.submit(std::exchange(calls, {}));
}

}  // namespace

/// One action of the machine, carried out.
struct WorkerShell::Performer {
    WorkerShell& shell;

    void operator()(action::SubmitQueue&& submit) const {
        const Passage passage(submit.command);
        gather<QueuePort::Call, event::QueueAnswered>(shell.queue_calls_, shell.inbox_,
                                                      std::move(submit), passage);
    }
    void operator()(action::SubmitStore&& submit) const {
        const Passage passage(submit.command, shell.joint_queue_, shell.locks_in_store_);
        gather<StorePort::Call, event::StoreAnswered>(shell.store_calls_, shell.inbox_,
                                                      std::move(submit), passage);
    }
    void operator()(action::SubmitLock&& submit) const {
        const Passage passage(submit.command);
        gather<LockPort::Call, event::LockAnswered>(shell.lock_calls_, shell.inbox_,
                                                    std::move(submit), passage);
    }
    void operator()(action::StartHandler&& starting) const { start(std::move(starting)); }
    Runner& start(action::StartHandler&& starting) const {
        shell.observer_.handler_started(starting);
        Runner& runner = shell.runner_for(starting.run, starting.delivery);
        runner.start(std::move(starting));
        return runner;
    }
    void operator()(action::AskProbe&& ask) const {
        shell.runner_for(ask.run, ask.delivery).probe(std::move(ask));
    }
    void operator()(action::AskStop&& stop) const {
        shell.observer_.stop_asked(stop.run, stop.reason);
        if (Runner* runner = shell.runner_of(stop.run)) runner->ask_stop(stop.run, stop.reason);
    }
    void operator()(action::KillRun&& kill) const {
        if (Runner* runner = shell.runner_of(kill.run)) runner->kill(kill.run);
    }
    void operator()(action::CompleteCommit&& complete) const {
        if (Runner* runner = shell.runner_of(complete.run)) {
            runner->complete_commit(complete.run, complete.settled);
        }
    }
    void operator()(action::RunClosed&& closed) const {
        shell.running_.erase(closed.run);
        shell.observer_.run_closed(closed);
    }
    void operator()(action::SetTimer&& timer) const { shell.timer_ = timer.at; }
    void operator()(action::Recycle&& recycle) const { shell.observer_.recycling(recycle); }
    void operator()(action::Exit&& exit) const { shell.exit_ = std::move(exit); }
};

WorkerShell::WorkerShell(WorkerConfig config, Ports ports,
                         std::map<std::string, Runner*, std::less<>> runners,
                         ShellObserver& observer, std::shared_ptr<Inbox> inbox)
    : joint_queue_(config.queue.joint),
      locks_in_store_(config.locks_in_store),
      ports_(ports),
      runners_(std::move(runners)),
      observer_(observer),
      inbox_(std::move(inbox)),
      random_(std::make_unique<SeededRandom>()),
      concurrency_(config.concurrency),
      machine_(std::move(config), *random_) {}

WorkerShell::~WorkerShell() = default;

Runner& WorkerShell::runner_for(RunId run, const Delivery& delivery) {
    const auto found = runners_.find(delivery.row.job.kind);
    SEKALI_ASSERT(found != runners_.end(), "a job was claimed whose kind has no handler here");
    running_[run] = found->second;
    return *found->second;
}

Runner* WorkerShell::runner_of(RunId run) const {
    const auto found = running_.find(run);
    return found == running_.end() ? nullptr : found->second;
}

action::Exit WorkerShell::run() {
    std::jthread watcher([this](const std::stop_token& stop) { watch_changes(stop); });
    perform(machine_.on(event::Start{}, local_now()));
    while (!exit_) {
        submit_gathered();
        update_idle();
        if (under_way_ >= kCrowd) std::this_thread::sleep_for(kGathering);
        std::vector<Event> events = inbox_->wait(timer_);
        const LocalTime now = local_now();
        if (timer_ && now >= *timer_) {
            timer_.reset();
            events.emplace_back(event::Tick{});
        }
        handle(std::move(events), now);
        update_idle();
    }
    return *exit_;
}

void WorkerShell::handle(std::vector<Event> events, LocalTime now) {
    auto next = std::make_move_iterator(events.begin());
    const auto end = std::make_move_iterator(events.end());
    do {
        const auto behind = next + std::min(kEventsAtOnce, end - next);
        perform(machine_.on(std::vector<Event>(next, behind), now));
        submit_gathered();
        next = behind;
    } while (next != end);
}

void WorkerShell::stop() {
    inbox_->push(event::StopRequested{});
}

void WorkerShell::stop_now() {
    inbox_->push(event::StopNow{});
}

void WorkerShell::quiet() {
    inbox_->push(event::QuietRequested{});
}

/// Handlers are started first and their threads woken last: those whose commits are answered in
/// between take up the next ones without a pause.
void WorkerShell::perform(std::vector<Action> actions) {
    const auto starts = [](const Action& next) {
        return std::holds_alternative<action::StartHandler>(next);
    };
    store_calls_.reserve(store_calls_.size() + actions.size());
    const Performer performer{*this};
    Runner* last = nullptr;
    for (Action& next : actions) {
        if (!starts(next)) continue;
        Runner& runner = performer.start(std::get<action::StartHandler>(std::move(next)));
        if (last != nullptr && last != &runner) last->started_all();
        last = &runner;
    }
    for (Action& next : actions) {
        if (!starts(next)) std::visit(performer, std::move(next));
    }
    if (last != nullptr) last->started_all();
}

void WorkerShell::submit_gathered() {
    submit_all(ports_.locks, lock_calls_);
    submit_all(ports_.store, store_calls_);
    submit_all(ports_.queue, queue_calls_);
}

/// A worker without a free slot need not look for changes.
void WorkerShell::update_idle() {
    const WorkerStatus status = machine_.status();
    if (status.store_answers != store_answers_.value_or(false)) {
        // Before its first answer it has not been lost.
        if (store_answers_) observer_.store_answers(status.store_answers);
        store_answers_ = status.store_answers;
    }
    for (const auto& [kind, runner] : runners_)
        runner->may_take_over_until(status.may_take_over_until);
    under_way_ = status.claimed + status.running + status.settling;
    const bool idle = !status.stopping && under_way_ < concurrency_;
    bool woken = false;
    {
        const std::lock_guard guard(idle_mutex_);
        woken = !std::exchange(idle_, idle) && idle;
    }
    if (woken) idle_changed_.notify_one();
}

void WorkerShell::watch_changes(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock guard(idle_mutex_);
            if (!idle_changed_.wait(guard, stop, [this] { return idle_; })) return;
        }
        const LocalTime begun = local_now();
        ports_.changes.wait_for_change(kWatchSlice);
        // A wait to its end saw nothing; the machine looks by itself once an idle poll.
        if (local_now() - begun < kWatchSlice) inbox_->push_change();
    }
}

}  // namespace sekali::client
