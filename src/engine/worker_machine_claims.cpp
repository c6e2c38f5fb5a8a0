#include <algorithm>

#include "engine/worker_machine_core.hpp"

namespace sekali::engine {
namespace {

// After a look that found nothing, so that a busy neighbour's commits do not make a loop of looks.
constexpr Millis kBetweenEmptyLooks{5};
// Runs longer than this free their slots too seldom for claims ahead.
constexpr Millis kShortRun{100};
constexpr Millis kIdleClaim{500};
constexpr Millis kUnservedKind{1000};

}  // namespace

void WorkerMachine::Core::something_ready() {
    if (claims_in_flight_ > 0) change_while_claiming_ = true;
    claim_at_ = now_;
}

std::size_t WorkerMachine::Core::active() const {
    return runs_.size() - staged(Stage::kWaiting);
}

std::size_t WorkerMachine::Core::credit() const {
    const std::size_t ahead = run_time_ <= kShortRun ? config_.prefetch : 0;
    const std::size_t wanted = config_.concurrency + ahead;
    const std::size_t taken = runs_.size() + credit_in_flight_;
    return wanted > taken ? wanted - taken : 0;
}

bool WorkerMachine::Core::may_claim() const {
    if (stopping_ || quiet_ || solo_ != 0 || waiting_suspect() != nullptr ||
        config_.kinds.empty()) {
        return false;
    }
    return (config_.queue.push || claims_in_flight_ == 0) && credit() > 0;
}

void WorkerMachine::Core::claim() {
    const bool wanted = claim_is_lost_ ? claims_in_flight_ == 0 : may_claim() && claim_at_ <= now_;
    if (!wanted || claim_not_before_ > now_) return;
    Claim command;
    command.spec.ns = config_.ns;
    command.spec.queues = config_.queues;
    for (const auto& [kind, setup] : config_.kinds) {
        command.spec.kinds.push_back(kind);
        if (config_.queue.begins) command.begin.emplace(kind, setup.policy);
    }
    command.spec.limit = claim_is_lost_ ? 0 : credit();
    command.worker = config_.worker;
    command.lease = config_.lease;
    command.draining = config_.drain;
    command.may_take_over = trust_.whole_lease(now_);
    command.repeat = claim_is_lost_;
    if (command.repeat) command.known = known_claims();
    ++claims_in_flight_;
    credit_in_flight_ += command.spec.limit;
    change_while_claiming_ = false;
    const std::uint64_t limit = command.spec.limit;
    send(QueueCommand{std::move(command)}, {.purpose = Purpose::kClaim, .subject = limit});
}

/// Those of the runs, and those that are being given back.
std::vector<std::pair<std::string, std::uint64_t>> WorkerMachine::Core::known_claims() const {
    std::vector<std::pair<std::string, std::uint64_t>> known;
    for (const auto& [id, run] : runs_)
        known.emplace_back(run.ref.job_id, run.ref.delivery);
    for (const auto& [id, errand] : errands_) {
        for (const auto& step : errand.steps) {
            const auto* command = std::get_if<QueueCommand>(&step);
            const auto* given_back = command ? std::get_if<Return>(command) : nullptr;
            if (given_back == nullptr) continue;
            known.emplace_back(given_back->run.job_id, given_back->run.delivery);
        }
    }
    return known;
}

void WorkerMachine::Core::claim_answered(const Waiter& waiter, const Result<QueueReply>& reply) {
    --claims_in_flight_;
    credit_in_flight_ -= waiter.subject;
    const auto* claimed = reply.ok() ? std::get_if<Claimed>(&*reply) : nullptr;
    if (claimed == nullptr) {
        const bool may_be_applied = reply.ok() || reply.error().applied != Applied::kNo;
        if (config_.queue.begins && may_be_applied) claim_is_lost_ = true;
        claim_at_ = claim_not_before_ = now_ + backoff(++claim_failures_);
        return;
    }
    claim_failures_ = 0;
    claim_is_lost_ = false;
    for (const Delivery& delivery : claimed->deliveries)
        take_delivery(delivery, waiter.sent);
    if (claimed->drained && config_.drain && !stopping_ && runs_.empty()) {
        drained_ = true;
        begin_stop(now_, now_, now_ + kExitPatience);
        return;
    }
    if (claimed->more || change_while_claiming_) {
        claim_at_ = now_;
    } else {
        claim_at_ =
            now_ + std::min(config_.idle_poll, claimed->next_due.value_or(config_.idle_poll));
    }
    if (claimed->deliveries.empty()) claim_not_before_ = now_ + kBetweenEmptyLooks;
}

void WorkerMachine::Core::take_delivery(const Delivery& delivery, LocalTime asked) {
    Run run;
    run.id = ++last_id_;
    run.row = delivery.row;
    run.payload = std::exchange(run.row.job.payload, {});
    run.ref.job_id = run.row.job.id;
    run.ref.record = {run.row.job.ns, run.row.job.kind, run.row.job.key};
    run.ref.worker = config_.worker;
    run.ref.delivery = run.row.deliveries;
    run.ref.lock_key = run.row.job.lock_key;
    run.claimed_at = now_;
    if (joint()) {
        run.record_lease.emplace(config_.lease, asked);
    } else if (config_.queue.custody) {
        run.delivery_lease.emplace(config_.lease, asked);
    }
    const auto kind = config_.kinds.find(run.row.job.kind);
    if (kind != config_.kinds.end()) {
        run.setup = &kind->second;
        if (run.setup->policy.record == RecordMode::kNone) run.ref.record.key.clear();
    }
    Run& kept = runs_.emplace(run.id, std::move(run)).first->second;
    ++staged(kept.stage);
    touched_.push_back(kept.id);
    if (delivery.begun) {
        claim_has_begun(kept, *delivery.begun, asked);
    } else if (kept.setup == nullptr) {
        give_back(kept, kUnservedKind);
    } else if (stopping_ || quiet_) {
        give_back(kept, std::nullopt);
    } else {
        advance_leases(kept);  // the answer may have come when the claim's lease was over already
    }
}

void WorkerMachine::Core::claim_has_begun(Run& run, const BeginReply& reply, LocalTime asked) {
    run.lock_token = lock_token_of(config_.worker, run.id);
    enter(run, Stage::kBeginning);
    run.request.first_sent = asked;
    begin_answered(run, BeginReply{reply});
}

const WorkerMachine::Core::Run* WorkerMachine::Core::waiting_suspect() const {
    if (staged(Stage::kWaiting) == 0) return nullptr;
    for (const auto& [id, run] : runs_) {
        if (run.stage == Stage::kWaiting && run.row.suspect) return &run;
    }
    return nullptr;
}

void WorkerMachine::Core::take_turns() {
    if (stopping_ || staged(Stage::kWaiting) == 0) return;
    const Run* suspect = waiting_suspect();
    if (solo_ != 0 || suspect != nullptr) {
        take_turns_alone(suspect);
        return;
    }
    std::size_t busy = active();
    for (auto& [id, run] : runs_) {
        if (busy >= config_.concurrency) break;
        if (run.stage != Stage::kWaiting) continue;
        take_up(run);
        ++busy;
    }
    give_back_idle();
}

/// A suspect begins when nothing else has begun here, and nothing begins beside it (G7). What was
/// claimed together with it goes back, so that other workers need not wait for its end.
void WorkerMachine::Core::take_turns_alone(const Run* suspect) {
    for (auto next = runs_.begin(); next != runs_.end();) {
        Run& run = (next++)->second;
        const bool is_next = solo_ == 0 && &run == suspect;
        if (run.stage == Stage::kWaiting && !is_next) give_back(run, std::nullopt);
    }
    if (solo_ != 0 || active() > 0 || claim_is_lost_) return;
    solo_ = suspect->id;
    take_up(*find(solo_));
}

LocalTime WorkerMachine::Core::idle_claim_at(const Run& run) const {
    return run.claimed_at + kIdleClaim;
}

void WorkerMachine::Core::give_back_idle() {
    for (auto next = runs_.begin(); next != runs_.end();) {
        Run& run = (next++)->second;
        if (run.stage != Stage::kWaiting || idle_claim_at(run) > now_) continue;
        run_time_ = std::max(run_time_, kIdleClaim);
        give_back(run, std::nullopt);
    }
}

void WorkerMachine::Core::note_run_time(Millis time) {
    constexpr int kWeight = 8;
    run_time_ += (std::min(time, Millis{std::chrono::minutes{1}}) - run_time_) / kWeight;
}

/// For a claim of which the store knows no begin. Nothing is counted.
void WorkerMachine::Core::give_back(Run& run, std::optional<Millis> delay) {
    Errand errand;
    errand.steps.emplace_back(QueueCommand{Return{run.ref, delay}});
    add_lock_releases(run, errand);
    add_errand(std::move(errand));
    close(run);
}

}  // namespace sekali::engine
