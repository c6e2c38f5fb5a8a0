#include <algorithm>

#include "engine/ops_internal.hpp"

namespace sekali::engine {

namespace {

// Long enough for a woken job to be claimed and begun by a worker that is awake, short enough that
// a line whose first job nobody serves stands still only for a moment.
constexpr Millis kReservation{2000};

void end_wait(Tables& tables, JobRow& row) {
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    // A job that waited from its enqueue on may have a delay of its own.
    row.state = row.run_at > tables.now() ? JobState::kScheduled : JobState::kReady;
    row.run_at = std::max(row.run_at, tables.now());
    tables.update_job(row);
}

}  // namespace

void release_claim(JobRow& row) {
    row.owner.clear();
    row.lease_until = StoreTime{};
    row.begun = false;
}

void requeue(Tables& tables, JobRow& row, Millis delay) {
    release_claim(row);
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    row.state = delay > Millis{0} ? JobState::kScheduled : JobState::kReady;
    row.run_at = tables.now() + delay;
    tables.update_job(row);
}

void park(Tables& tables, JobRow& row, WaitFor wait, std::string_view name) {
    release_claim(row);
    row.state = JobState::kWaiting;
    row.waiting_for = wait;
    row.waiting_name = name;
    tables.update_job(row);
}

void hold_job(Tables& tables, JobRow& row, std::string reason) {
    release_claim(row);
    row.state = JobState::kHeld;
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    row.reason = std::move(reason);
    tables.update_job(row);
    note(tables, EventKind::kHeld, row, {}, row.reason);
}

bool claim_is_mine(const std::optional<JobRow>& row, const RunRef& run) {
    return row && row->state == JobState::kRunning && row->owner == run.worker &&
           row->deliveries == run.delivery;
}

bool owner_is_gone(Tables& tables, std::string_view owner) {
    return tables.owner_fate(owner) == OwnerFate::kDead;
}

std::uint64_t company_at_death(Tables& tables, std::string_view ns, std::string_view owner) {
    std::optional<WorkerRow> worker = tables.worker(owner);
    if (worker && worker->death_company != 0) return worker->death_company;
    if (!worker) {
        worker.emplace();
        worker->id = owner;
        worker->ns = ns;
    }
    worker->death_company = std::max<std::uint64_t>(1, tables.count_begun(owner));
    tables.put_worker(*worker);
    return worker->death_company;
}

bool lock_is_live(Tables& tables, const LockRow& lock) {
    return !lock.owner.empty() && lock.lease_until > tables.now() &&
           !owner_is_gone(tables, lock.owner);
}

RecordKey record_key(const Envelope& job) {
    return {job.ns, job.kind, job.key};
}

void note(Tables& tables, EventKind event, const JobRow& row, std::string_view worker,
          std::string detail) {
    EventRow out;
    out.ns = row.job.ns;
    out.at = tables.now();
    out.event = event;
    out.job_id = row.job.id;
    out.kind = row.job.kind;
    out.key = row.job.key;
    out.epoch = row.epoch;
    out.worker = worker;
    out.detail = std::move(detail);
    tables.add_event(out);
}

void wake_for_lock(Tables& tables, std::string_view ns, std::string_view name) {
    std::optional<LockRow> lock = tables.lock(ns, name);
    if (lock && lock_is_live(tables, *lock)) return;
    std::optional<JobRow> first = tables.first_waiting(ns, WaitFor::kLock, {}, name);
    if (first) end_wait(tables, *first);
    if (!lock) return;
    lock->reserved_for = first ? first->job.id : std::string{};
    lock->reserved_until = first ? tables.now() + kReservation : StoreTime{};
    tables.put_lock(*lock);
}

void wake_for_key(Tables& tables, const RecordKey& key) {
    if (auto first = tables.first_waiting(key.ns, WaitFor::kKey, key.kind, key.key)) {
        end_wait(tables, *first);
    }
}

void release_lock_of(Tables& tables, const RunRef& run) {
    if (run.lock_key.empty() || run.fence == 0) return;
    std::optional<LockRow> lock = tables.lock(run.record.ns, run.lock_key);
    if (!lock || lock->owner != run.worker || lock->fence != run.fence) return;
    lock->owner.clear();
    lock->job_id.clear();
    lock->token.clear();
    lock->lease_until = tables.now();
    tables.put_lock(*lock);
    wake_for_lock(tables, run.record.ns, run.lock_key);
}

void end_job(Tables& tables, JobRow& row, JobState state, std::string reason) {
    release_claim(row);
    row.state = state;
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    row.reason = std::move(reason);
    row.finished_at = tables.now();
    row.slot_held = false;
    tables.finish_job(row);
    if (row.job.lock_key.empty()) return;
    // A job that ends while the lock is reserved for it must not leave the line standing.
    const auto lock = tables.lock(row.job.ns, row.job.lock_key);
    if (lock && lock->reserved_for == row.job.id) wake_for_lock(tables, row.job.ns, lock->name);
}

void end_record(Tables& tables, RecordRow& record, RecordState state) {
    record.state = state;
    record.finished_at = tables.now();
    record.probing = false;
    if (state == RecordState::kDead || state == RecordState::kCancelled) ++record.ends;
    tables.put_record(record);
}

bool has_open_step(Tables& tables, const RecordKey& key) {
    for (const StepRow& step : tables.steps(key)) {
        if (!step.done) return true;
    }
    return false;
}

bool ends_unknown(Tables& tables, const RecordRow& record) {
    switch (record.effects) {
        case Effects::kOutside:
            return true;
        case Effects::kSteps:
            return has_open_step(tables, record.id);
        case Effects::kCommit:
            return false;
    }
    return true;
}

bool lapse_is_judged(const RecordRow& record) {
    return record.lease_until == StoreTime{};
}

void set_lapse_judged(RecordRow& record) {
    record.lease_until = StoreTime{};
}

void mark_lost_run(Tables& tables, RecordRow& record, bool proven) {
    // An owner that only asked the probe has begun no handler: what was unknown stays as it was.
    if (record.probing || !ends_unknown(tables, record)) return;
    record.marked = true;
    record.mark_cause = proven ? "worker_crash" : "lease_lapsed";
    record.death_proven = proven;
}

void add_attempt_of(Tables& tables, const JobRow& row, const RecordRow& record,
                    std::string_view outcome, std::string_view error) {
    AttemptRow out;
    out.ns = row.job.ns;
    out.job_id = row.job.id;
    out.kind = row.job.kind;
    out.key = row.job.key;
    out.attempt = record.attempt;
    out.epoch = record.epoch;
    out.worker = record.owner;
    out.started_at = record.started_at;
    out.finished_at = tables.now();
    out.outcome = outcome;
    out.error = error;
    tables.add_attempt(out);
}

}  // namespace sekali::engine
