#include <algorithm>
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

/// With the version that each row must have for the statement to write it.
template <typename Row>
class GuardedColumns : public Columns<Row> {
 public:
    using Columns<Row>::Columns;
    void add(const Row& row, Xid version) {
        Columns<Row>::add(row);
        versions_.next().put(version);
    }
    [[nodiscard]] Parameters arguments() const {
        return std::move(Columns<Row>::arguments().add_array(versions_));
    }

 private:
    ArrayEncoder versions_{PgType::kXid};
};

template <typename Row>
std::vector<Field<Row>> joined(std::initializer_list<std::span<const Field<Row>>> lists) {
    std::vector<Field<Row>> all;
    for (const auto& list : lists)
        all.insert(all.end(), list.begin(), list.end());
    return all;
}

template <typename Rows>
void add_checked(std::vector<Command>& out, const Sql& sql, const Rows& rows) {
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

/// In the order in which everybody locks jobs.
std::vector<PostgresTables::JobEntry*> PostgresTables::dirty_jobs() {
    std::vector<JobEntry*> dirty;
    for (auto& [id, entry] : jobs_)
        if (entry.dirty) dirty.push_back(&entry);
    std::sort(dirty.begin(), dirty.end(),
              [](const JobEntry* a, const JobEntry* b) { return a->row.job.id < b->row.job.id; });
    return dirty;
}

void PostgresTables::write_changed(std::vector<Command>& out, const Variants& sql,
                                   const std::vector<JobEntry*>& entries,
                                   std::initializer_list<std::span<const Field<JobRow>>> behind) {
    ColumnSet changed = 0;
    for (const JobEntry* entry : entries)
        changed |= entry->changed;
    const Variants::Variant& variant = sql.of(changed);
    std::vector<Field<JobRow>> fields = just_seq();
    for (const Field<JobRow>& field : chosen(moving_fields(), variant.columns))
        fields.push_back(field);
    for (const auto& more : behind)
        fields.insert(fields.end(), more.begin(), more.end());
    GuardedColumns<JobRow> rows(std::move(fields));
    for (JobEntry* entry : entries)
        rows.add(entry->row, std::exchange(entry->version, Xid{}));
    add_checked(out, variant.sql, rows);
}

void PostgresTables::insert_new(std::vector<Command>& out, const std::vector<JobEntry*>& entries) {
    ColumnSet given = 0;
    for (const JobEntry* entry : entries)
        given |= different_columns(moving_fields(), entry->row, JobRow{});
    const Variants::Variant& variant = sql_.insert_jobs.of(given);
    std::vector<Field<JobRow>> fields = joined<JobRow>({frozen_fields()});
    for (const Field<JobRow>& field : chosen(moving_fields(), variant.columns))
        fields.push_back(field);
    fields.push_back(kPayload);
    Columns<JobRow> rows(std::move(fields));
    for (JobEntry* entry : entries) {
        entry->row.job.payload = std::move(entry->payload);
        rows.add(entry->row);
        entry->row.job.payload.clear();
        entry->payload.clear();
    }
    add_checked(out, variant.sql, rows);
}

/// What leaves a place goes first: a slot must be free before another takes it.
void PostgresTables::changed_jobs(std::vector<Command>& out) {
    const std::vector<Field<JobRow>> ends = finished_at();
    const Field<JobRow> keeps[] = {kKeeps};
    const Field<JobRow> payload[] = {kPayload};
    std::vector<JobEntry*> updates;
    std::vector<JobEntry*> finishes;
    std::vector<JobEntry*> inserts;
    Columns<JobRow> revived(whole_job());
    Columns<JobRow> final_inserts(
        joined<JobRow>({frozen_fields(), moving_fields(), ends, payload}));
    std::vector<std::int64_t> live_gone;
    std::vector<std::int64_t> final_gone;
    const std::vector<JobEntry*> dirty = dirty_jobs();
    for (JobEntry* entry : dirty) {
        const auto [from, to] = std::pair(entry->stored, entry->place);
        if (from == Place::kLive && to == Place::kLive) updates.push_back(entry);
        if (from == Place::kLive && to == Place::kFinal) finishes.push_back(entry);
        if (from == Place::kLive && to == Place::kNone) live_gone.push_back(entry->row.seq);
        if (from == Place::kFinal && to == Place::kNone) final_gone.push_back(entry->row.seq);
        if (from == Place::kFinal && to != Place::kNone) revived.add(entry->row);
        // One that was revived and has ended again goes the same way twice.
        if (from == Place::kFinal && to == Place::kFinal) finishes.push_back(entry);
        if (from == Place::kNone && to == Place::kLive) inserts.push_back(entry);
        if (from == Place::kNone && to == Place::kFinal) {
            entry->row.job.payload = std::move(entry->payload);
            final_inserts.add(entry->row);
            entry->row.job.payload.clear();
            entry->payload.clear();
        }
    }
    add_checked(out, sql_.revive_jobs, revived);
    write_changed(out, sql_.finish_jobs, finishes, {ends, keeps});
    add_seqs(out, sql_.delete_jobs, live_gone);
    add_seqs(out, sql_.delete_finished, final_gone);
    write_changed(out, sql_.update_jobs, updates, {});
    insert_new(out, inserts);
    add_checked(out, sql_.insert_finished, final_inserts);
    for (JobEntry* entry : dirty) {
        entry->stored = entry->place;
        entry->dirty = false;
        entry->changed = 0;
        entry->version = Xid{};
        entry->written = entry->live_known = entry->final_known = true;
    }
}

void PostgresTables::changed_records(std::vector<Command>& out) {
    const auto rest = record_fields().subspan(3);
    const auto columns_of = [&](ColumnSet columns) {
        std::vector<Field<RecordRow>> fields = joined<RecordRow>({record_fields().first(3)});
        for (const Field<RecordRow>& field : chosen(rest, columns))
            fields.push_back(field);
        return fields;
    };
    ColumnSet changed = 0;
    ColumnSet given = 0;
    for (const auto& [key, entry] : records_) {
        if (!entry.dirty || !entry.row) continue;
        (entry.stored ? changed : given) |= entry.changed;
    }
    const Variants::Variant& update = sql_.update_records.of(changed);
    const Variants::Variant& insert = sql_.insert_records.of(given);
    GuardedColumns<RecordRow> updates(columns_of(update.columns));
    Columns<RecordRow> inserts(columns_of(insert.columns));
    Columns<RecordRow> gone(joined<RecordRow>({record_fields().first(3)}));
    for (auto& [key, entry] : records_) {
        if (!entry.dirty) continue;
        const Xid version = std::exchange(entry.version, Xid{});
        if (entry.row && entry.stored) {
            updates.add(*entry.row, version);
        } else if (entry.row) {
            inserts.add(*entry.row);
        } else if (entry.stored) {
            RecordRow row;
            row.id = key;
            gone.add(row);
        }
        entry.stored = entry.row.has_value();
        entry.dirty = entry.absence_assumed = false;
        entry.written = true;
        entry.changed = 0;
    }
    add_checked(out, update.sql, updates);
    add_checked(out, sql_.delete_records, gone);
    if (inserts.count() == 0) return;
    Parameters arguments = inserts.arguments();
    arguments.add(inserts.count()).add(epoch_floor_);
    out.push_back({&insert.sql, std::move(arguments)});
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
    GuardedColumns<LockRow> updates(joined<LockRow>({lock_fields()}));
    Columns<LockRow> inserts(joined<LockRow>({lock_fields()}));
    Columns<LockRow> gone(joined<LockRow>({lock_fields().first(2)}));
    for (auto& [name, entry] : locks_) {
        if (!entry.dirty) continue;
        const Xid version = std::exchange(entry.version, Xid{});
        if (entry.row && entry.stored) {
            updates.add(*entry.row, version);
        } else if (entry.row) {
            inserts.add(*entry.row);
        } else if (entry.stored) {
            LockRow row;
            row.ns = name.first;
            row.name = name.second;
            gone.add(row);
        }
        entry.stored = entry.row.has_value();
        entry.dirty = false;
        entry.written = true;
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
    check_lines(out);
    return out;
}

}  // namespace sekali::postgres
