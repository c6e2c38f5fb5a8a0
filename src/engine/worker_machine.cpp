#include "engine/worker_machine.hpp"

#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

constexpr Millis kFirstBackoff{50};
constexpr Millis kLongestBackoff{1000};
constexpr std::uint32_t kBackoffDoublings = 8;
constexpr Millis kTypicalRun{1000};  // until runs have been seen, nothing is claimed ahead

/// Whether the store itself is in trouble, as opposed to one request that it refused.
bool is_outage(const Error& error) {
    return error.code == ErrorCode::kUnreachable || error.code == ErrorCode::kRefused ||
           error.retryable;
}

}  // namespace

std::string_view to_string(StopReason reason) {
    switch (reason) {
        case StopReason::kTimeout:
            return "timeout";
        case StopReason::kCancel:
            return "cancel";
        case StopReason::kLeaseLost:
            return "lease_lost";
        case StopReason::kLockLost:
            return "lock_lost";
        case StopReason::kShutdown:
            return "shutdown";
    }
    return "unknown";
}

WorkerMachine::WorkerMachine(WorkerConfig config, Random& random)
    : core_(std::make_unique<Core>(std::move(config), random)) {}
WorkerMachine::~WorkerMachine() = default;
WorkerMachine::WorkerMachine(WorkerMachine&&) noexcept = default;
WorkerMachine& WorkerMachine::operator=(WorkerMachine&&) noexcept = default;

std::vector<Action> WorkerMachine::on(Event event, LocalTime now) {
    std::vector<Event> events;
    events.push_back(std::move(event));
    return core_->on(std::move(events), now);
}
std::vector<Action> WorkerMachine::on(std::vector<Event> events, LocalTime now) {
    return core_->on(std::move(events), now);
}
WorkerStatus WorkerMachine::status() const {
    return core_->status();
}

WorkerMachine::Core::Core(WorkerConfig config, Random& random)
    : config_(std::move(config)), random_(random), trust_(config_.lease), run_time_(kTypicalRun) {}

std::vector<Action> WorkerMachine::Core::on(std::vector<Event> events, LocalTime now) {
    actions_.clear();
    if (exited_) return {};
    now_ = std::max(now_, now);
    trust_.seen(now_);
    actions_.reserve(2 * events.size());
    for (Event& event : events)
        std::visit([this](auto& happened) { handle(happened); }, event);
    if (started_) advance();
    return std::exchange(actions_, {});
}

WorkerStatus WorkerMachine::Core::status() const {
    WorkerStatus status;
    status.claimed = staged(Stage::kWaiting) + staged(Stage::kLocking) + staged(Stage::kBeginning);
    status.running = staged(Stage::kProbing) + staged(Stage::kRunning) + staged(Stage::kLingering);
    status.stuck = staged(Stage::kStuck);
    status.settling = staged(Stage::kAnswering) + staged(Stage::kSettling);
    status.store_answers = trust_.answers();
    status.stopping = stopping_;
    status.may_take_over_until = trust_.whole_lease_until();
    return status;
}

void WorkerMachine::Core::handle(event::Start&) {
    if (started_) return;
    started_ = true;
    claim_at_ = heartbeat_at_ = recover_at_ = now_;
}

void WorkerMachine::Core::handle(event::QueueAnswered& answered) {
    const auto waiter = take(answered.tag);
    if (!waiter) return;
    if (joint()) note_answer(*waiter, answered.reply);
    switch (waiter->purpose) {
        case Purpose::kClaim:
            claim_answered(*waiter, answered.reply);
            break;
        case Purpose::kExtend:
            extend_answered(*waiter, answered.reply);
            break;
        case Purpose::kErrand:
            errand_answered(*waiter, answered.reply.ok());
            break;
        default:
            break;
    }
}

void WorkerMachine::Core::handle(event::StoreAnswered& answered) {
    const auto waiter = take(answered.tag);
    if (!waiter) return;
    note_answer(*waiter, answered.reply);
    switch (waiter->purpose) {
        case Purpose::kRun: {
            Run* run = find(waiter->subject);
            if (run == nullptr || run->request.tag != answered.tag) break;
            run->request.tag = 0;
            store_answered_run(*run, std::move(answered.reply));
            break;
        }
        case Purpose::kRenew:
        case Purpose::kLook:
            renew_answered(*waiter, answered.reply);
            break;
        case Purpose::kHeartbeat:
            heartbeat_in_flight_ = false;
            if (!answered.reply.ok()) heartbeat_at_ = now_ + backoff(kBackoffDoublings);
            break;
        case Purpose::kLeave:
            left_ = true;
            break;
        case Purpose::kRecover:
            recover_answered(answered.reply);
            break;
        default:
            break;
    }
}

void WorkerMachine::Core::handle(event::LockAnswered& answered) {
    const auto waiter = take(answered.tag);
    if (!waiter) return;
    switch (waiter->purpose) {
        case Purpose::kRun: {
            Run* run = find(waiter->subject);
            if (run == nullptr || run->request.tag != answered.tag) break;
            run->request.tag = 0;
            if (answered.reply.ok()) {
                lock_answered(*run, *answered.reply);
            } else {
                lock_failed(*run);
            }
            break;
        }
        case Purpose::kRenewLock:
            lock_renew_answered(*waiter, answered.reply);
            break;
        case Purpose::kErrand:
            errand_answered(*waiter, answered.reply.ok());
            break;
        default:
            break;
    }
}

void WorkerMachine::Core::advance() {
    advance_stop();
    // What an event has made due is found by the timer that it sets.
    if (stopping_ || !timer_ || *timer_ <= now_) advance_runs();
    if (recycle_ && !stopping_) begin_stop(config_.grace);
    advance_errands();
    take_turns();
    claim();
    if (heartbeat_at_ <= now_ && !heartbeat_in_flight_ && !leave_by_) heartbeat(false);
    if (recover_at_ <= now_ && !recover_in_flight_ && !stopping_) recover();
    advance_exit();
    if (!exited_) set_timer();
}

void WorkerMachine::Core::advance_runs() {
    for (auto next = runs_.begin(); next != runs_.end();) {
        Run& run = (next++)->second;  // its turn may end and erase it
        touched_.push_back(run.id);
        if (run.request.retry_at && *run.request.retry_at <= now_) resend(run);
        if (advance_limits(run)) advance_leases(run);
    }
}

void WorkerMachine::Core::set_timer() {
    const bool beats = !heartbeat_in_flight_ && !leave_by_;
    LocalTime wake = beats ? heartbeat_at_ : now_ + config_.lease;
    if (!stopping_ && !recover_in_flight_) wake = std::min(wake, recover_at_);
    if (claim_is_lost_ && claims_in_flight_ == 0) {
        wake = std::min(wake, claim_not_before_);
    } else if (may_claim()) {
        wake = std::min(wake, std::max(claim_at_, claim_not_before_));
    }
    if (const auto at = first_wake()) wake = std::min(wake, *at);
    for (const auto& [id, errand] : errands_) {
        if (errand.request.retry_at) wake = std::min(wake, *errand.request.retry_at);
    }
    if (stopping_) {
        wake = std::min(wake, exit_by_);
        if (!stop_asked_) wake = std::min(wake, stop_at_);
        if (kill_at_ > now_) wake = std::min(wake, kill_at_);
        if (leave_by_) wake = std::min(wake, *leave_by_);
    }
    if (timer_ == wake && *timer_ > now_) return;
    timer_ = wake;
    act(action::SetTimer{wake});
}

/// The first time that any run asks for. Only those that an event concerned are asked again,
/// because the runs may be many and so may the events be.
std::optional<LocalTime> WorkerMachine::Core::first_wake() {
    if (stopping_) {
        for (const auto& [id, run] : runs_)
            touched_.push_back(id);
    }
    for (const RunId id : std::exchange(touched_, {})) {
        const auto run = runs_.find(id);
        if (run != runs_.end()) wake_at(run->second, next_wake(run->second));
    }
    if (wakes_.empty()) return std::nullopt;
    return wakes_.begin()->first;
}

void WorkerMachine::Core::wake_at(Run& run, std::optional<LocalTime> at) {
    if (run.wake == at) return;
    if (run.wake) wakes_.erase({*run.wake, run.id});
    if (at) wakes_.emplace(*at, run.id);
    run.wake = at;
}

void WorkerMachine::Core::enter(Run& run, Stage stage) {
    --staged(run.stage);
    ++staged(stage);
    run.stage = stage;
}

std::optional<WorkerMachine::Core::Waiter> WorkerMachine::Core::take(Tag tag) {
    const auto found = waiters_.find(tag);
    if (found == waiters_.end()) return std::nullopt;
    Waiter waiter = std::move(found->second);
    waiters_.erase(found);
    return waiter;
}

WorkerMachine::Core::Run* WorkerMachine::Core::find(RunId id) {
    const auto found = runs_.find(id);
    if (found == runs_.end()) return nullptr;
    touched_.push_back(id);
    return &found->second;
}

template <typename T>
void WorkerMachine::Core::note_answer(const Waiter& waiter, const Result<T>& reply) {
    if (!reply.ok() && is_outage(reply.error())) {
        trust_.failed();
    } else {
        trust_.answered(waiter.sent, now_);
    }
}

Tag WorkerMachine::Core::expect(Waiter waiter) {
    waiter.sent = now_;
    waiters_.emplace(++last_tag_, std::move(waiter));
    return last_tag_;
}

Tag WorkerMachine::Core::send(QueueCommand&& command, Waiter waiter) {
    const Tag tag = expect(std::move(waiter));
    act(action::SubmitQueue{tag, std::move(command)});
    return tag;
}

Tag WorkerMachine::Core::send(StoreCommand&& command, Waiter waiter) {
    const Tag tag = expect(std::move(waiter));
    act(action::SubmitStore{tag, std::move(command)});
    return tag;
}

Tag WorkerMachine::Core::send(LockCommand&& command, Waiter waiter) {
    const Tag tag = expect(std::move(waiter));
    act(action::SubmitLock{tag, std::move(command)});
    return tag;
}

void WorkerMachine::Core::sent(Run& run, Tag tag) {
    run.request.tag = tag;
    run.request.retry_at.reset();
    if (!run.request.first_sent) run.request.first_sent = now_;
}

void WorkerMachine::Core::retry_later(Request& request) {
    request.retry_at = now_ + backoff(++request.failures);
}

Millis WorkerMachine::Core::backoff(std::uint32_t failures) {
    const std::uint32_t doublings = std::min(failures, kBackoffDoublings);
    const Millis longest = std::min(kLongestBackoff, config_.lease / 3);
    const Millis whole = std::min(kFirstBackoff * (1 << doublings) / 2, longest);
    const double kept = 1.0 - random_.next() / 2;
    return Millis{std::max<Millis::rep>(
        1, static_cast<Millis::rep>(static_cast<double>(whole.count()) * kept))};
}

}  // namespace sekali::engine
