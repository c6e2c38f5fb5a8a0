#include <algorithm>

#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

/// One running job whose claim has lapsed or whose worker died.
class LostClaim {
 public:
    LostClaim(Tables& tables, const Recover& request, JobRow& row, bool proven)
        : tables_(tables), request_(request), row_(row), proven_(proven) {}

    void recover() {
        if (!row_.begun) {
            ++row_.lost_claims;
            if (row_.lost_claims >= kMaxLostClaims) return hold_job(tables_, row_, "claims_lost");
            requeue(tables_, row_, Millis{0});
            if (row_.cancel_requested) {
                cancel_job(tables_, row_.job.id, std::string{row_.requested_by}, "cancelled");
            }
            return;
        }
        record_ = tables_.record(record_key(row_.job));
        if (record_ && (record_->job_id != row_.job.id || record_->owner != row_.owner ||
                        record_->state != RecordState::kProcessing)) {
            record_.reset();
        }
        const std::string owner = row_.owner;
        close_run(owner);
        proven_ ? count_crash(owner) : count_lapse();
    }

 private:
    void close_run(const std::string& owner) {
        const std::string_view outcome = proven_ ? "crashed" : "lapsed";
        const std::string_view why = proven_ ? "the worker died" : "the lease lapsed";
        row_.error = why;
        note(tables_, proven_ ? EventKind::kWorkerCrash : EventKind::kLeaseLost, row_, owner,
             std::string{why});
        if (!record_) {
            free_lock_of_job(owner);
            return;
        }
        mark_lost_run(tables_, *record_, proven_);
        set_lapse_judged(*record_);
        tables_.put_record(*record_);
        add_attempt_of(tables_, row_, *record_, outcome, why);
        release_lock_of(tables_, RunRef{row_.job.id, record_->id, owner, record_->delivery,
                                        record_->epoch, record_->lock_key, record_->fence});
    }

    void free_lock_of_job(const std::string& owner) {
        if (row_.job.lock_key.empty()) return;
        const auto lock = tables_.lock(row_.job.ns, row_.job.lock_key);
        if (!lock || lock->owner != owner || lock->job_id != row_.job.id) return;
        RunRef run;
        run.record.ns = row_.job.ns;
        run.worker = owner;
        run.lock_key = lock->name;
        run.fence = lock->fence;
        release_lock_of(tables_, run);
    }

    void count_crash(const std::string& owner) {
        ++row_.crashes;
        const bool alone = company_at_death(tables_, row_.job.ns, owner) <= 1;
        row_.suspect = true;
        if (alone && row_.crashes >= max_crashes()) return end(JobState::kDead, "worker_crash");
        go_on();
    }

    void count_lapse() {
        ++row_.interruptions;
        if (row_.interruptions >= kMaxInterruptions) return hold("interruptions");
        go_on();
    }

    void go_on() {
        const auto& unclaimed = request_.unclaimed_kinds;
        const bool caller_died = proven_ && std::find(unclaimed.begin(), unclaimed.end(),
                                                      row_.job.kind) != unclaimed.end();
        if (!row_.cancel_requested && !caller_died) return requeue(tables_, row_, Millis{0});
        const bool must_be_answered =
            record_ && record_->marked && record_->on_unknown != OnUnknown::kRerun;
        if (must_be_answered) return hold(record_->mark_cause);
        end(JobState::kCancelled, row_.cancel_requested ? "cancelled" : "caller_died");
    }

    void hold(std::string reason) {
        if (record_) {
            record_->state = RecordState::kHeld;
            tables_.put_record(*record_);
        }
        hold_job(tables_, row_, std::move(reason));
    }

    void end(JobState state, std::string reason) {
        if (record_) {
            // Whoever ran it is shut out: from here on its result is only evidence.
            record_->owner.clear();
            end_record(tables_, *record_,
                       state == JobState::kDead ? RecordState::kDead : RecordState::kCancelled);
        }
        end_job(tables_, row_, state, std::move(reason));
        wake_for_key(tables_, record_key(row_.job));
    }

    [[nodiscard]] std::uint64_t max_crashes() const {
        const auto policy = request_.policies.find(row_.job.kind);
        return policy == request_.policies.end() ? KindPolicy{}.max_crashes
                                                 : policy->second.max_crashes;
    }

    Tables& tables_;
    const Recover& request_;
    JobRow& row_;
    bool proven_;
    std::optional<RecordRow> record_;
};

/// Whether a job of this key is under way to its own end, which then wakes the line. Waking the
/// line before a retry is due would only make it look in vain, again and again.
bool comes_by_itself(Tables& tables, const RecordKey& key) {
    const auto record = tables.record(key);
    if (record && record->state != RecordState::kRetryable) return false;
    const auto job = tables.live_job_of_key(key);
    return job && job->state != JobState::kWaiting;
}

void wake_stalled(Tables& tables, const Recover& request) {
    for (const std::string& name : tables.stalled_lines(request.ns, request.limit)) {
        wake_for_lock(tables, request.ns, name);
    }
    for (const RecordKey& key : tables.stalled_keys(request.ns, request.limit)) {
        if (!comes_by_itself(tables, key)) wake_for_key(tables, key);
    }
}

void forget_gone_workers(Tables& tables, const Recover& request) {
    for (const WorkerRow& worker : tables.workers(request.ns)) {
        if (worker.id == request.worker || worker.lease_until > tables.now()) continue;
        if (tables.owner_fate(worker.id) == OwnerFate::kAlive) continue;
        if (tables.has_jobs_of(worker.id)) continue;
        tables.erase_worker(worker.id);
    }
}

}  // namespace

Recovered recover(Tables& tables, const Recover& request) {
    Recovered reply;
    auto rows = tables.lapsed_jobs(request.ns, request.kinds, request.after_seq, request.limit);
    for (JobRow& row : rows) {
        const bool proven = owner_is_gone(tables, row.owner);
        if (!proven && !request.may_take_over) continue;
        LostClaim{tables, request, row, proven}.recover();
        ++reply.jobs;
    }
    // A full page is continued behind its last row, so that rows that cannot be judged starve
    // nobody.
    if (rows.size() >= request.limit) {
        reply.next_seq = rows.back().seq;
        return reply;
    }
    wake_stalled(tables, request);
    forget_gone_workers(tables, request);
    return reply;
}

}  // namespace sekali::engine
