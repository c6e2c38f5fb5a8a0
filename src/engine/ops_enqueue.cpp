#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

bool fingerprints_differ(const Envelope& job, const std::string& fingerprint,
                         const std::string& rule) {
    return job.fingerprint_rule == rule && job.fingerprint != fingerprint;
}

bool key_is_reused(Tables& tables, const Envelope& job, const std::optional<RecordRow>& record) {
    if (record) {
        const bool open_to_another = !record->marked && (record->state == RecordState::kDead ||
                                                         record->state == RecordState::kCancelled);
        return !open_to_another &&
               fingerprints_differ(job, record->fingerprint, record->fingerprint_rule);
    }
    if (job.key == job.id) return false;
    const auto other = tables.live_job_of_key(record_key(job));
    return other && fingerprints_differ(job, other->job.fingerprint, other->job.fingerprint_rule);
}

/// The answer to a repeated request with its own id, or nothing when the id is new.
std::optional<EnqueueReply> known_id(Tables& tables, const Envelope& job) {
    auto row = tables.job(job.id);
    if (!row) row = tables.finished_job(job.id);
    if (!row) return std::nullopt;
    EnqueueReply reply;
    reply.id = job.id;
    const bool same = row->job.ns == job.ns && row->job.kind == job.kind &&
                      row->job.key == job.key && row->job.fingerprint == job.fingerprint;
    reply.kind = same ? EnqueueReply::Kind::kEnqueued : EnqueueReply::Kind::kIdTaken;
    if (!same) reply.winner = std::move(row);
    return reply;
}

bool is_unstarted(const JobRow& row) {
    return row.state == JobState::kScheduled || row.state == JobState::kReady ||
           row.state == JobState::kWaiting;
}

void wait_for_end_of(JobRow& row, std::string_view key) {
    row.state = JobState::kWaiting;
    row.waiting_for = WaitFor::kKey;
    row.waiting_name = key;
}

/// Makes room in the slot for `row`: a holder that has not started is cancelled; one that has keeps
/// running, and its only follow-up waits for its end.
void replace(Tables& tables, const JobRow& holder, JobRow& row) {
    note(tables, EventKind::kReplaced, holder, {}, "by " + row.job.id);
    if (is_unstarted(holder) &&
        cancel_job(tables, holder.job.id, "enqueue", "replaced").kind == AdminReply::Kind::kDone) {
        const bool is_follow_up =
            holder.waiting_for == WaitFor::kKey && holder.waiting_name != holder.job.key;
        if (is_follow_up) wait_for_end_of(row, holder.waiting_name);
        return;
    }
    // A cancel that found an unknown run has made it held.
    JobRow started = *tables.job(holder.job.id);
    started.slot_held = false;
    tables.update_job(started);
    wait_for_end_of(row, started.job.key);
}

}  // namespace

EnqueueReply enqueue(Tables& tables, const EnqueueRequest& request) {
    JobRow row;
    row.job = request.job;
    if (!request.has_fresh_id) {
        if (auto known = known_id(tables, row.job)) return *known;
    }

    EnqueueReply reply;
    reply.id = row.job.id;
    const bool is_all_new = request.has_fresh_id && row.job.key == row.job.id;
    const auto record = is_all_new ? std::nullopt : tables.record(record_key(row.job));
    if (key_is_reused(tables, row.job, record)) {
        reply.kind = EnqueueReply::Kind::kKeyReused;
        note(tables, EventKind::kKeyReused, row, {}, "refused at enqueue");
        return reply;
    }
    row.job.named_end = record ? record->ends : 0;
    row.enqueued_at = tables.now();
    row.run_at = tables.now() + request.delay.value_or(Millis{0});
    row.state = row.run_at > tables.now() ? JobState::kScheduled : JobState::kReady;

    if (!row.job.unique_key.empty()) {
        auto holder = tables.unique_holder(row.job.ns, row.job.kind, row.job.unique_key);
        if (holder && request.on_duplicate == OnDuplicate::kKeep) {
            note(tables, EventKind::kUniqueRefused, row, {}, "winner " + holder->job.id);
            reply.kind = EnqueueReply::Kind::kDuplicate;
            reply.winner = std::move(holder);
            return reply;
        }
        if (holder) {
            reply.kind = EnqueueReply::Kind::kReplaced;
            reply.winner = *holder;
            replace(tables, *holder, row);
        }
        row.slot_held = true;
    }
    tables.insert_job(row);
    return reply;
}

}  // namespace sekali::engine
