#include <algorithm>

#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

/// One begin: what section 4, step 3 says, case by case. `decide` returns the answer where the
/// handler does not start, and nothing where it may.
class BeginRun {
 public:
    BeginRun(Tables& tables, const Begin& request) : tables_(tables), request_(request) {}

    BeginReply answer();
    /// For a row that is claimed, which the tables do not know yet; nothing where the general way
    /// has to be gone.
    std::optional<BeginReply> answer_claimed(JobRow& row);

 private:
    std::optional<BeginReply> claim_answer();
    BeginReply cancel_before_begin();
    BeginReply begin_without_record();
    std::optional<BeginReply> decide();
    std::optional<BeginReply> decide_ended();
    std::optional<BeginReply> decide_processing();
    std::optional<BeginReply> judge_mark();
    void give_up_reservation();
    std::optional<BeginReply> take_lock();
    BeginReply lock_busy();
    BeginReply start();
    [[nodiscard]] std::optional<LockRow> own_lock();
    Started started_as_before();
    BeginReply hold();
    BeginReply end_as(JobState state, std::string reason);
    BeginReply wait_for_key();
    BeginReply wait_for_time(Millis delay, WaitFor wait, std::string name);

    [[nodiscard]] bool is_own_run() const {
        return record_->state == RecordState::kProcessing && record_->owner == run().worker &&
               record_->delivery == run().delivery && record_->job_id == row_.job.id;
    }
    [[nodiscard]] const RunRef& run() const { return request_.run; }

    Tables& tables_;
    const Begin& request_;
    JobRow row_;
    std::optional<RecordRow> record_;
    std::optional<LockRow> lock_;
    bool took_over_ = false;
    bool owner_died_ = false;
};

BeginReply BeginRun::answer() {
    if (auto reply = claim_answer()) return *reply;
    if (row_.cancel_requested && !row_.begun) return cancel_before_begin();
    if (request_.policy.record == RecordMode::kNone) return begin_without_record();
    record_ = tables_.record(record_key(row_.job));
    if (record_) {
        if (auto reply = decide()) return *reply;
    }
    if (auto reply = take_lock()) return *reply;
    return start();
}

/// A first begin of its key writes the row once for claim and begin.
std::optional<BeginReply> BeginRun::answer_claimed(JobRow& row) {
    const bool recorded = request_.policy.record != RecordMode::kNone;
    if (row.cancel_requested || (recorded && tables_.record(record_key(row.job)))) return {};
    const auto [epoch, slot_held] = std::pair{row.epoch, row.slot_held};
    row_ = std::move(row);
    BeginReply reply = recorded ? start() : begin_without_record();
    row = std::move(row_);
    row.begun = false;
    row.epoch = epoch;
    row.slot_held = slot_held;
    return reply;
}

/// Whether the claim still is this worker's; a job of a queue without custody is adopted here.
std::optional<BeginReply> BeginRun::claim_answer() {
    auto row = tables_.job(run().job_id);
    if (!row) {
        if (const auto done = tables_.finished_job(run().job_id)) {
            note(tables_, EventKind::kAckLost, *done, run().worker,
                 "delivered again after its end");
            return Ended{done->state, done->reason, done->result};
        }
        if (!request_.adopt) return Gone{};
        row.emplace();
        row->job = request_.job;
        row->state = JobState::kRunning;
        row->owner = run().worker;
        row->deliveries = run().delivery;
        row->enqueued_at = row->run_at = tables_.now();
        row->lease_until = tables_.now() + request_.lease;
        tables_.insert_job(*row);
    }
    row_ = std::move(*row);
    // The id of a dropped job may come back as other work, whose deliveries count anew.
    if (row_.state != JobState::kRunning || row_.owner != run().worker ||
        row_.deliveries != run().delivery || record_key(row_.job) != record_key(request_.job)) {
        return Gone{};
    }
    return std::nullopt;
}

/// A cancel that was asked for between claim and begin: nothing has started, so it is no request.
BeginReply BeginRun::cancel_before_begin() {
    requeue(tables_, row_, Millis{0});
    const AdminReply reply =
        cancel_job(tables_, row_.job.id, std::string{row_.requested_by}, "cancelled");
    if (reply.kind != AdminReply::Kind::kDone) return HeldBack{};
    return Ended{JobState::kCancelled, "cancelled", {}};
}

BeginReply BeginRun::begin_without_record() {
    Started reply;
    if (row_.begun) {
        lock_ = own_lock();
        reply.lock_lost = !row_.job.lock_key.empty() && !lock_;
    } else {
        if (auto refused = take_lock()) return *refused;
        ++row_.epoch;
        row_.begun = true;
        row_.lease_until = tables_.now() + request_.lease;
        if (row_.job.unique_until == UniqueUntil::kStart) row_.slot_held = false;
        tables_.update_job(row_);
    }
    reply.epoch = row_.epoch;
    reply.fence = lock_ ? lock_->fence : 0;
    reply.attempt = row_.attempts + 1;
    return reply;
}

std::optional<BeginReply> BeginRun::decide() {
    if (is_own_run()) {
        auto reply = started_as_before();
        reply.lock_lost = !row_.job.lock_key.empty() && !own_lock();
        return reply;
    }
    const bool ended =
        record_->state == RecordState::kDead || record_->state == RecordState::kCancelled;
    const bool other_payload = row_.job.fingerprint_rule == record_->fingerprint_rule &&
                               row_.job.fingerprint != record_->fingerprint;
    if (other_payload && (!ended || record_->marked)) {
        note(tables_, EventKind::kKeyReused, row_, run().worker,
             "the key is recorded with another payload by job " + record_->job_id);
        return end_as(JobState::kDead, "key_reused");
    }
    switch (record_->state) {
        case RecordState::kSucceeded:
        case RecordState::kDead:
        case RecordState::kCancelled:
            return decide_ended();
        case RecordState::kHeld:
            if (record_->job_id != row_.job.id) return wait_for_key();
            hold_job(tables_, row_, record_->mark_cause);
            return HeldBack{};
        case RecordState::kProcessing:
            return decide_processing();
        case RecordState::kRetryable:
            if (record_->not_before > tables_.now()) {
                if (record_->job_id != row_.job.id) return wait_for_key();
                return wait_for_time(record_->not_before - tables_.now(), WaitFor::kKey,
                                     row_.job.key);
            }
            return judge_mark();
    }
    return std::nullopt;
}

std::optional<BeginReply> BeginRun::decide_ended() {
    const bool own = record_->job_id == row_.job.id;
    if (record_->state == RecordState::kSucceeded) {
        row_.result = record_->result;
        row_.epoch = own ? record_->epoch : row_.epoch;
        note(tables_, own ? EventKind::kAckLost : EventKind::kDuplicate, row_, run().worker,
             own ? "delivered again after its success" : "succeeded as job " + record_->job_id);
        return end_as(own ? JobState::kSucceeded : JobState::kDuplicate, {});
    }
    // The producer knew this very end and asked again: a fresh start with its own attempts.
    if (!own && row_.job.named_end == record_->ends) return judge_mark();
    const JobState end =
        record_->state == RecordState::kDead ? JobState::kDead : JobState::kCancelled;
    return end_as(end, own ? "settled_before" : "key_ended_as_job_" + record_->job_id);
}

std::optional<BeginReply> BeginRun::decide_processing() {
    // Recovery may have proven the death of a worker that is forgotten by now.
    const bool proven =
        owner_is_gone(tables_, record_->owner) || (record_->death_proven && !record_->probing);
    if (!proven && record_->lease_until > tables_.now()) return wait_for_key();
    if (!proven && !lapse_is_judged(*record_) && !request_.may_take_over) {
        return wait_for_time(request_.lease / 3, WaitFor::kKey, row_.job.key);
    }
    took_over_ = true;
    owner_died_ = proven;
    mark_lost_run(tables_, *record_, proven);
    if (!record_->probing) {
        auto lost = tables_.job(record_->job_id);
        if (!lost) lost = tables_.finished_job(record_->job_id);
        if (lost) {
            add_attempt_of(tables_, *lost, *record_, proven ? "crashed" : "lapsed",
                           proven ? "the worker died" : "the lease lapsed");
        }
    }
    release_lock_of(tables_, RunRef{record_->job_id, record_->id, record_->owner, record_->delivery,
                                    record_->epoch, record_->lock_key, record_->fence});
    return judge_mark();
}

/// The unknown policy: what a mark lets happen next.
std::optional<BeginReply> BeginRun::judge_mark() {
    if (!record_->marked) return std::nullopt;
    switch (std::max(record_->on_unknown, request_.policy.on_unknown)) {
        case OnUnknown::kRerun:
            return std::nullopt;
        case OnUnknown::kHold:
            return hold();
        case OnUnknown::kProbe:
            break;
    }
    const bool open_step = has_open_step(tables_, record_->id);
    const auto probe = request_.policy.probe;
    if (probe == KindPolicy::Probe::kNone || (probe == KindPolicy::Probe::kInStep && !open_step)) {
        return hold();
    }
    // Where nobody proved its death the earlier process may still be about to act.
    if (!record_->death_proven && tables_.now() < record_->probe_after) {
        tables_.put_record(*record_);
        return wait_for_time(record_->probe_after - tables_.now(), WaitFor::kKey, row_.job.key);
    }
    return std::nullopt;
}

BeginReply BeginRun::hold() {
    // The owner stays: while nobody has answered, its late commit is still the best answer.
    record_->state = RecordState::kHeld;
    record_->probing = false;
    auto holder =
        record_->job_id == row_.job.id ? std::optional<JobRow>{row_} : tables_.job(record_->job_id);
    const bool other_is_live = holder && holder->job.id != row_.job.id;
    if (!holder) {
        record_->job_id = row_.job.id;
        holder = row_;
    }
    tables_.put_record(*record_);
    if (!other_is_live) {
        hold_job(tables_, row_, record_->mark_cause);
        return HeldBack{};
    }
    const bool lost_claim = took_over_ && holder->state == JobState::kRunning;
    if (lost_claim && record_->death_proven) {
        ++holder->crashes;
        holder->suspect = true;
        // Its neighbours in that process are recovered later and must not look as if alone.
        static_cast<void>(company_at_death(tables_, holder->job.ns, holder->owner));
    } else if (lost_claim) {
        ++holder->interruptions;
    }
    if (lost_claim || (holder->state != JobState::kRunning && holder->state != JobState::kHeld)) {
        hold_job(tables_, *holder, record_->mark_cause);
    }
    return wait_for_key();
}

/// The lock row as an earlier begin of this claim took it, or nothing when it is no longer so.
std::optional<LockRow> BeginRun::own_lock() {
    auto lock = tables_.lock(row_.job.ns, row_.job.lock_key);
    const bool own = lock && lock->owner == run().worker && lock->job_id == row_.job.id &&
                     lock->token == request_.lock_token;
    return own ? lock : std::nullopt;
}

/// Others outside hold what the store kept free for this job; nobody is to wait for that here.
void BeginRun::give_up_reservation() {
    auto lock = tables_.lock(row_.job.ns, row_.job.lock_key);
    if (!lock || lock->reserved_for != row_.job.id) return;
    lock->reserved_for.clear();
    lock->reserved_until = StoreTime{};
    tables_.put_lock(*lock);
}

std::optional<BeginReply> BeginRun::take_lock() {
    if (row_.job.lock_key.empty()) return std::nullopt;
    if (request_.lock_refused) {
        give_up_reservation();
        return lock_busy();
    }
    lock_ = tables_.lock(row_.job.ns, row_.job.lock_key);
    if (!lock_) {
        lock_.emplace();
        lock_->ns = row_.job.ns;
        lock_->name = row_.job.lock_key;
        lock_->fence = tables_.fence_floor();
    }
    if (!own_lock()) {
        if (lock_is_live(tables_, *lock_)) return lock_busy();
        const bool lapsed = !lock_->owner.empty() && !owner_is_gone(tables_, lock_->owner);
        if (lapsed && !request_.may_take_over) {
            return wait_for_time(request_.lease / 3, WaitFor::kLock, lock_->name);
        }
        if (!lock_->reserved_for.empty() && lock_->reserved_for != row_.job.id &&
            lock_->reserved_until > tables_.now()) {
            return lock_busy();
        }
        ++lock_->fence;
    }
    lock_->owner = run().worker;
    lock_->job_id = row_.job.id;
    lock_->token = request_.lock_token;
    lock_->lease_until = tables_.now() + request_.lease;
    lock_->reserved_for.clear();
    lock_->reserved_until = StoreTime{};
    tables_.put_lock(*lock_);
    return std::nullopt;
}

BeginReply BeginRun::lock_busy() {
    if (took_over_) tables_.put_record(*record_);
    switch (request_.policy.on_busy) {
        case OnBusy::kWait:
            break;
        case OnBusy::kSkip:
            note(tables_, EventKind::kCancelled, row_, run().worker, "lock_busy");
            return end_as(JobState::kCancelled, "lock_busy");
        case OnBusy::kFail: {
            const RetryPolicy retry = apply(request_.policy.retry, row_.job.retry);
            row_.error = "the lock \"" + row_.job.lock_key + "\" is busy";
            ++row_.attempts;
            if (row_.attempts >= retry.max_attempts) return end_as(JobState::kDead, "lock_busy");
            const Millis delay = backoff_delay(retry, row_.attempts, request_.random);
            requeue(tables_, row_, delay);
            return Parked{WaitFor::kNothing, {}, delay};
        }
    }
    park(tables_, row_, WaitFor::kLock, row_.job.lock_key);
    return Parked{WaitFor::kLock, row_.job.lock_key, std::nullopt};
}

BeginReply BeginRun::start() {
    const bool fresh = !record_;
    if (fresh) {
        record_.emplace();
        record_->id = record_key(row_.job);
        record_->epoch = tables_.epoch_floor();
    }
    const KindPolicy& policy = request_.policy;
    const bool other_payload = !fresh && record_->fingerprint != row_.job.fingerprint;
    if (took_over_) {
        note(tables_, EventKind::kTakeover, row_, run().worker,
             "from " + record_->owner + (owner_died_ ? ": it died" : ": its lease lapsed"));
    }
    record_->effects =
        fresh || !record_->marked ? policy.effects : std::min(record_->effects, policy.effects);
    record_->on_unknown = fresh || !record_->marked
                              ? policy.on_unknown
                              : std::max(record_->on_unknown, policy.on_unknown);
    // Steps belong to the key and are kept for its next job; those of another payload say nothing.
    if (other_payload) tables_.erase_steps(record_->id);
    record_->probing = record_->marked && record_->on_unknown == OnUnknown::kProbe &&
                       policy.probe == KindPolicy::Probe::kBefore;
    record_->state = RecordState::kProcessing;
    record_->job_id = row_.job.id;
    ++record_->epoch;
    record_->owner = run().worker;
    record_->delivery = run().delivery;
    record_->lease_until = tables_.now() + request_.lease;
    record_->fingerprint = row_.job.fingerprint;
    record_->fingerprint_rule = row_.job.fingerprint_rule;
    record_->not_before = StoreTime{};
    record_->whole_answer = policy.whole_answer;
    record_->lock_key = row_.job.lock_key;
    record_->fence = lock_ ? lock_->fence : 0;
    record_->attempt = row_.attempts + 1;
    record_->started_at = tables_.now();
    record_->finished_at.reset();
    record_->keep = policy.keep;
    if (!record_->probing) {
        record_->death_proven = false;
        record_->probe_after = tables_.now() + policy.timeout + policy.grace;
    }
    tables_.put_record(*record_);

    row_.begun = !record_->probing;
    row_.epoch = record_->epoch;
    row_.lease_until = record_->lease_until;
    if (row_.job.unique_until == UniqueUntil::kStart) row_.slot_held = false;
    tables_.update_job(row_);
    return started_as_before();
}

Started BeginRun::started_as_before() {
    Started reply;
    reply.epoch = record_->epoch;
    reply.fence = record_->fence;
    reply.attempt = record_->attempt;
    // A record of the first epoch above the floor has no steps from before.
    if (record_->epoch > 1) reply.steps = tables_.steps(record_->id);
    reply.probe_first = record_->probing;
    reply.ask_in_step =
        record_->marked && record_->on_unknown == OnUnknown::kProbe && !record_->probing;
    return reply;
}

BeginReply BeginRun::end_as(JobState state, std::string reason) {
    end_job(tables_, row_, state, std::move(reason));
    wake_for_key(tables_, record_key(row_.job));
    return Ended{row_.state, row_.reason, row_.result};
}

BeginReply BeginRun::wait_for_key() {
    park(tables_, row_, WaitFor::kKey, row_.job.key);
    return Parked{WaitFor::kKey, row_.job.key, std::nullopt};
}

BeginReply BeginRun::wait_for_time(Millis delay, WaitFor wait, std::string name) {
    requeue(tables_, row_, std::max(delay, Millis{1}));
    return Parked{wait, std::move(name), delay};
}

}  // namespace

BeginReply begin(Tables& tables, const Begin& request) {
    return BeginRun{tables, request}.answer();
}

BeginReply begin_claimed(Tables& tables, Begin request, JobRow& row) {
    if (auto reply = BeginRun{tables, request}.answer_claimed(row)) return *std::move(reply);
    tables.update_job(row);
    request.job = row.job;
    return begin(tables, request);
}

BeginReply begin_inline(Tables& tables, const Begin& request) {
    Begin adopted = request;
    adopted.adopt = true;
    const auto record = tables.record(record_key(request.job));
    if (record) {
        const bool own = record->owner == request.run.worker && record->job_id == request.job.id;
        const bool waits =
            record->state == RecordState::kHeld ||
            (record->state == RecordState::kRetryable && record->not_before > tables.now()) ||
            (record->state == RecordState::kProcessing && record->lease_until > tables.now() &&
             !owner_is_gone(tables, record->owner));
        const bool reused = record->fingerprint_rule == request.job.fingerprint_rule &&
                            record->fingerprint != request.job.fingerprint;
        if (waits && !reused && !own) {
            if (record->state == RecordState::kHeld) return HeldBack{};
            return Parked{WaitFor::kKey, request.job.key, std::nullopt};
        }
        // The caller asks now, so whatever end is recorded is one that it knows.
        adopted.job.named_end = record->ends;
    }
    const BeginReply reply = begin(tables, adopted);
    if (!std::holds_alternative<Parked>(reply)) return reply;
    // A caller that has to wait leaves no job behind that nobody would ever claim.
    if (auto row = tables.job(request.job.id)) {
        row->state = JobState::kCancelled;
        tables.finish_job(*row);
        tables.erase_finished(request.job.id);
    }
    const auto now_recorded = tables.record(record_key(request.job));
    if (now_recorded && now_recorded->state == RecordState::kHeld) return HeldBack{};
    return reply;
}

}  // namespace sekali::engine
