#include <algorithm>
#include <utility>

#include "backends/postgres/fields.hpp"
#include "backends/postgres/tables.hpp"
#include "backends/rows/refusals.hpp"

// Jobs, one by one and in sets.
namespace sekali::postgres {

using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::StoreTime;
using engine::WaitFor;

namespace {

template <typename Row>
std::string bytes_of(const Row& row, std::span<const Field<Row>> fields) {
    Encoder encoder;
    for (const Field<Row>& field : fields)
        field.put(encoder, row);
    return encoder.take();
}

[[noreturn]] void throw_changed(std::string_view what) {
    Error error;
    error.code = ErrorCode::kConflict;
    error.message = "postgres: " + std::string(what) + " changed in the middle of the transaction";
    error.hint = "roll back and run the transaction again";
    error.retryable = true;
    throw Failure(std::move(error));
}

/// More places than are asked for, because other workers may be about to take some of them.
std::size_t places_for(std::size_t limit) {
    return limit + limit / 2 + 32;
}
std::size_t many_places_for(std::size_t limit) {
    return 16 * limit + 1024;
}

}  // namespace

PostgresTables::JobEntry& PostgresTables::live_entry(std::string_view id) {
    const std::string name(id);
    JobEntry& entry = jobs_[name];
    if (!entry.live_known && entry.stored == Place::kNone && !entry.dirty) {
        need([&](Wanted& wanted) { wanted.jobs.insert(name); });
    }
    return entry;
}

PostgresTables::JobEntry& PostgresTables::final_entry(std::string_view id) {
    const std::string name(id);
    JobEntry& entry = jobs_[name];
    if (!entry.final_known && entry.stored == Place::kNone && !entry.dirty) {
        need([&](Wanted& wanted) { wanted.finished.insert(name); });
    }
    return entry;
}

void PostgresTables::change(JobEntry& entry, JobRow row, Place place) {
    if (mode_ == Mode::kWriteThrough && entry.stored == Place::kLive) lock_unchanged(entry);
    remember(entry);
    if (entry.place != Place::kNone) note_moves(entry.row);
    note_moves(row);
    if (entry.stored == Place::kLive) {
        entry.changed |= different_columns(moving_fields(), entry.row, row);
    }
    entry.row = std::move(row);
    entry.row.job.payload.clear();
    entry.place = place;
    entry.dirty = true;
    if (entry.row.state != JobState::kRunning) made_news_ = true;
}

void PostgresTables::lock_unchanged(const JobEntry& entry) {
    const std::string& id = entry.row.job.id;
    const ResultPtr found =
        query(sql_.jobs.locking, std::move(Parameters{}.add_list(std::vector<std::string>{id})));
    if (PQntuples(found.get()) == 1) {
        Cursor cursor(found.get(), 0);
        if (bytes_of(take_job(cursor), moving_fields()) == bytes_of(entry.row, moving_fields())) {
            return;
        }
    }
    throw_changed("job " + id);
}

void PostgresTables::lock_unchanged(const Entry<engine::RecordRow>& entry) {
    const RecordKey& key = entry.row->id;
    Parameters arguments;
    arguments.add_list(std::vector<std::string>{key.ns})
        .add_list(std::vector<std::string>{key.kind})
        .add_list(std::vector<std::string>{key.key});
    const ResultPtr found = query(sql_.records.locking, std::move(arguments));
    if (PQntuples(found.get()) == 1) {
        Cursor cursor(found.get(), 0);
        const auto now = take_row(cursor, record_fields());
        if (bytes_of(now, record_fields()) == bytes_of(*entry.row, record_fields())) return;
    }
    throw_changed("the record of key " + key.key);
}

std::optional<JobRow> PostgresTables::job(std::string_view id) {
    const JobEntry& entry = live_entry(id);
    return entry.place == Place::kLive ? std::optional(entry.row) : std::nullopt;
}

std::optional<JobRow> PostgresTables::finished_job(std::string_view id) {
    const JobEntry& entry = final_entry(id);
    return entry.place == Place::kFinal ? std::optional(entry.row) : std::nullopt;
}

bool PostgresTables::insert_job(JobRow& row) {
    if (live_entry(row.job.id).place != Place::kNone) return false;
    JobEntry& entry = final_entry(row.job.id);
    if (entry.place != Place::kNone) return false;
    if (arrivals_.empty()) need([](Wanted& wanted) { ++wanted.arrivals; });
    row.seq = arrivals_.back();
    undo_.push_back([this, seq = row.seq] { arrivals_.push_back(seq); });
    arrivals_.pop_back();
    change(entry, row, Place::kLive);
    entry.payload = row.job.payload;
    changed();
    return true;
}

void PostgresTables::update_job(const JobRow& row) {
    JobEntry& entry = live_entry(row.job.id);
    if (entry.place != Place::kLive) rows::throw_no_job("live", row.job.id);
    change(entry, row, Place::kLive);
    changed();
}

void PostgresTables::finish_job(const JobRow& row) {
    JobEntry& entry = live_entry(row.job.id);
    if (entry.place != Place::kLive) rows::throw_no_job("live", row.job.id);
    JobRow ended = row;
    ended.slot_held = false;
    change(entry, std::move(ended), Place::kFinal);
    if (!keeps_payload(row.state)) entry.payload.clear();
    changed();
}

void PostgresTables::insert_finished(const JobRow& row) {
    const bool is_live = live_entry(row.job.id).place != Place::kNone;
    JobEntry& entry = final_entry(row.job.id);
    if (is_live || entry.place != Place::kNone) rows::throw_job_exists(row.job.id);
    JobRow placed = row;
    placed.slot_held = false;
    if (placed.seq == 0) {
        if (arrivals_.empty()) need([](Wanted& wanted) { ++wanted.arrivals; });
        placed.seq = arrivals_.back();
        undo_.push_back([this, seq = placed.seq] { arrivals_.push_back(seq); });
        arrivals_.pop_back();
    }
    change(entry, std::move(placed), Place::kFinal);
    entry.payload = keeps_payload(row.state) ? row.job.payload : std::string{};
    changed();
}

void PostgresTables::revive_job(const JobRow& row) {
    JobEntry& entry = final_entry(row.job.id);
    if (entry.place != Place::kFinal) rows::throw_no_job("final", row.job.id);
    change(entry, row, Place::kLive);
    changed();
}

void PostgresTables::erase_finished(std::string_view id) {
    JobEntry& entry = final_entry(id);
    if (entry.place != Place::kFinal) rows::throw_no_job("final", id);
    change(entry, entry.row, Place::kNone);
    entry.payload.clear();
    changed();
}

std::string PostgresTables::payload(std::string_view job_id) {
    const auto known = jobs_.find(std::string(job_id));
    if (known != jobs_.end() && known->second.dirty && known->second.stored == Place::kNone) {
        return known->second.payload;
    }
    query_begins();
    const ResultPtr found = query(sql_.payload, parameters(job_id));
    if (PQntuples(found.get()) == 0) return {};
    return Cursor(found.get(), 0).take<std::optional<std::string>>().value_or("");
}

std::size_t PostgresTables::promote_due(std::string_view ns, std::size_t limit) {
    query_begins();
    writes();
    // An assumed time may be early by the way of a reading; nothing is promoted before it is due.
    const StoreTime due = time_is_assumed_ ? now_ - kSlowestReading : now_;
    const ResultPtr promoted = query(sql_.promote_due, parameters(ns, due, limit));
    for (int row = 0; row < PQntuples(promoted.get()); ++row) {
        const auto known = jobs_.find(Cursor(promoted.get(), row).take<std::string>());
        if (known != jobs_.end()) known->second.row.state = JobState::kReady;
    }
    return static_cast<std::size_t>(PQntuples(promoted.get()));
}

std::vector<JobRow> PostgresTables::claimable(const engine::ClaimSpec& spec) {
    query_begins();
    const auto ask = [&](std::size_t places) {
        Parameters arguments = parameters(spec.ns);
        arguments.add_list(spec.queues).add_list(spec.kinds).add(spec.limit).add(places);
        return query(form(sql_.claimable), std::move(arguments));
    };
    ResultPtr found = ask(places_for(spec.limit));
    const int wanted = static_cast<int>(spec.limit);
    // Others may have had locked all places that were looked at.
    if (PQntuples(found.get()) < wanted) found = ask(many_places_for(spec.limit));
    std::vector<JobRow> rows;
    for (int place = 0; place < PQntuples(found.get()); ++place) {
        Cursor cursor(found.get(), place);
        JobRow row = take_job(cursor);
        absorb(row, Place::kLive);
        cursor.take_into(row.job.payload);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<JobRow> PostgresTables::lapsed_jobs(std::string_view ns,
                                                const std::vector<std::string>& kinds,
                                                std::int64_t after_seq, std::size_t limit) {
    query_begins();
    std::vector<std::string> dead;
    if (options_.fate) {
        const ResultPtr owners = query(sql_.running_owners, parameters(ns));
        for (int row = 0; row < PQntuples(owners.get()); ++row) {
            auto owner = Cursor(owners.get(), row).take<std::string>();
            if (owner_fate(owner) == engine::OwnerFate::kDead) dead.push_back(std::move(owner));
        }
    }
    Parameters arguments = parameters(ns);
    arguments.add_list(kinds).add(after_seq).add(now_).add_list(dead).add(limit);
    const ResultPtr found = query(form(sql_.lapsed), std::move(arguments));
    std::vector<JobRow> rows = absorb_live(found.get());
    // What recovery will ask about each of them, so that it need not ask one by one.
    engine::Footprint next;
    for (const JobRow& row : rows) {
        next.records.push_back({row.job.ns, row.job.kind, row.job.key});
        next.steps.push_back(next.records.back());
        if (!row.job.lock_key.empty()) next.locks.emplace_back(row.job.ns, row.job.lock_key);
        next.workers.push_back(row.owner);
    }
    if (!rows.empty()) foresee(next);
    return rows;
}

std::uint64_t PostgresTables::count_begun(std::string_view owner) {
    query_begins();
    const ResultPtr count = query(sql_.count_begun, parameters(owner));
    return Cursor(count.get(), 0).take<std::uint64_t>();
}

std::vector<JobRow> PostgresTables::running_jobs_of(std::string_view ns, std::string_view owner) {
    query_begins();
    const ResultPtr found = query(form(sql_.running_jobs_of), parameters(ns, owner));
    std::vector<JobRow> rows = absorb_live(found.get());
    for (JobRow& row : rows)
        row.job.payload = payload(row.job.id);
    return rows;
}

bool PostgresTables::has_jobs_of(std::string_view owner) {
    query_begins();
    return PQntuples(query(sql_.has_jobs_of, parameters(owner)).get()) > 0;
}

std::optional<JobRow> PostgresTables::unique_holder(std::string_view ns, std::string_view kind,
                                                    std::string_view unique_key) {
    const RecordKey slot{std::string(ns), std::string(kind), std::string(unique_key)};
    if (moved_slots_.contains(slot)) {
        query_begins();
        Parameters arguments;
        arguments.add_list(std::vector<std::string>{slot.ns})
            .add_list(std::vector<std::string>{slot.kind})
            .add_list(std::vector<std::string>{slot.key});
        const std::vector<JobRow> rows =
            absorb_live(query(form(sql_.slot_holders), std::move(arguments)).get());
        return rows.empty() ? std::nullopt : std::optional(jobs_[rows.front().job.id].row);
    }
    if (!slots_.contains(slot)) need([&](Wanted& wanted) { wanted.slots.insert(slot); });
    const auto& holder = slots_[slot];
    return holder ? std::optional(jobs_[*holder].row) : std::nullopt;
}

std::optional<JobRow> PostgresTables::first_waiting(std::string_view ns, WaitFor wait,
                                                    std::string_view kind, std::string_view name) {
    const bool of_lock = wait == WaitFor::kLock;
    const LineName line{std::string(ns), wait, of_lock ? std::string{} : std::string(kind),
                        std::string(name)};
    if (moved_lines_.contains(line)) {
        query_begins();
        Parameters arguments;
        arguments.add_list(std::vector<std::string>{std::get<0>(line)})
            .add_list(std::vector<WaitFor>{wait})
            .add_list(std::vector<std::string>{std::get<2>(line)})
            .add_list(std::vector<std::string>{std::get<3>(line)});
        const std::vector<JobRow> rows =
            absorb_live(query(form(sql_.first_in_line), std::move(arguments)).get());
        return rows.empty() ? std::nullopt : std::optional(jobs_[rows.front().job.id].row);
    }
    if (!lines_.contains(line)) need([&](Wanted& wanted) { wanted.lines.insert(line); });
    const auto& first = lines_[line];
    return first ? std::optional(jobs_[*first].row) : std::nullopt;
}

bool PostgresTables::has_live_or_dead_job(const RecordKey& key) {
    query_begins();
    const ResultPtr found = query(sql_.has_live_or_dead, parameters(key.ns, key.kind, key.key));
    return Cursor(found.get(), 0).take<bool>();
}

std::optional<JobRow> PostgresTables::live_job_of_key(const RecordKey& key) {
    if (moved_keys_.contains(key)) {
        query_begins();
        live_of_keys_.erase(key);
        moved_keys_.erase(key);
    }
    if (!live_of_keys_.contains(key)) {
        need([&](Wanted& wanted) { wanted.live_of_keys.insert(key); });
    }
    return live_of_keys_[key];
}

std::optional<StoreTime> PostgresTables::next_run_at(const engine::ClaimSpec& spec) {
    query_begins();
    Parameters arguments = parameters(spec.ns);
    arguments.add_list(spec.queues).add_list(spec.kinds);
    const ResultPtr found = query(sql_.next_run_at, std::move(arguments));
    return Cursor(found.get(), 0).take<std::optional<StoreTime>>();
}

bool PostgresTables::has_drainable(const engine::ClaimSpec& spec) {
    query_begins();
    Parameters arguments = parameters(spec.ns);
    arguments.add_list(spec.queues).add_list(spec.kinds);
    const ResultPtr found = query(sql_.has_drainable, std::move(arguments));
    return Cursor(found.get(), 0).take<bool>();
}

}  // namespace sekali::postgres
