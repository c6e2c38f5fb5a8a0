#include "backends/postgres/fields.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "backends/rows/refusals.hpp"

#include "sekali/result.hpp"

namespace sekali::postgres {
namespace {

using engine::AttemptRow;
using engine::Envelope;
using engine::EventRow;
using engine::JobRow;
using engine::LockRow;
using engine::RecordKey;
using engine::RecordRow;
using engine::RecordState;
using engine::StepRow;
using engine::StoreTime;
using engine::WorkerRow;

/// A job without a key of its own needs no entry in the index of keys. Stands behind the id.
constexpr Field<JobRow> kKeyField{"key", PgType::kText,
                                  [](Encoder& to, const JobRow& row) {
                                      row.job.key == row.job.id ? to.put_null()
                                                                : to.put(row.job.key);
                                  },
                                  [](Cursor& from, JobRow& row) {
                                      auto key = from.take<std::optional<std::string>>();
                                      row.job.key = key ? *std::move(key) : row.job.id;
                                  }};

template <auto Member>
constexpr Field<JobRow> frozen(std::string_view column) {
    return field<JobRow, &JobRow::job, Member>(column);
}
template <auto Member>
constexpr Field<JobRow> retry(std::string_view column) {
    return field<JobRow, &JobRow::job, &Envelope::retry, Member>(column);
}

constexpr std::array kFrozen{
    field<JobRow, &JobRow::seq>("seq"),
    frozen<&Envelope::id>("id"),
    frozen<&Envelope::ns>("ns"),
    frozen<&Envelope::kind>("kind"),
    frozen<&Envelope::queue>("queue"),
    kKeyField,
    frozen<&Envelope::lock_key>("lock_key"),
    frozen<&Envelope::unique_key>("unique_key"),
    frozen<&Envelope::unique_until>("unique_until"),
    frozen<&Envelope::priority>("priority"),
    retry<&RetryOverrides::base>("retry_base"),
    retry<&RetryOverrides::factor>("retry_factor"),
    retry<&RetryOverrides::cap>("retry_cap"),
    retry<&RetryOverrides::jitter>("retry_jitter"),
    retry<&RetryOverrides::max_attempts>("max_attempts"),
    retry<&RetryOverrides::max_age>("max_age"),
    frozen<&Envelope::fingerprint>("fingerprint"),
    frozen<&Envelope::fingerprint_rule>("fingerprint_rule"),
    frozen<&Envelope::named_end>("named_end"),
    field<JobRow, &JobRow::enqueued_at>("enqueued_at"),
};

constexpr std::array kMoving{
    field<JobRow, &JobRow::state>("state"),
    field<JobRow, &JobRow::waiting_for>("waiting_for"),
    field<JobRow, &JobRow::waiting_name>("waiting_name"),
    field<JobRow, &JobRow::run_at>("run_at"),
    field<JobRow, &JobRow::slot_held>("slot_held"),
    field<JobRow, &JobRow::attempts>("attempts"),
    field<JobRow, &JobRow::crashes>("crashes"),
    field<JobRow, &JobRow::interruptions>("interruptions"),
    field<JobRow, &JobRow::deliveries>("deliveries"),
    field<JobRow, &JobRow::lost_claims>("lost_claims"),
    field<JobRow, &JobRow::owner>("owner"),
    field<JobRow, &JobRow::lease_until>("lease_until"),
    field<JobRow, &JobRow::begun>("begun"),
    field<JobRow, &JobRow::suspect>("suspect"),
    field<JobRow, &JobRow::cancel_requested>("cancel_requested"),
    bytes_field<JobRow, &JobRow::requested_by>("requested_by"),
    field<JobRow, &JobRow::epoch>("epoch"),
    bytes_field<JobRow, &JobRow::result>("result"),
    bytes_field<JobRow, &JobRow::error>("error"),
    bytes_field<JobRow, &JobRow::reason>("reason"),
};

/// Until when a record is kept: null while it must not be pruned.
std::optional<StoreTime> expiry_of(const RecordRow& row) {
    const bool ended = row.state == RecordState::kSucceeded || row.state == RecordState::kDead ||
                       row.state == RecordState::kCancelled;
    if (!ended || row.marked || !row.finished_at) return std::nullopt;
    return *row.finished_at + row.keep;
}

constexpr Field<RecordRow> kExpiryField{
    "expires_at",
    PgType::kInt8,
    [](Encoder& to, const RecordRow& row) { to.put(expiry_of(row)); },
    [](Cursor& from, RecordRow&) { from.skip(); },
    [](const RecordRow& a, const RecordRow& b) { return expiry_of(a) == expiry_of(b); },
    true};

constexpr std::array kRecord{
    field<RecordRow, &RecordRow::id, &RecordKey::ns>("ns"),
    field<RecordRow, &RecordRow::id, &RecordKey::kind>("kind"),
    field<RecordRow, &RecordRow::id, &RecordKey::key>("key"),
    field<RecordRow, &RecordRow::state>("state"),
    kExpiryField,
    field<RecordRow, &RecordRow::job_id>("job_id"),
    field<RecordRow, &RecordRow::epoch>("epoch"),
    field<RecordRow, &RecordRow::owner>("owner"),
    field<RecordRow, &RecordRow::delivery>("delivery"),
    field<RecordRow, &RecordRow::lease_until>("lease_until"),
    field<RecordRow, &RecordRow::fingerprint>("fingerprint"),
    field<RecordRow, &RecordRow::fingerprint_rule>("fingerprint_rule"),
    field<RecordRow, &RecordRow::not_before>("not_before"),
    field<RecordRow, &RecordRow::effects>("effects"),
    field<RecordRow, &RecordRow::on_unknown>("on_unknown"),
    field<RecordRow, &RecordRow::marked>("marked"),
    bytes_field<RecordRow, &RecordRow::mark_cause>("mark_cause"),
    field<RecordRow, &RecordRow::probing>("probing"),
    field<RecordRow, &RecordRow::death_proven>("death_proven"),
    field<RecordRow, &RecordRow::probe_after>("probe_after"),
    field<RecordRow, &RecordRow::ends>("ends"),
    field<RecordRow, &RecordRow::lock_key>("lock_key"),
    field<RecordRow, &RecordRow::fence>("fence"),
    field<RecordRow, &RecordRow::attempt>("attempt"),
    field<RecordRow, &RecordRow::started_at>("started_at"),
    field<RecordRow, &RecordRow::finished_at>("finished_at"),
    field<RecordRow, &RecordRow::keep>("keep"),
    field<RecordRow, &RecordRow::whole_answer>("whole_answer"),
    bytes_field<RecordRow, &RecordRow::result>("result"),
};

constexpr std::array kStep{
    field<StepRow, &StepRow::record, &RecordKey::ns>("ns"),
    field<StepRow, &StepRow::record, &RecordKey::kind>("kind"),
    field<StepRow, &StepRow::record, &RecordKey::key>("key"),
    bytes_field<StepRow, &StepRow::name>("name"),
    field<StepRow, &StepRow::epoch>("epoch"),
    field<StepRow, &StepRow::call>("call"),
    field<StepRow, &StepRow::order>("place"),
    field<StepRow, &StepRow::done>("done"),
    bytes_field<StepRow, &StepRow::result>("result"),
};

constexpr std::array kLock{
    field<LockRow, &LockRow::ns>("ns"),
    field<LockRow, &LockRow::name>("name"),
    field<LockRow, &LockRow::owner>("owner"),
    field<LockRow, &LockRow::token>("token"),
    field<LockRow, &LockRow::job_id>("job_id"),
    field<LockRow, &LockRow::fence>("fence"),
    field<LockRow, &LockRow::lease_until>("lease_until"),
    field<LockRow, &LockRow::reserved_for>("reserved_for"),
    field<LockRow, &LockRow::reserved_until>("reserved_until"),
};

constexpr std::array kAttempt{
    field<AttemptRow, &AttemptRow::ns>("ns"),
    field<AttemptRow, &AttemptRow::kind>("kind"),
    field<AttemptRow, &AttemptRow::key>("key"),
    field<AttemptRow, &AttemptRow::job_id>("job_id"),
    field<AttemptRow, &AttemptRow::attempt>("attempt"),
    field<AttemptRow, &AttemptRow::epoch>("epoch"),
    field<AttemptRow, &AttemptRow::worker>("worker"),
    field<AttemptRow, &AttemptRow::started_at>("started_at"),
    field<AttemptRow, &AttemptRow::finished_at>("finished_at"),
    field<AttemptRow, &AttemptRow::outcome>("outcome"),
    bytes_field<AttemptRow, &AttemptRow::error>("error"),
};

constexpr Field<EventRow> kEventField{
    "event", PgType::kText, [](Encoder& to, const EventRow& row) { to.put(to_string(row.event)); },
    [](Cursor& from, EventRow& row) { row.event = rows::stored_event(from.take<std::string>()); }};

constexpr std::array kEvent{
    field<EventRow, &EventRow::ns>("ns"),
    field<EventRow, &EventRow::at>("at"),
    kEventField,
    field<EventRow, &EventRow::job_id>("job_id"),
    field<EventRow, &EventRow::kind>("kind"),
    field<EventRow, &EventRow::key>("key"),
    field<EventRow, &EventRow::epoch>("epoch"),
    field<EventRow, &EventRow::worker>("worker"),
    bytes_field<EventRow, &EventRow::detail>("detail"),
};

/// A list of names as one JSON text: arrays of arrays cannot be unnested row by row.
template <auto Member>
constexpr Field<WorkerRow> names(std::string_view column) {
    return {column, PgType::kText,
            [](Encoder& to, const WorkerRow& row) { to.put(nlohmann::json(row.*Member).dump()); },
            [](Cursor& from, WorkerRow& row) {
                row.*Member =
                    nlohmann::json::parse(from.take<std::string>()).get<std::vector<std::string>>();
            }};
}

constexpr std::array kWorker{
    field<WorkerRow, &WorkerRow::id>("id"),
    field<WorkerRow, &WorkerRow::ns>("ns"),
    field<WorkerRow, &WorkerRow::host>("host"),
    field<WorkerRow, &WorkerRow::pid>("pid"),
    names<&WorkerRow::queues>("queues"),
    names<&WorkerRow::kinds>("kinds"),
    field<WorkerRow, &WorkerRow::concurrency>("concurrency"),
    field<WorkerRow, &WorkerRow::started_at>("started_at"),
    field<WorkerRow, &WorkerRow::lease_until>("lease_until"),
    field<WorkerRow, &WorkerRow::stopping>("stopping"),
    field<WorkerRow, &WorkerRow::death_company>("death_company"),
};

}  // namespace

std::span<const Field<JobRow>> frozen_fields() {
    return kFrozen;
}
std::span<const Field<JobRow>> moving_fields() {
    return kMoving;
}
Field<JobRow> finished_at_field() {
    return field<JobRow, &JobRow::finished_at>("finished_at");
}
std::span<const Field<RecordRow>> record_fields() {
    return kRecord;
}
std::span<const Field<StepRow>> step_fields() {
    return kStep;
}
std::span<const Field<LockRow>> lock_fields() {
    return kLock;
}
std::span<const Field<AttemptRow>> attempt_fields() {
    return kAttempt;
}
std::span<const Field<EventRow>> event_fields() {
    return kEvent;
}
std::span<const Field<WorkerRow>> worker_fields() {
    return kWorker;
}

JobRow take_job(Cursor& from) {
    JobRow row;
    for (const auto& one : kFrozen)
        one.take(from, row);
    for (const auto& one : kMoving)
        one.take(from, row);
    return row;
}

JobRow take_final_job(Cursor& from) {
    JobRow row = take_job(from);
    finished_at_field().take(from, row);
    return row;
}

}  // namespace sekali::postgres
