#include "backends/postgres/tables.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/fields.hpp"
#include "base/clock.hpp"

// The unit of work: what is loaded, what a task changed, and how it is undone.
namespace sekali::postgres {

using engine::JobRow;
using engine::LockRow;
using engine::RecordKey;
using engine::RecordRow;
using engine::StepRow;
using engine::StoreTime;
using engine::WorkerRow;

namespace {

template <typename Set>
void add_to(Set& to, const Set& from) {
    to.insert(from.begin(), from.end());
}

/// Namespace, kind and key as three arrays.
Parameters arrays_of_keys(const std::set<RecordKey>& keys) {
    ArrayEncoder ns(PgType::kText);
    ArrayEncoder kind(PgType::kText);
    ArrayEncoder key(PgType::kText);
    for (const RecordKey& one : keys) {
        ns.next().put(one.ns);
        kind.next().put(one.kind);
        key.next().put(one.key);
    }
    Parameters made;
    made.add_array(ns).add_array(kind).add_array(key);
    return made;
}

Parameters array_of_names(const std::set<std::string>& names) {
    return std::move(Parameters{}.add_list(std::vector<std::string>(names.begin(), names.end())));
}

template <typename Take>
void each_row(const PGresult* result, Take take) {
    for (int row = 0; row < PQntuples(result); ++row) {
        Cursor cursor(result, row);
        take(cursor);
    }
}

}  // namespace

void Wanted::add(const Wanted& other) {
    add_to(jobs, other.jobs);
    add_to(finished, other.finished);
    add_to(records, other.records);
    add_to(steps, other.steps);
    add_to(locks, other.locks);
    add_to(workers, other.workers);
    add_to(slots, other.slots);
    add_to(live_of_keys, other.live_of_keys);
    add_to(lines, other.lines);
    arrivals += other.arrivals;
}

Parameters PostgresTables::arrays_of(const std::set<LineName>& lines) {
    ArrayEncoder ns(PgType::kText);
    ArrayEncoder waits(PgType::kInt2);
    ArrayEncoder kinds(PgType::kText);
    ArrayEncoder names(PgType::kText);
    for (const LineName& line : lines) {
        ns.next().put(std::get<0>(line));
        waits.next().put(std::get<1>(line));
        kinds.next().put(std::get<2>(line));
        names.next().put(std::get<3>(line));
    }
    Parameters made;
    made.add_array(ns).add_array(waits).add_array(kinds).add_array(names);
    return made;
}

void PostgresTables::start_unit(Channel& channel, std::size_t tasks, bool may_assume,
                                bool keeps_apart) {
    start(channel, Mode::kForesee);
    is_alone_ = tasks == 1;
    keeps_apart_ = keeps_apart;
    may_assume_ = may_assume && known_ != nullptr;
}

void PostgresTables::start(Channel& channel, Mode mode) {
    channel_ = &channel;
    mode_ = mode;
    is_alone_ = true;
    may_assume_ = keeps_apart_ = has_effects_ = checks_effects_ = false;
    has_assumed_ = time_is_assumed_ = in_savepoint_ = plans_freely_ = version_is_unknown_ = false;
    has_looked_ = time_is_kept_ = made_news_ = has_written_ = false;
    epoch_floor_ = fence_floor_ = 0;
    forget_rows();
    begin_task();
}

void PostgresTables::forget_rows() {
    undo_.clear();
    jobs_.clear();
    records_.clear();
    steps_.clear();
    locks_.clear();
    workers_.clear();
    slots_.clear();
    lines_.clear();
    assumed_lines_.clear();
    live_of_keys_.clear();
    moved_slots_.clear();
    moved_keys_.clear();
    moved_lines_.clear();
    attempts_.clear();
    events_.clear();
    arrivals_.clear();
    wanted_ = {};
    task_attempts_ = task_events_ = 0;
}

void PostgresTables::begin_task() {
    undo_.clear();
    task_attempts_ = attempts_.size();
    task_events_ = events_.size();
    task_was_written_ = wants_query_ = false;
    had_news_ = made_news_;
}

void PostgresTables::undo_task() {
    for (auto step = undo_.rbegin(); step != undo_.rend(); ++step)
        (*step)();
    undo_.clear();
    made_news_ = had_news_;
    attempts_.resize(task_attempts_);
    events_.resize(task_events_);
}

StoreTime PostgresTables::now() const {
    // A task that begins with the clock waits for the first look like for any row.
    if (!has_looked_) leave();
    return now_;
}

void PostgresTables::look(const PGresult* result) {
    Cursor cursor(result, 0);
    epoch_floor_ = std::max(epoch_floor_, stored_epoch_floor_ = cursor.take<std::uint64_t>());
    fence_floor_ = std::max(fence_floor_, stored_fence_floor_ = cursor.take<std::uint64_t>());
    const auto read = cursor.take<StoreTime>();
    if (!time_is_kept_) {
        now_ = options_.clock ? options_.clock() : read;
        time_is_assumed_ = false;
    }
    has_looked_ = true;
    if (known_ != nullptr) {
        known_->put({read, stored_epoch_floor_, stored_fence_floor_, asked_});
    }
}

void PostgresTables::query_begins() {
    if (foresees()) {
        wants_query_ = true;
        leave();
    }
    flush();
}

void PostgresTables::plan_by_index() {
    // In a savepoint the user's statements go on; it is his plan that is then used.
    if (in_savepoint_ || !std::exchange(plans_freely_, false)) return;
    channel_->run_with_next({&sql_.plan_by_index, {}});
}

ResultPtr PostgresTables::query(const Sql& sql, Parameters arguments) {
    plan_by_index();
    return channel_->run_one({&sql, std::move(arguments)});
}

void PostgresTables::need(const std::function<void(Wanted&)>& want) {
    if (foresees()) {
        want(wanted_);
        leave();
    }
    Wanted wanted;
    want(wanted);
    load(wanted);
}

void PostgresTables::load(const Wanted& wanted) {
    std::vector<Load> loads;
    load_locks(wanted, loads);
    load_records(wanted, loads);
    load_jobs(wanted, loads);
    load_job_sets(wanted, loads);
    load_steps(wanted, loads);
    load_others(wanted, loads);
    // Behind the locks, so that neither the time nor a floor is older than what they guard.
    loads.push_back({{&sql_.look_around, {}}, [this](const PGresult* found) { look(found); }});
    std::vector<Command> commands;
    for (Load& load : loads)
        commands.push_back(std::move(load.command));
    asked_ = base::steady_now();
    plan_by_index();
    const std::vector<ResultPtr> results = channel_->run(commands);
    for (std::size_t i = 0; i < loads.size(); ++i)
        loads[i].take(results[i].get());
    wanted_ = {};
}

void PostgresTables::load_locks(const Wanted& wanted, std::vector<Load>& loads) {
    if (wanted.locks.empty()) return;
    ArrayEncoder ns(PgType::kText);
    ArrayEncoder names(PgType::kText);
    for (const LockName& lock : wanted.locks) {
        ns.next().put(lock.first);
        names.next().put(lock.second);
        locks_.try_emplace(lock);
    }
    Parameters arguments;
    arguments.add_array(ns).add_array(names);
    loads.push_back({{&form(sql_.locks), std::move(arguments)}, [this](const PGresult* found) {
                         each_row(found, [this](Cursor& cursor) {
                             LockRow row = take_row(cursor, lock_fields());
                             auto& entry = locks_[{row.ns, row.name}];
                             if (entry.row || entry.dirty) return;
                             entry = {true, false, std::move(row)};
                         });
                     }});
}

void PostgresTables::load_records(const Wanted& wanted, std::vector<Load>& loads) {
    if (wanted.records.empty()) return;
    for (const RecordKey& key : wanted.records)
        records_.try_emplace(key);
    // An enqueue in a user's transaction keeps the record from being pruned, and nothing else.
    const Sql& sql = mode_ == Mode::kWriteThrough ? sql_.kept_records : form(sql_.records);
    loads.push_back({{&sql, arrays_of_keys(wanted.records)}, [this](const PGresult* found) {
                         each_row(found, [this](Cursor& cursor) {
                             RecordRow row = take_row(cursor, record_fields());
                             auto& entry = records_[row.id];
                             if (entry.row || entry.dirty) return;
                             entry = {true, false, std::move(row)};
                         });
                     }});
}

void PostgresTables::load_jobs(const Wanted& wanted, std::vector<Load>& loads) {
    for (const std::string& id : wanted.jobs)
        jobs_[id].live_known = true;
    for (const std::string& id : wanted.finished)
        jobs_[id].final_known = true;
    if (!wanted.jobs.empty()) {
        loads.push_back({{&form(sql_.jobs), array_of_names(wanted.jobs)},
                         [this](const PGresult* found) { absorb_live(found); }});
    }
    // Behind the live ones: a job that ends meanwhile is found among the final ones.
    if (!wanted.finished.empty()) {
        loads.push_back({{&form(sql_.finished), array_of_names(wanted.finished)},
                         [this](const PGresult* found) {
                             each_row(found, [this](Cursor& cursor) {
                                 absorb(take_final_job(cursor), Place::kFinal);
                             });
                         }});
    }
}

/// What is found by something else than its id.
void PostgresTables::load_job_sets(const Wanted& wanted, std::vector<Load>& loads) {
    if (!wanted.slots.empty()) {
        for (const RecordKey& slot : wanted.slots)
            slots_[slot].reset();
        loads.push_back(
            {{&form(sql_.slot_holders), arrays_of_keys(wanted.slots)},
             [this](const PGresult* found) {
                 for (const JobRow& row : absorb_live(found))
                     slots_[{row.job.ns, row.job.kind, row.job.unique_key}] = row.job.id;
             }});
    }
    if (!wanted.lines.empty()) {
        for (const LineName& line : wanted.lines)
            lines_[line].reset();
        loads.push_back(
            {{&form(sql_.first_in_line), arrays_of(wanted.lines)}, [this](const PGresult* found) {
                 for (const JobRow& row : absorb_live(found))
                     lines_[line_of(row)] = row.job.id;
             }});
    }
    if (!wanted.live_of_keys.empty()) {
        for (const RecordKey& key : wanted.live_of_keys)
            live_of_keys_[key].reset();
        loads.push_back(
            {{&sql_.live_of_key, arrays_of_keys(wanted.live_of_keys)},
             [this](const PGresult* found) {
                 each_row(found, [this](Cursor& cursor) {
                     JobRow row = take_job(cursor);
                     live_of_keys_[{row.job.ns, row.job.kind, row.job.key}] = std::move(row);
                 });
             }});
    }
}

void PostgresTables::load_steps(const Wanted& wanted, std::vector<Load>& loads) {
    std::set<RecordKey> unknown;
    for (const RecordKey& key : wanted.steps) {
        if (steps_.try_emplace(key).second) unknown.insert(key);
    }
    if (unknown.empty()) return;
    loads.push_back({{&sql_.steps, arrays_of_keys(unknown)}, [this](const PGresult* found) {
                         each_row(found, [this](Cursor& cursor) {
                             StepRow row = take_row(cursor, step_fields());
                             steps_[row.record].rows.push_back(std::move(row));
                         });
                     }});
}

void PostgresTables::load_others(const Wanted& wanted, std::vector<Load>& loads) {
    if (!wanted.workers.empty()) {
        for (const std::string& id : wanted.workers)
            workers_.try_emplace(id);
        loads.push_back(
            {{&form(sql_.workers), array_of_names(wanted.workers)}, [this](const PGresult* found) {
                 each_row(found, [this](Cursor& cursor) {
                     WorkerRow row = take_row(cursor, worker_fields());
                     auto& entry = workers_[row.id];
                     if (entry.row || entry.dirty) return;
                     entry = {true, false, std::move(row)};
                 });
             }});
    }
    if (wanted.arrivals > 0) {
        loads.push_back(
            {{&sql_.arrivals, parameters(wanted.arrivals)}, [this](const PGresult* found) {
                 std::vector<std::int64_t> numbers;
                 each_row(found,
                          [&](Cursor& cursor) { numbers.push_back(cursor.take<std::int64_t>()); });
                 // Those that are left were given earlier and so are smaller.
                 numbers.insert(numbers.begin(), arrivals_.rbegin(), arrivals_.rend());
                 arrivals_.assign(numbers.rbegin(), numbers.rend());
             }});
    }
}

const JobRow& PostgresTables::absorb(JobRow row, Place place) {
    JobEntry& entry = jobs_[row.job.id];
    // What the unit has of it is at least as new: it was locked since.
    if (entry.stored != Place::kNone || entry.dirty) return entry.row;
    entry.stored = entry.place = place;
    entry.row = std::move(row);
    return entry.row;
}

std::vector<JobRow> PostgresTables::absorb_live(const PGresult* result) {
    std::vector<JobRow> rows;
    each_row(result, [&](Cursor& cursor) {
        rows.push_back(take_job(cursor));
        absorb(rows.back(), Place::kLive);
    });
    return rows;
}

void PostgresTables::foresee(const engine::Footprint& rows) {
    if (!foresees() && mode_ != Mode::kDirect) return;
    Wanted missing;
    for (const std::string& id : rows.jobs) {
        const auto known = jobs_.find(id);
        const bool is_known = known != jobs_.end() &&
                              (known->second.live_known || known->second.stored != Place::kNone);
        if (!is_known && !assume_job(id)) missing.jobs.insert(id);
    }
    for (const std::string& id : rows.fresh_jobs) {
        JobEntry& entry = jobs_[id];
        if (entry.live_known) continue;
        entry.live_known = entry.final_known = true;
        ++missing.arrivals;
    }
    for (const std::string& id : rows.new_jobs) {
        if (!jobs_.contains(id)) {
            missing.jobs.insert(id);
            missing.finished.insert(id);
            ++missing.arrivals;
        }
    }
    const auto want = [](auto& to, const auto& known, const auto& keys) {
        for (const auto& key : keys)
            if (!known.contains(key)) to.insert(key);
    };
    for (const RecordKey& key : rows.records)
        if (!records_.contains(key) && !assume_record(key)) missing.records.insert(key);
    for (const LockName& name : rows.locks)
        if (!locks_.contains(name) && !assume_lock(name)) missing.locks.insert(name);
    want(missing.steps, steps_, rows.steps);
    want(missing.slots, slots_, rows.slots);
    want(missing.live_of_keys, live_of_keys_, rows.live_of_keys);
    want(missing.workers, workers_, rows.workers);
    for (const LockName& lock : rows.lock_lines) {
        LineName line{lock.first, engine::WaitFor::kLock, {}, lock.second};
        if (!lines_.contains(line) && !assume_empty(line)) missing.lines.insert(std::move(line));
    }
    for (const RecordKey& key : rows.key_lines) {
        LineName line{key.ns, engine::WaitFor::kKey, key.kind, key.key};
        if (!lines_.contains(line) && !assume_empty(line)) missing.lines.insert(std::move(line));
    }
    if (missing.empty()) assume_time();
    if (!missing.empty() || !has_looked_) {
        need([&](Wanted& wanted) { wanted.add(missing); });
    }
}

PostgresTables::LineName PostgresTables::line_of(const JobRow& row) {
    const bool of_lock = row.waiting_for == engine::WaitFor::kLock;
    return {row.job.ns, row.waiting_for, of_lock ? std::string{} : row.job.kind, row.waiting_name};
}

void PostgresTables::note_moves(const JobRow& row) {
    const engine::Envelope& job = row.job;
    if (row.slot_held) moved_slots_.insert({job.ns, job.kind, job.unique_key});
    if (row.state == engine::JobState::kWaiting) moved_lines_.insert(line_of(row));
    if (job.key != job.id) moved_keys_.insert({job.ns, job.kind, job.key});
}

void PostgresTables::changed() {
    if (mode_ == Mode::kWriteThrough) flush();
}

bool PostgresTables::is_dirty() const {
    const auto dirty = [](const auto& pair) { return pair.second.dirty; };
    const auto dirty_steps = [](const auto& pair) {
        return pair.second.erased || !pair.second.dirty.empty();
    };
    return !attempts_.empty() || !events_.empty() || epoch_floor_ > stored_epoch_floor_ ||
           fence_floor_ > stored_fence_floor_ || std::any_of(jobs_.begin(), jobs_.end(), dirty) ||
           std::any_of(records_.begin(), records_.end(), dirty) ||
           std::any_of(locks_.begin(), locks_.end(), dirty) ||
           std::any_of(workers_.begin(), workers_.end(), dirty) ||
           std::any_of(steps_.begin(), steps_.end(), dirty_steps);
}

void PostgresTables::flush() {
    const std::vector<Command> changes = take_changes();
    if (changes.empty()) return;
    plan_by_index();
    version_is_unknown_ = version_is_unknown_ || in_savepoint_;
    writes();
    channel_->run(changes);
    undo_.clear();
    task_attempts_ = task_events_ = 0;
}

void PostgresTables::writes() {
    task_was_written_ = has_written_ = true;
}

}  // namespace sekali::postgres
