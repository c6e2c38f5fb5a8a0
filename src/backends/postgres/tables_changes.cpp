#include <utility>

#include "backends/postgres/fields.hpp"
#include "backends/postgres/tables.hpp"

// What a unit changed, as the few statements that write it.
namespace sekali::postgres {

using engine::JobRow;
using engine::LockRow;
using engine::RecordKey;
using engine::RecordRow;
using engine::StepRow;
using engine::WorkerRow;

namespace {

/// Collects rows column by column.
template <typename Row>
class Columns {
 public:
    explicit Columns(std::vector<Field<Row>> fields) : fields_(std::move(fields)) {
        for (const Field<Row>& field : fields_)
            arrays_.emplace_back(field.type);
    }
    void add(const Row& row) {
        for (std::size_t i = 0; i < fields_.size(); ++i)
            fields_[i].put(arrays_[i].next(), row);
        ++count_;
    }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] Parameters arguments() const {
        Parameters made;
        for (const ArrayEncoder& array : arrays_)
            made.add_array(array);
        return made;
    }

 private:
    std::vector<Field<Row>> fields_;
    std::vector<ArrayEncoder> arrays_;
    std::size_t count_ = 0;
};

template <typename Row>
std::vector<Field<Row>> joined(std::initializer_list<std::span<const Field<Row>>> lists) {
    std::vector<Field<Row>> all;
    for (const auto& list : lists)
        all.insert(all.end(), list.begin(), list.end());
    return all;
}

template <typename Row>
void add_checked(std::vector<Command>& out, const Sql& sql, const Columns<Row>& rows) {
    if (rows.count() == 0) return;
    Parameters arguments = rows.arguments();
    arguments.add(rows.count());
    out.push_back({&sql, std::move(arguments)});
}

template <typename Row>
void add_unchecked(std::vector<Command>& out, const Sql& sql, const Columns<Row>& rows) {
    if (rows.count() > 0) out.push_back({&sql, rows.arguments()});
}

void add_seqs(std::vector<Command>& out, const Sql& sql, const std::vector<std::int64_t>& seqs) {
    if (seqs.empty()) return;
    Parameters arguments;
    arguments.add_list(seqs).add(seqs.size());
    out.push_back({&sql, std::move(arguments)});
}

std::vector<Field<JobRow>> just_seq() {
    return {frozen_fields().front()};
}
std::vector<Field<JobRow>> finished_at() {
    return {finished_at_field()};
}

/// Whether the payload of a job that ends is kept.
constexpr Field<JobRow> kKeeps{
    "keeps", PgType::kBool,
    [](Encoder& to, const JobRow& row) {
        to.put(row.state == engine::JobState::kDead || row.state == engine::JobState::kCancelled);
    },
    [](Cursor& from, JobRow&) { from.skip(); }};

/// The payload of a job that is written for the first time.
constexpr Field<JobRow> kPayload{
    "payload", PgType::kBytea, [](Encoder& to, const JobRow& row) { to.put(row.job.payload); },
    [](Cursor& from, JobRow& row) { from.take_into(row.job.payload); }};

std::vector<Field<JobRow>> whole_job() {
    return joined<JobRow>({frozen_fields(), moving_fields()});
}

}  // namespace

/// What leaves a place goes first: a slot must be free before another takes it.
void PostgresTables::changed_jobs(std::vector<Command>& out) {
    const std::vector<Field<JobRow>> ends = finished_at();
    const Field<JobRow> keeps[] = {kKeeps};
    const Field<JobRow> payload[] = {kPayload};
    const auto seq = just_seq();
    Columns<JobRow> updates(joined<JobRow>({seq, moving_fields()}));
    Columns<JobRow> finishes(joined<JobRow>({seq, moving_fields(), ends, keeps}));
    Columns<JobRow> revived(whole_job());
    Columns<JobRow> inserts(joined<JobRow>({frozen_fields(), moving_fields(), payload}));
    Columns<JobRow> final_inserts(
        joined<JobRow>({frozen_fields(), moving_fields(), ends, payload}));
    std::vector<std::int64_t> live_gone;
    std::vector<std::int64_t> final_gone;
    for (auto& [id, entry] : jobs_) {
        if (!entry.dirty) continue;
        const auto [from, to] = std::pair(entry.stored, entry.place);
        if (from == Place::kLive && to == Place::kLive) updates.add(entry.row);
        if (from == Place::kLive && to == Place::kFinal) finishes.add(entry.row);
        if (from == Place::kLive && to == Place::kNone) live_gone.push_back(entry.row.seq);
        if (from == Place::kFinal && to == Place::kNone) final_gone.push_back(entry.row.seq);
        if (from == Place::kFinal && to != Place::kNone) revived.add(entry.row);
        // One that was revived and has ended again goes the same way twice.
        if (from == Place::kFinal && to == Place::kFinal) finishes.add(entry.row);
        if (from == Place::kNone && to != Place::kNone) {
            entry.row.job.payload = std::move(entry.payload);
            (to == Place::kLive ? inserts : final_inserts).add(entry.row);
            entry.row.job.payload.clear();
            entry.payload.clear();
        }
        entry.stored = entry.place;
        entry.dirty = false;
        entry.live_known = entry.final_known = true;
    }
    add_checked(out, sql_.revive_jobs, revived);
    add_checked(out, sql_.finish_jobs, finishes);
    add_seqs(out, sql_.delete_jobs, live_gone);
    add_seqs(out, sql_.delete_finished, final_gone);
    add_checked(out, sql_.update_jobs, updates);
    add_checked(out, sql_.insert_jobs, inserts);
    add_checked(out, sql_.insert_finished, final_inserts);
}

void PostgresTables::changed_records(std::vector<Command>& out) {
    Columns<RecordRow> updates(joined<RecordRow>({record_fields()}));
    Columns<RecordRow> inserts(joined<RecordRow>({record_fields()}));
    Columns<RecordRow> gone(joined<RecordRow>({record_fields().first(3)}));
    for (auto& [key, entry] : records_) {
        if (!entry.dirty) continue;
        if (entry.row) {
            (entry.stored ? updates : inserts).add(*entry.row);
        } else if (entry.stored) {
            RecordRow row;
            row.id = key;
            gone.add(row);
        }
        entry.stored = entry.row.has_value();
        entry.dirty = false;
    }
    add_checked(out, sql_.update_records, updates);
    add_checked(out, sql_.delete_records, gone);
    if (inserts.count() == 0) return;
    Parameters arguments = inserts.arguments();
    arguments.add(inserts.count()).add(epoch_floor_);
    out.push_back({&sql_.insert_records, std::move(arguments)});
}

void PostgresTables::changed_steps(std::vector<Command>& out) {
    Columns<StepRow> puts(joined<StepRow>({step_fields()}));
    Columns<StepRow> gone(joined<StepRow>({step_fields().first(3)}));
    for (auto& [key, entry] : steps_) {
        if (entry.erased) {
            StepRow row;
            row.record = key;
            gone.add(row);
        }
        for (const StepRow& row : entry.rows)
            if (entry.dirty.contains(row.name)) puts.add(row);
        entry.erased = false;
        entry.dirty.clear();
    }
    add_unchecked(out, sql_.delete_steps, gone);
    add_unchecked(out, sql_.put_steps, puts);
}

void PostgresTables::changed_locks(std::vector<Command>& out) {
    Columns<LockRow> updates(joined<LockRow>({lock_fields()}));
    Columns<LockRow> inserts(joined<LockRow>({lock_fields()}));
    Columns<LockRow> gone(joined<LockRow>({lock_fields().first(2)}));
    for (auto& [name, entry] : locks_) {
        if (!entry.dirty) continue;
        if (entry.row) {
            (entry.stored ? updates : inserts).add(*entry.row);
        } else if (entry.stored) {
            LockRow row;
            row.ns = name.first;
            row.name = name.second;
            gone.add(row);
        }
        entry.stored = entry.row.has_value();
        entry.dirty = false;
    }
    add_checked(out, sql_.update_locks, updates);
    add_checked(out, sql_.delete_locks, gone);
    if (inserts.count() == 0) return;
    Parameters arguments = inserts.arguments();
    arguments.add(inserts.count()).add(fence_floor_);
    out.push_back({&sql_.insert_locks, std::move(arguments)});
}

void PostgresTables::changed_history(std::vector<Command>& out) {
    Columns<engine::AttemptRow> attempts(joined<engine::AttemptRow>({attempt_fields()}));
    for (const engine::AttemptRow& row : attempts_)
        attempts.add(row);
    attempts_.clear();
    add_unchecked(out, sql_.add_attempts, attempts);
    Columns<engine::EventRow> events(joined<engine::EventRow>({event_fields()}));
    for (const engine::EventRow& row : events_)
        events.add(row);
    events_.clear();
    add_unchecked(out, sql_.add_events, events);
}

std::vector<Command> PostgresTables::take_changes() {
    std::vector<Command> out;
    // Floors first: what is inserted below is checked against them.
    if (epoch_floor_ > stored_epoch_floor_ || fence_floor_ > stored_fence_floor_) {
        out.push_back({&sql_.raise_floors, parameters(epoch_floor_, fence_floor_)});
        stored_epoch_floor_ = epoch_floor_;
        stored_fence_floor_ = fence_floor_;
    }
    changed_locks(out);
    changed_records(out);
    changed_steps(out);
    changed_jobs(out);
    changed_history(out);
    Columns<WorkerRow> workers(joined<WorkerRow>({worker_fields()}));
    for (auto& [id, entry] : workers_) {
        if (!entry.dirty) continue;
        if (entry.row) workers.add(*entry.row);
        entry.stored = true;
        entry.dirty = false;
    }
    add_unchecked(out, sql_.put_workers, workers);
    return out;
}

}  // namespace sekali::postgres
