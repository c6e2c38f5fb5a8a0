#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

AdminReply reply_of(AdminReply::Kind kind, std::optional<JobRow> row = std::nullopt) {
    AdminReply reply;
    reply.kind = kind;
    reply.row = std::move(row);
    return reply;
}

/// The record that stands for this job's own unfinished work, if any.
std::optional<RecordRow> own_record(Tables& tables, const JobRow& row) {
    auto record = tables.record(record_key(row.job));
    if (!record || record->job_id != row.job.id) return std::nullopt;
    return record;
}

AdminReply not_live(Tables& tables, std::string_view id) {
    auto done = tables.finished_job(id);
    if (!done) return reply_of(AdminReply::Kind::kNotFound);
    return reply_of(AdminReply::Kind::kWrongState, std::move(done));
}

std::string by(std::string_view what, std::string_view who) {
    return std::string{what} + " by " + std::string{who};
}

}  // namespace

AdminReply cancel_job(Tables& tables, std::string_view id, std::string_view who,
                      std::string_view reason) {
    auto row = tables.job(id);
    if (!row) return not_live(tables, id);
    if (row->state == JobState::kHeld) return reply_of(AdminReply::Kind::kWrongState, row);
    if (row->state == JobState::kRunning) {
        row->cancel_requested = true;
        row->requested_by = who;
        tables.update_job(*row);
        return reply_of(AdminReply::Kind::kRequested, row);
    }
    auto record = own_record(tables, *row);
    if (record && record->state == RecordState::kProcessing && ends_unknown(tables, *record)) {
        // Its claim is gone but its run was never answered for.
        record->marked = true;
        if (record->mark_cause.empty()) record->mark_cause = "lease_lapsed";
    }
    // Held by another job's stricter policy, it waits for the answer of this job all the same.
    const bool held = record && record->state == RecordState::kHeld;
    if (held || (record && record->marked && record->on_unknown != OnUnknown::kRerun)) {
        record->state = RecordState::kHeld;
        tables.put_record(*record);
        hold_job(tables, *row, record->mark_cause);
        return reply_of(AdminReply::Kind::kWrongState, row);
    }
    if (record &&
        (record->state == RecordState::kRetryable || record->state == RecordState::kProcessing)) {
        record->owner.clear();
        end_record(tables, *record, RecordState::kCancelled);
    }
    note(tables, EventKind::kCancelled, *row, {}, by(reason, who));
    row->requested_by = who;
    end_job(tables, *row, JobState::kCancelled, std::string{reason});
    wake_for_key(tables, record_key(row->job));
    return reply_of(AdminReply::Kind::kDone, row);
}

AdminReply retry_now(Tables& tables, std::string_view id, std::string_view who) {
    auto row = tables.job(id);
    if (!row) return not_live(tables, id);
    if (row->state != JobState::kScheduled) return reply_of(AdminReply::Kind::kWrongState, row);
    if (auto record = own_record(tables, *row); record && record->not_before > tables.now()) {
        record->not_before = tables.now();
        tables.put_record(*record);
    }
    note(tables, EventKind::kReplay, *row, {}, by("run now", who));
    requeue(tables, *row, Millis{0});
    return reply_of(AdminReply::Kind::kDone, row);
}

AdminReply retry_dead(Tables& tables, std::string_view id, std::string_view who) {
    auto row = tables.finished_job(id);
    if (!row) {
        auto live = tables.job(id);
        if (!live) return reply_of(AdminReply::Kind::kNotFound);
        return reply_of(AdminReply::Kind::kWrongState, std::move(live));
    }
    if (row->state != JobState::kDead) return reply_of(AdminReply::Kind::kWrongState, row);
    if (!row->job.unique_key.empty()) {
        auto holder = tables.unique_holder(row->job.ns, row->job.kind, row->job.unique_key);
        if (holder) {
            AdminReply reply = reply_of(AdminReply::Kind::kSlotTaken, row);
            reply.winner = std::move(holder);
            return reply;
        }
        row->slot_held = true;
    }
    auto record = tables.record(record_key(row->job));
    if (record &&
        (record->state == RecordState::kDead || record->state == RecordState::kCancelled)) {
        if (record->fingerprint == row->job.fingerprint) {
            record->state = RecordState::kRetryable;
            record->not_before = tables.now();
            record->owner.clear();
            record->job_id = row->job.id;
            tables.put_record(*record);
        } else {
            // Whoever retries it knows this end, so it may start afresh with its own payload.
            row->job.named_end = record->ends;
        }
    }
    note(tables, EventKind::kReplay, *row, {}, by("dead letter retried", who));
    row->state = JobState::kReady;
    row->attempts = row->crashes = row->interruptions = row->lost_claims = 0;
    row->suspect = false;
    row->cancel_requested = false;
    row->reason.clear();
    row->finished_at.reset();
    row->run_at = tables.now();
    tables.revive_job(*row);
    return reply_of(AdminReply::Kind::kDone, row);
}

AdminReply drop_dead(Tables& tables, std::string_view id, std::string_view who) {
    auto row = tables.finished_job(id);
    if (!row) {
        auto live = tables.job(id);
        if (!live) return reply_of(AdminReply::Kind::kNotFound);
        return reply_of(AdminReply::Kind::kWrongState, std::move(live));
    }
    if (row->state != JobState::kDead) return reply_of(AdminReply::Kind::kWrongState, row);
    note(tables, EventKind::kResolved, *row, {}, by("dead letter dropped", who));
    tables.erase_finished(id);
    return reply_of(AdminReply::Kind::kDone, row);
}

namespace {

/// Records the answer for the first open step; false where there is none.
bool answer_open_step(Tables& tables, const RecordKey& key, const std::string& result) {
    for (StepRow step : tables.steps(key)) {
        if (step.done) continue;
        step.done = true;
        step.result = result;
        tables.put_step(step);
        return true;
    }
    return false;
}

/// Refuses an answer that would end a job as a whole where that leaves something out.
void check_whole_answer(Tables& tables, const JobRow& row, const std::optional<RecordRow>& record) {
    const auto refuse = [&](const std::string& why) {
        throw Failure{
            Error{ErrorCode::kConflict,
                  "job " + row.job.id + why,
                  "resolve it with --rerun where running it again is harmless, or with --dead",
                  Applied::kNo,
                  false,
                  {}}};
    };
    if (record) {
        if (record->whole_answer && tables.steps(record->id).empty()) return;
        refuse(
            " has no open step, and its handler writes rows of its own that an answer alone would "
            "leave out");
    }
    // A kind without a record leaves no more behind than its job.
    const bool has_begun = row.epoch != 0;
    if (!has_begun || tables.record(record_key(row.job))) {
        refuse(" has no run of its own that an answer could be about");
    }
}

void run_on(Tables& tables, JobRow& row, std::optional<RecordRow>& record) {
    if (record) {
        record->state = RecordState::kRetryable;
        record->not_before = tables.now();
        tables.put_record(*record);
    }
    row.interruptions = row.lost_claims = 0;
    row.cancel_requested = false;
    row.requested_by.clear();
    row.reason.clear();
    requeue(tables, row, Millis{0});
}

}  // namespace

AdminReply resolve_held(Tables& tables, std::string_view id, const Resolution& resolution,
                        std::string_view who) {
    auto row = tables.job(id);
    if (!row) return not_live(tables, id);
    if (row->state != JobState::kHeld) return reply_of(AdminReply::Kind::kWrongState, row);
    auto record = own_record(tables, *row);
    bool ends_whole_job = false;
    if (resolution.kind == Resolution::Kind::kSucceeded) {
        const bool for_step = record && answer_open_step(tables, record->id, resolution.result);
        ends_whole_job = !for_step;
        if (ends_whole_job) check_whole_answer(tables, *row, record);
    }
    if (record) {
        // The owner of the unknown run is shut out: somebody has answered for it.
        record->owner.clear();
        record->marked = false;
        record->mark_cause.clear();
    }
    static constexpr std::string_view kWords[] = {"succeeded", "rerun", "dead"};
    note(tables, EventKind::kResolved, *row, {},
         by(kWords[static_cast<std::size_t>(resolution.kind)], who));
    if (resolution.kind == Resolution::Kind::kDead) {
        if (record) end_record(tables, *record, RecordState::kDead);
        end_job(tables, *row, JobState::kDead, "resolved");
        wake_for_key(tables, record_key(row->job));
    } else if (ends_whole_job) {
        if (record) {
            record->result = resolution.result;
            end_record(tables, *record, RecordState::kSucceeded);
        }
        row->result = resolution.result;
        end_job(tables, *row, JobState::kSucceeded, "resolved");
        wake_for_key(tables, record_key(row->job));
    } else {
        run_on(tables, *row, record);
    }
    return reply_of(AdminReply::Kind::kDone, row);
}

void pause_queue(Tables& tables, std::string_view ns, std::string_view queue, bool paused,
                 std::string_view who) {
    QueueRow row;
    row.ns = ns;
    row.name = queue;
    row.paused = paused;
    tables.put_queue(row);
    if (who.empty()) return;
    JobRow nobody;
    nobody.job.ns = ns;
    const std::string what = "queue " + row.name + (paused ? " paused" : " resumed");
    note(tables, EventKind::kResolved, nobody, {}, by(what, who));
}

AdminReply free_unique(Tables& tables, std::string_view id, std::string_view who) {
    auto row = tables.job(id);
    if (!row) return not_live(tables, id);
    if (!row->slot_held) return reply_of(AdminReply::Kind::kWrongState, row);
    row->slot_held = false;
    tables.update_job(*row);
    note(tables, EventKind::kResolved, *row, {}, by("unique slot freed", who));
    return reply_of(AdminReply::Kind::kDone, row);
}

PruneReply prune(Tables& tables, std::string_view ns, Millis keep_history, std::size_t limit) {
    PruneReply reply;
    for (const RecordRow& record : tables.prunable_records(ns, limit)) {
        if (tables.has_live_or_dead_job(record.id)) continue;
        tables.erase_record(record.id);
        ++reply.records;
    }
    for (const LockRow& lock : tables.idle_locks(ns, tables.now() - keep_history, limit)) {
        tables.erase_lock(ns, lock.name);
    }
    reply.history = tables.prune_history(ns, tables.now() - keep_history, limit);
    return reply;
}

}  // namespace sekali::engine
