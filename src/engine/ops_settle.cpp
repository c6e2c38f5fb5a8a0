#include <algorithm>

#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

using Kind = Outcome::Kind;

std::string_view outcome_name(Kind kind) {
    switch (kind) {
        case Kind::kSuccess:
            return "succeeded";
        case Kind::kRetry:
            return "failed";
        case Kind::kPermanent:
            return "permanent";
        case Kind::kSnooze:
            return "snoozed";
        case Kind::kCancel:
            return "cancelled";
        case Kind::kTimeout:
            return "timeout";
        case Kind::kCrashed:
            return "crashed";
        case Kind::kInterrupted:
            return "interrupted";
        case Kind::kHold:
            return "unknown";
    }
    return "failed";
}

/// The end of one run: section 4, step 5, and G6 for every end that is no answer.
class SettleRun {
 public:
    SettleRun(Tables& tables, const Settle& request)
        : tables_(tables), request_(request), outcome_(request.outcome) {}

    Settled apply_outcome();

 private:
    [[nodiscard]] bool has_record() const { return !run().record.key.empty(); }
    [[nodiscard]] const RunRef& run() const { return request_.run; }
    [[nodiscard]] bool job_is_mine() const { return claim_is_mine(row_, run()); }
    [[nodiscard]] bool run_is_mine() const {
        return record_ && record_->owner == run().worker && record_->epoch == run().epoch &&
               record_->delivery == run().delivery;
    }
    std::optional<Settled> refuse();
    Settled superseded();
    [[nodiscard]] bool takes_crash_back();
    [[nodiscard]] bool fence_holds();
    Settled succeed();
    Settled fenced();
    Settled fail();
    [[nodiscard]] bool is_unknown();
    void mark();
    Settled hold(std::string reason);
    Settled end(JobState state, std::string reason);
    Settled retry_later(Millis delay);
    void count();
    Settled end_or_retry();
    void close_run();

    Tables& tables_;
    const Settle& request_;
    Outcome outcome_;
    std::optional<JobRow> row_;
    std::optional<RecordRow> record_;
};

Settled SettleRun::apply_outcome() {
    row_ = tables_.job(run().job_id);
    if (has_record()) record_ = tables_.record(run().record);
    if (auto refused = refuse()) return *refused;
    if (outcome_.kind == Kind::kSuccess) return fence_holds() ? succeed() : fenced();
    return fail();
}

/// The guard of every write of a runner: owner, delivery and epoch.
std::optional<Settled> SettleRun::refuse() {
    if (!has_record()) {
        if (!job_is_mine()) return superseded();
        return std::nullopt;
    }
    if (!run_is_mine()) return superseded();
    if (record_->state == RecordState::kProcessing) {
        // Without its claim a runner may still bring the answer, but decides nothing else.
        if (outcome_.kind != Kind::kSuccess && !job_is_mine()) return superseded();
        return std::nullopt;
    }
    if (record_->state == RecordState::kHeld && outcome_.kind == Kind::kSuccess) {
        return std::nullopt;
    }
    if (record_->state == RecordState::kHeld) return superseded();
    // This very run was settled before and its reply was lost.
    Settled again;
    const auto done = row_ ? row_ : tables_.finished_job(run().job_id);
    again.state = done ? done->state : JobState::kSucceeded;
    return again;
}

Settled SettleRun::superseded() {
    JobRow evidence;
    evidence.job = request_.job;
    evidence.job.payload.clear();
    evidence.epoch = run().epoch;
    std::string detail{outcome_name(outcome_.kind)};
    if (takes_crash_back()) {
        --row_->crashes;
        ++row_->interruptions;
        tables_.update_job(*row_);
        detail += "; its worker lives, so its crash is taken back";
    }
    note(tables_, EventKind::kSuperseded, evidence, run().worker, std::move(detail));
    if (outcome_.kind == Kind::kSuccess) {
        note(tables_, EventKind::kLateResult, evidence, run().worker, outcome_.result);
    }
    release_lock_of(tables_, run());
    Settled reply;
    reply.kind = Settled::Kind::kSuperseded;
    return reply;
}

/// Whether the job was charged with a death of this run's worker, which lives after all and says so
/// for the first time.
bool SettleRun::takes_crash_back() {
    const bool may_be_charged = row_ && row_->crashes > 0 && outcome_.kind != Kind::kCrashed;
    if (!may_be_charged || owner_is_gone(tables_, run().worker)) return false;
    const RecordKey key = record_key(request_.job);
    const auto attempts = tables_.attempts_of_key(key);
    const bool charged = std::any_of(attempts.begin(), attempts.end(), [&](const auto& attempt) {
        return attempt.job_id == run().job_id && attempt.epoch == run().epoch &&
               attempt.worker == run().worker && attempt.outcome == "crashed";
    });
    const auto events = tables_.events_of_key(key);
    const bool known = std::any_of(events.begin(), events.end(), [&](const auto& event) {
        return event.event == EventKind::kSuperseded && event.job_id == run().job_id &&
               event.epoch == run().epoch && event.worker == run().worker;
    });
    return charged && !known;
}

bool SettleRun::fence_holds() {
    // Every grant and every break raises the fence, so the same one on a free lock means that
    // nobody has begun since recovery took it from a run that was late.
    const auto holds = [&](const std::string& name, std::uint64_t fence) {
        const auto lock = tables_.lock(run().record.ns, name);
        return lock && lock->fence == fence && (lock->owner == run().worker || lock->owner.empty());
    };
    if (run().fence != 0 && !holds(run().lock_key, run().fence)) return false;
    return std::all_of(request_.extra_locks.begin(), request_.extra_locks.end(),
                       [&](const Settle::ExtraLock& lock) { return holds(lock.name, lock.fence); });
}

Settled SettleRun::succeed() {
    Settled reply;
    if (request_.effects) {
        const Result<void> written = tables_.run_effects(request_.effects);
        if (!written) {
            reply.kind = Settled::Kind::kEffectsFailed;
            reply.error = written.error().message;
            return reply;
        }
    }
    close_run();
    if (record_) {
        record_->marked = false;
        record_->mark_cause.clear();
        record_->result = outcome_.result;
        record_->job_id = run().job_id;
        end_record(tables_, *record_, RecordState::kSucceeded);
    }
    // A claim of another worker ends at its begin, which finds the success.
    if (row_ && (row_->state != JobState::kRunning || job_is_mine())) {
        ++row_->attempts;
        row_->result = outcome_.result;
        row_->error.clear();
        row_->epoch = run().epoch;
        end_job(tables_, *row_, JobState::kSucceeded, {});
    }
    wake_for_key(tables_, record_key(request_.job));
    reply.state = JobState::kSucceeded;
    return reply;
}

/// Only the lock was begun by another: the record is still ours, and we release it.
Settled SettleRun::fenced() {
    if (!job_is_mine() || (record_ && record_->state != RecordState::kProcessing)) {
        return superseded();
    }
    note(tables_, EventKind::kLockFenced, *row_, run().worker, "lock " + run().lock_key);
    outcome_.kind = Kind::kInterrupted;
    outcome_.reason = "lock_fenced";
    outcome_.error = "the lock \"" + run().lock_key + "\" was taken by another run";
    Settled reply = fail();
    reply.kind = Settled::Kind::kLockFenced;
    return reply;
}

bool SettleRun::is_unknown() {
    if (!record_) return false;
    switch (outcome_.kind) {
        case Kind::kTimeout:
        case Kind::kCrashed:
        case Kind::kInterrupted:
        case Kind::kRetry:
            return !outcome_.nothing_applied && ends_unknown(tables_, *record_);
        case Kind::kHold:
            return true;
        case Kind::kPermanent:
            return record_->on_unknown != OnUnknown::kRerun && ends_unknown(tables_, *record_);
        case Kind::kSuccess:
        case Kind::kSnooze:
        case Kind::kCancel:
            return false;
    }
    return true;
}

void SettleRun::mark() {
    // Who only asked the probe has begun no handler: its end says nothing about the run before it.
    if (record_->probing && outcome_.kind != Kind::kHold) return;
    record_->marked = true;
    record_->mark_cause =
        outcome_.reason.empty() ? std::string{outcome_name(outcome_.kind)} : outcome_.reason;
    if (!record_->probing) record_->death_proven = outcome_.process_gone;
}

Settled SettleRun::fail() {
    row_->error = outcome_.error;
    row_->suspect = outcome_.kind == Kind::kCrashed;
    close_run();
    count();
    switch (outcome_.kind) {
        case Kind::kTimeout:
            note(tables_, EventKind::kTimeout, *row_, run().worker, outcome_.error);
            break;
        case Kind::kCrashed:
            note(tables_, EventKind::kWorkerCrash, *row_, run().worker, outcome_.error);
            break;
        case Kind::kInterrupted:
            note(tables_, EventKind::kInterrupted, *row_, run().worker, outcome_.reason);
            break;
        default:
            break;
    }
    const bool unknown = is_unknown();
    if (unknown) mark();
    // A permanent error is dead at once and keeps its mark for whoever wants to try it again.
    const bool must_be_answered =
        unknown && outcome_.kind != Kind::kPermanent &&
        (record_->on_unknown == OnUnknown::kHold || outcome_.kind == Kind::kHold ||
         (row_->cancel_requested && record_->on_unknown == OnUnknown::kProbe));
    if (must_be_answered) return hold(record_->mark_cause);
    if (row_->cancel_requested) return end(JobState::kCancelled, "cancelled");
    return end_or_retry();
}

/// Which counter this end belongs to, whatever becomes of the job.
void SettleRun::count() {
    switch (outcome_.kind) {
        case Kind::kRetry:
        case Kind::kPermanent:
        case Kind::kCancel:
        case Kind::kTimeout:
            ++row_->attempts;
            break;
        case Kind::kCrashed:
            ++row_->crashes;
            break;
        case Kind::kInterrupted:
            ++row_->interruptions;
            break;
        case Kind::kSuccess:
        case Kind::kSnooze:
        case Kind::kHold:
            break;
    }
}

Settled SettleRun::end_or_retry() {
    const RetryPolicy retry = apply(request_.policy.retry, row_->job.retry);
    switch (outcome_.kind) {
        case Kind::kPermanent:
            return end(JobState::kDead, "permanent");
        case Kind::kCancel:
            return end(JobState::kCancelled, outcome_.reason.empty() ? "handler" : outcome_.reason);
        case Kind::kSnooze:
            return retry_later(outcome_.delay.value_or(Millis{0}));
        case Kind::kCrashed:
            if (row_->crashes >= request_.policy.max_crashes) {
                return end(JobState::kDead, "worker_crash");
            }
            return retry_later(backoff_delay(retry, row_->crashes, request_.random));
        case Kind::kInterrupted: {
            if (row_->interruptions >= kMaxInterruptions) return hold("interruptions");
            // A hand-back goes on at once; what lost its lock or lease must not come back in a
            // spin, and what is still alive has a moment to end.
            const bool handed_back = outcome_.reason == "shutdown" && outcome_.process_gone;
            return retry_later(handed_back
                                   ? Millis{0}
                                   : backoff_delay(retry, row_->interruptions, request_.random));
        }
        default:
            break;
    }
    if (row_->attempts >= retry.max_attempts) return end(JobState::kDead, "attempts_exhausted");
    const Millis delay =
        outcome_.delay.value_or(backoff_delay(retry, row_->attempts, request_.random));
    if (retry.max_age && tables_.now() + delay - row_->enqueued_at > *retry.max_age) {
        return end(JobState::kDead, "max_age");
    }
    return retry_later(delay);
}

Settled SettleRun::retry_later(Millis delay) {
    if (record_) {
        record_->state = RecordState::kRetryable;
        record_->probing = false;
        record_->not_before = tables_.now() + delay;
        tables_.put_record(*record_);
    }
    requeue(tables_, *row_, delay);
    Settled reply;
    reply.state = row_->state;
    reply.retry_in = delay;
    return reply;
}

Settled SettleRun::hold(std::string reason) {
    if (record_) {
        record_->state = RecordState::kHeld;
        record_->probing = false;
        tables_.put_record(*record_);
    }
    hold_job(tables_, *row_, std::move(reason));
    Settled reply;
    reply.state = JobState::kHeld;
    return reply;
}

Settled SettleRun::end(JobState state, std::string reason) {
    if (state == JobState::kCancelled) {
        note(tables_, EventKind::kCancelled, *row_, run().worker,
             row_->requested_by.empty() ? reason : reason + " by " + row_->requested_by);
    }
    if (record_) {
        end_record(tables_, *record_,
                   state == JobState::kDead ? RecordState::kDead : RecordState::kCancelled);
    }
    end_job(tables_, *row_, state, std::move(reason));
    wake_for_key(tables_, record_key(row_->job));
    Settled reply;
    reply.state = state;
    return reply;
}

/// Writes the run's history row and gives its locks back, whatever becomes of the job.
void SettleRun::close_run() {
    if (record_) {
        if (row_) {
            add_attempt_of(tables_, *row_, *record_, outcome_name(outcome_.kind), outcome_.error);
        }
    } else if (row_) {
        RecordRow shown;
        shown.attempt = row_->attempts + 1;
        shown.epoch = run().epoch;
        shown.owner = run().worker;
        shown.started_at = tables_.now() - request_.ran_for;
        add_attempt_of(tables_, *row_, shown, outcome_name(outcome_.kind), outcome_.error);
    }
    release_lock_of(tables_, run());
    for (const Settle::ExtraLock& lock : request_.extra_locks) {
        RunRef extra = run();
        extra.lock_key = lock.name;
        extra.fence = lock.fence;
        release_lock_of(tables_, extra);
    }
}

/// Somebody may have broken or taken it while the run only asked its probe.
bool has_its_lock(Tables& tables, const RunRef& run) {
    if (run.fence == 0) return true;
    const auto lock = tables.lock(run.record.ns, run.lock_key);
    return lock && lock->owner == run.worker && lock->fence == run.fence;
}

}  // namespace

Settled settle(Tables& tables, const Settle& request) {
    return SettleRun{tables, request}.apply_outcome();
}

std::optional<Settled> answer(Tables& tables, const Answer& request) {
    auto record = tables.record(request.run.record);
    auto row = tables.job(request.run.job_id);
    const bool mine = claim_is_mine(row, request.run) && record &&
                      record->state == RecordState::kProcessing &&
                      record->owner == request.run.worker && record->epoch == request.run.epoch;
    Settle as_settle;
    as_settle.run = request.run;
    as_settle.job = request.job;
    as_settle.policy = request.policy;
    if (!mine) {
        as_settle.outcome.kind = Kind::kInterrupted;
        return settle(tables, as_settle);
    }
    // Repeated after a lost reply: the answer is in the record already.
    if (!record->probing) return std::nullopt;
    if (request.kind == Answer::Kind::kCannotTell) {
        as_settle.outcome.kind = Kind::kHold;
        as_settle.outcome.reason = "the probe could not tell";
        as_settle.outcome.process_gone = record->death_proven;
        return settle(tables, as_settle);
    }
    std::vector<StepRow> steps = tables.steps(record->id);
    const auto open =
        std::find_if(steps.begin(), steps.end(), [](const StepRow& step) { return !step.done; });
    if (request.kind == Answer::Kind::kHappened && open == steps.end()) {
        if (request.resolves_job && steps.empty()) {
            as_settle.outcome.result = request.result;
        } else {
            // The handler would do again what has happened.
            as_settle.outcome.kind = Kind::kHold;
            as_settle.outcome.reason = "the probe says it happened, but no step is open";
            as_settle.outcome.process_gone = record->death_proven;
        }
        return settle(tables, as_settle);
    }
    if (request.kind == Answer::Kind::kHappened) {
        open->done = true;
        open->result = request.result;
        tables.put_step(*open);
    }
    record->marked = false;
    record->mark_cause.clear();
    // The death that was proven is the earlier run's; from here on this one lives.
    record->death_proven = false;
    record->probing = false;
    record->started_at = tables.now();
    record->probe_after = tables.now() + request.policy.timeout + request.policy.grace;
    tables.put_record(*record);
    row->begun = true;
    tables.update_job(*row);
    if (has_its_lock(tables, request.run)) return std::nullopt;
    as_settle.outcome.kind = Kind::kInterrupted;
    as_settle.outcome.reason = "lock_lost";
    as_settle.outcome.nothing_applied = true;
    return settle(tables, as_settle);
}

}  // namespace sekali::engine
