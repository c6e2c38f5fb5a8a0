#include "backends/sqlite/rows.hpp"

#include <nlohmann/json.hpp>

#include "backends/rows/refusals.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

using engine::JobRow;
using engine::JobState;
using engine::RecordRow;
using engine::RecordState;

void bind_frozen(Query& query, const JobRow& row) {
    const engine::Envelope& job = row.job;
    query.bind(row.seq).bind(job.id).bind(job.ns).bind(job.kind).bind(job.queue).bind(job.priority);
    // A job without a key of its own needs no entry in the index of keys.
    if (job.key == job.id) {
        query.bind_null();
    } else {
        query.bind(job.key);
    }
    query.bind(job.lock_key).bind(job.unique_key).bind(job.unique_until);
    query.bind(job.retry.base).bind(job.retry.factor).bind(job.retry.cap).bind(job.retry.jitter);
    query.bind(job.retry.max_attempts).bind(job.retry.max_age);
    query.bind(job.fingerprint).bind(job.fingerprint_rule).bind(job.named_end);
    query.bind(row.enqueued_at);
}

void bind_changing(Query& query, const JobRow& row) {
    bind_fields(query, kJobChangingFields, row, ~ColumnSet{0});
}

JobRow take_job(Query& query) {
    JobRow row;
    engine::Envelope& job = row.job;
    query.take_into(row.seq);
    query.take_into(job.id);
    query.take_into(job.ns);
    query.take_into(job.kind);
    query.take_into(job.queue);
    query.take_into(job.priority);
    auto key = query.take<std::optional<std::string>>();
    job.key = key ? *std::move(key) : job.id;
    query.take_into(job.lock_key);
    query.take_into(job.unique_key);
    query.take_into(job.unique_until);
    query.take_into(job.retry.base);
    query.take_into(job.retry.factor);
    query.take_into(job.retry.cap);
    query.take_into(job.retry.jitter);
    query.take_into(job.retry.max_attempts);
    query.take_into(job.retry.max_age);
    query.take_into(job.fingerprint);
    query.take_into(job.fingerprint_rule);
    query.take_into(job.named_end);
    query.take_into(row.enqueued_at);
    query.take_into(row.state);
    query.take_into(row.waiting_for);
    query.take_into(row.waiting_name);
    query.take_into(row.run_at);
    query.take_into(row.slot_held);
    query.take_into(row.deliveries);
    query.take_into(row.owner);
    query.take_into(row.attempts);
    query.take_into(row.crashes);
    query.take_into(row.interruptions);
    query.take_into(row.lost_claims);
    query.take_into(row.lease_until);
    query.take_into(row.begun);
    query.take_into(row.suspect);
    query.take_into(row.cancel_requested);
    query.take_into(row.requested_by);
    query.take_into(row.epoch);
    query.take_into(row.result);
    query.take_into(row.error);
    query.take_into(row.reason);
    query.take_into(row.finished_at);
    return row;
}

std::optional<engine::StoreTime> expiry_of(const RecordRow& row) {
    const bool ended = row.state == RecordState::kSucceeded || row.state == RecordState::kDead ||
                       row.state == RecordState::kCancelled;
    if (!ended || row.marked || !row.finished_at) return std::nullopt;
    return *row.finished_at + row.keep;
}

void bind_record(Query& query, const RecordRow& row) {
    query.bind(row.id.ns).bind(row.id.kind).bind(row.id.key);
    bind_fields(query, kRecordChangingFields, row, ~ColumnSet{0});
}

RecordRow take_record(Query& query) {
    RecordRow row;
    query.take_into(row.id.ns);
    query.take_into(row.id.kind);
    query.take_into(row.id.key);
    query.take_into(row.state);
    static_cast<void>(query.take<std::int64_t>());  // expires_at follows from the rest
    query.take_into(row.job_id);
    query.take_into(row.epoch);
    query.take_into(row.owner);
    query.take_into(row.delivery);
    query.take_into(row.lease_until);
    query.take_into(row.fingerprint);
    query.take_into(row.fingerprint_rule);
    query.take_into(row.not_before);
    query.take_into(row.effects);
    query.take_into(row.on_unknown);
    query.take_into(row.marked);
    query.take_into(row.mark_cause);
    query.take_into(row.probing);
    query.take_into(row.death_proven);
    query.take_into(row.probe_after);
    query.take_into(row.ends);
    query.take_into(row.lock_key);
    query.take_into(row.fence);
    query.take_into(row.attempt);
    query.take_into(row.started_at);
    query.take_into(row.finished_at);
    query.take_into(row.keep);
    query.take_into(row.whole_answer);
    query.take_into(row.result);
    return row;
}

engine::LockRow take_lock(Query& query) {
    engine::LockRow row;
    query.take_into(row.ns);
    query.take_into(row.name);
    query.take_into(row.owner);
    query.take_into(row.token);
    query.take_into(row.job_id);
    query.take_into(row.fence);
    query.take_into(row.lease_until);
    query.take_into(row.reserved_for);
    query.take_into(row.reserved_until);
    return row;
}

engine::AttemptRow take_attempt(Query& query) {
    engine::AttemptRow row;
    query.take_into(row.ns);
    query.take_into(row.kind);
    query.take_into(row.key);
    query.take_into(row.job_id);
    query.take_into(row.attempt);
    query.take_into(row.epoch);
    query.take_into(row.worker);
    query.take_into(row.started_at);
    query.take_into(row.finished_at);
    query.take_into(row.outcome);
    query.take_into(row.error);
    return row;
}

engine::EventRow take_event(Query& query) {
    engine::EventRow row;
    query.take_into(row.ns);
    query.take_into(row.at);
    row.event = rows::stored_event(query.take<std::string>());
    query.take_into(row.job_id);
    query.take_into(row.kind);
    query.take_into(row.key);
    query.take_into(row.epoch);
    query.take_into(row.worker);
    query.take_into(row.detail);
    return row;
}

engine::WorkerRow take_worker(Query& query) {
    engine::WorkerRow row;
    query.take_into(row.id);
    query.take_into(row.ns);
    query.take_into(row.host);
    query.take_into(row.pid);
    row.queues = nlohmann::json::parse(query.take<std::string>());
    row.kinds = nlohmann::json::parse(query.take<std::string>());
    query.take_into(row.concurrency);
    query.take_into(row.started_at);
    query.take_into(row.lease_until);
    query.take_into(row.stopping);
    query.take_into(row.death_company);
    return row;
}

}  // namespace sekali::sqlite
