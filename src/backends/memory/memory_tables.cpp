#include "backends/memory/memory_tables.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>

#include "backends/rows/nearest_keys.hpp"
#include "sekali/result.hpp"
#include "sekali/transaction.hpp"

namespace sekali::memory {
namespace {

using engine::JobState;
using engine::RecordRow;
using engine::RecordState;
using engine::StoreTime;
using engine::WaitFor;

/// What effects write through. There is no SQL in memory, but enqueues work.
class MemorySession final : public internal::SqlSession {
 public:
    explicit MemorySession(engine::Tables& tables) : tables_(tables) {}
    std::int64_t execute(std::string_view, std::span<const SqlValue>) override { refuse(); }
    std::unique_ptr<internal::SqlCursor> query(std::string_view,
                                               std::span<const SqlValue>) override {
        refuse();
    }
    engine::Tables& tables() override { return tables_; }

 private:
    [[noreturn]] static void refuse() {
        throw Failure({.code = ErrorCode::kUsage,
                       .message = "memory: has no SQL",
                       .hint = "use sqlite: for handlers that write through ctx.commit"});
    }
    engine::Tables& tables_;
};

bool is_open(const RecordRow& row) {
    return row.state == RecordState::kProcessing || row.state == RecordState::kHeld;
}

bool expires(const RecordRow& row) {
    const bool final = row.state == RecordState::kSucceeded || row.state == RecordState::kDead ||
                       row.state == RecordState::kCancelled;
    return final && !row.marked && row.finished_at.has_value();
}

}  // namespace

std::uint64_t MemoryTables::next(std::uint64_t& counter) {
    undo_.push([&counter, before = counter] { counter = before; });
    return ++counter;
}

void MemoryTables::raise(std::uint64_t& floor, std::uint64_t reached) {
    if (reached <= floor) return;
    undo_.push([&floor, before = floor] { floor = before; });
    floor = reached;
}

// ---- records
// ---------------------------------------------------------------------------------------

void MemoryTables::index_record(const RecordRow& row, bool present) {
    if (is_open(row)) {
        if (present) {
            open_records_.insert(row.id);
        } else {
            open_records_.erase(row.id);
        }
    }
    if (expires(row)) {
        Expiry expiry{row.id.ns, *row.finished_at + row.keep, row.id};
        if (present) {
            expiring_records_.insert(std::move(expiry));
        } else {
            expiring_records_.erase(expiry);
        }
    }
}

std::optional<RecordRow> MemoryTables::replace_record(const RecordKey& key,
                                                      std::optional<RecordRow> row) {
    const auto found = records_.find(key);
    if (found != records_.end()) index_record(found->second, false);
    if (row) index_record(*row, true);
    return replace(records_, key, std::move(row));
}

void MemoryTables::set_record(const RecordKey& key, std::optional<RecordRow> row) {
    auto before = replace_record(key, std::move(row));
    undo_.push([this, key, before = std::move(before)]() mutable {
        replace_record(key, std::move(before));
    });
}

std::optional<RecordRow> MemoryTables::record(const RecordKey& key) {
    const auto found = records_.find(key);
    return found == records_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryTables::put_record(const RecordRow& row) {
    set_record(row.id, row);
}

void MemoryTables::erase_record(const RecordKey& key) {
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    raise(epoch_floor_, found->second.epoch);
    erase_steps(key);
    set_record(key, std::nullopt);
}

std::vector<RecordRow> MemoryTables::prunable_records(std::string_view ns, std::size_t limit) {
    std::vector<RecordRow> rows;
    const std::string name(ns);
    for (auto at = expiring_records_.lower_bound({name, StoreTime::min(), {}});
         at != expiring_records_.end() && rows.size() < limit; ++at) {
        const auto& [record_ns, until, key] = *at;
        if (record_ns != name || until > now_) break;
        rows.push_back(records_.at(key));
    }
    return rows;
}

std::vector<RecordRow> MemoryTables::stale_records(std::string_view ns, std::size_t limit) {
    std::vector<RecordRow> rows;
    for (auto at = open_records_.lower_bound({std::string(ns), {}, {}});
         at != open_records_.end() && at->ns == ns && rows.size() < limit; ++at) {
        const RecordRow& row = records_.at(*at);
        if (row.state == RecordState::kHeld || row.lease_until <= now_) rows.push_back(row);
    }
    return rows;
}

// ---- steps
// -----------------------------------------------------------------------------------------

std::vector<engine::StepRow> MemoryTables::steps(const RecordKey& key) {
    const auto found = steps_.find(key);
    return found == steps_.end() ? std::vector<StepRow>{} : found->second;
}

void MemoryTables::put_step(const StepRow& row) {
    std::vector<StepRow> rows = steps(row.record);
    std::erase_if(rows, [&](const StepRow& other) { return other.name == row.name; });
    const auto behind =
        std::upper_bound(rows.begin(), rows.end(), row,
                         [](const StepRow& a, const StepRow& b) { return a.order < b.order; });
    rows.insert(behind, row);
    set(steps_, row.record, std::move(rows));
}

void MemoryTables::erase_steps(const RecordKey& key) {
    if (steps_.contains(key)) set(steps_, key, std::nullopt);
}

// ---- locks
// -----------------------------------------------------------------------------------------

std::optional<engine::LockRow> MemoryTables::lock(std::string_view ns, std::string_view name) {
    const auto found = locks_.find(std::tuple{ns, name});
    return found == locks_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryTables::put_lock(const LockRow& row) {
    set(locks_, {row.ns, row.name}, row);
}

void MemoryTables::erase_lock(std::string_view ns, std::string_view name) {
    const auto found = locks_.find(std::tuple{ns, name});
    if (found == locks_.end()) return;
    raise(fence_floor_, found->second.fence);
    set(locks_, {std::string(ns), std::string(name)}, std::nullopt);
}

std::vector<engine::LockRow> MemoryTables::held_locks(std::string_view ns) {
    std::vector<LockRow> rows;
    for (auto at = locks_.lower_bound(std::tuple{ns, std::string_view{}});
         at != locks_.end() && std::get<0>(at->first) == ns; ++at) {
        const LockRow& row = at->second;
        if (!row.owner.empty() && row.lease_until > now_) rows.push_back(row);
    }
    return rows;
}

std::vector<engine::LockRow> MemoryTables::idle_locks(std::string_view ns, StoreTime before,
                                                      std::size_t limit) {
    std::vector<LockRow> rows;
    for (auto at = locks_.lower_bound(std::tuple{ns, std::string_view{}});
         at != locks_.end() && std::get<0>(at->first) == ns && rows.size() < limit; ++at) {
        const LockRow& row = at->second;
        if (row.lease_until < before && row.reserved_until < before) rows.push_back(row);
    }
    return rows;
}

std::vector<JobTable::LineName> MemoryTables::find_lines(
    std::string_view ns, WaitFor wait, std::size_t limit,
    const std::function<bool(const JobTable::LineName&)>& stalled) {
    std::vector<JobTable::LineName> all;
    const auto& lines = jobs_.lines();
    const std::tuple first{ns, wait, std::string_view{}, std::string_view{}};
    for (auto at = lines.lower_bound(first); at != lines.end(); ++at) {
        if (std::get<0>(at->first) != ns || std::get<1>(at->first) != wait) break;
        all.push_back(at->first);
    }
    // Each look goes on behind the last one, so that lines that stay stalled hide no others.
    JobTable::LineName& last = last_line_seen_[{std::string(ns), wait}];
    std::rotate(all.begin(), std::upper_bound(all.begin(), all.end(), last), all.end());
    std::vector<JobTable::LineName> found;
    for (const JobTable::LineName& line : all) {
        if (found.size() == limit) break;
        if (stalled(line)) found.push_back(line);
    }
    if (found.size() == limit && !found.empty()) last = found.back();
    return found;
}

std::vector<std::string> MemoryTables::stalled_lines(std::string_view ns, std::size_t limit) {
    const auto stalled = [this](const JobTable::LineName& line) {
        const auto row = lock(std::get<0>(line), std::get<3>(line));
        const bool held = row && !row->owner.empty() && row->lease_until > now_;
        const bool reserved = row && !row->reserved_for.empty() && row->reserved_until > now_;
        return !held && !reserved;
    };
    std::vector<std::string> names;
    for (const JobTable::LineName& line : find_lines(ns, WaitFor::kLock, limit, stalled)) {
        names.push_back(std::get<3>(line));
    }
    return names;
}

std::vector<engine::RecordKey> MemoryTables::stalled_keys(std::string_view ns, std::size_t limit) {
    const auto stalled = [this](const JobTable::LineName& line) {
        const auto row = record({std::get<0>(line), std::get<2>(line), std::get<3>(line)});
        const bool runs = row && row->state == RecordState::kProcessing && row->lease_until > now_;
        const bool held = row && row->state == RecordState::kHeld;
        return !runs && !held;
    };
    std::vector<RecordKey> keys;
    for (const JobTable::LineName& line : find_lines(ns, WaitFor::kKey, limit, stalled)) {
        keys.push_back({std::get<0>(line), std::get<2>(line), std::get<3>(line)});
    }
    return keys;
}

// ---- history
// ---------------------------------------------------------------------------------------

template <typename Row>
void MemoryTables::append(History<Row>& history, const Row& row) {
    const std::uint64_t id = next(last_history_id_);
    history.add(id, row);
    undo_.push([&history, id] { history.remove(id); });
}

template <typename Row>
void MemoryTables::drop(History<Row>& history, std::uint64_t id) {
    undo_.push([&history, id, row = history.remove(id)] { history.add(id, row); });
}

void MemoryTables::add_attempt(const engine::AttemptRow& row) {
    const AttemptRun run = run_of(row);
    if (!attempt_runs_.insert(run).second) return;
    undo_.push([this, run] { attempt_runs_.erase(run); });
    append(attempts_, row);
}

void MemoryTables::add_event(const engine::EventRow& row) {
    append(events_, row);
}

std::vector<engine::AttemptRow> MemoryTables::attempts_of_key(const RecordKey& key) {
    return attempts_.of_key(key);
}

std::vector<engine::EventRow> MemoryTables::events_of_key(const RecordKey& key) {
    return events_.of_key(key);
}

std::set<engine::RecordKey> MemoryTables::known_keys(std::string_view ns) const {
    std::set<RecordKey> keys;
    const RecordKey first{std::string(ns), {}, {}};
    for (auto at = records_.lower_bound(first); at != records_.end() && at->first.ns == ns; ++at) {
        keys.insert(at->first);
    }
    const auto& jobs = jobs_.by_key();
    for (auto at = jobs.lower_bound(first); at != jobs.end() && at->first.ns == ns; ++at) {
        keys.insert(at->first);
    }
    return keys;
}

std::vector<std::string> MemoryTables::kinds_of_key(std::string_view ns, std::string_view key) {
    std::vector<std::string> kinds;
    for (const RecordKey& known : known_keys(ns)) {
        if (known.key == key) kinds.push_back(known.kind);
    }
    return kinds;
}

std::vector<std::string> MemoryTables::nearest_keys(std::string_view ns, std::string_view key,
                                                    std::size_t limit) {
    std::set<std::string> names;
    for (const RecordKey& known : known_keys(ns))
        names.insert(known.key);
    return rows::nearest(key, {names.begin(), names.end()}, limit);
}

std::size_t MemoryTables::prune_history(std::string_view ns, StoreTime before, std::size_t limit) {
    std::vector<std::string> jobs;
    for (auto at = jobs_.ended().lower_bound({std::string(ns), StoreTime::min(), 0});
         at != jobs_.ended().end() && jobs.size() < limit; ++at) {
        const auto& [job_ns, finished_at, seq] = *at;
        if (job_ns != ns || finished_at >= before) break;
        jobs.push_back(jobs_.at(seq).job.id);
    }
    for (const std::string& id : jobs)
        erase_finished(id);

    const auto ended_before = [&](const auto& history, auto ended_at) {
        std::vector<std::uint64_t> ids;
        for (const auto& [id, row] : history.rows()) {
            if (ids.size() == limit) break;
            if (row.ns == ns && ended_at(row) < before) ids.push_back(id);
        }
        return ids;
    };
    const auto attempts = ended_before(attempts_, [](const engine::AttemptRow& row) {
        return row.finished_at.value_or(StoreTime::max());
    });
    for (const std::uint64_t id : attempts) {
        const engine::AttemptRow& row = attempts_.rows().at(id);
        const AttemptRun run = run_of(row);
        attempt_runs_.erase(run);
        undo_.push([this, run] { attempt_runs_.insert(run); });
        drop(attempts_, id);
    }
    const auto events = ended_before(events_, [](const engine::EventRow& row) { return row.at; });
    for (const std::uint64_t id : events)
        drop(events_, id);
    return jobs.size() + attempts.size() + events.size();
}

// ---- workers and queues
// ------------------------------------------------------------------------------

void MemoryTables::put_worker(const engine::WorkerRow& row) {
    set(workers_, row.id, row);
}

std::optional<engine::WorkerRow> MemoryTables::worker(std::string_view id) {
    const auto found = workers_.find(id);
    return found == workers_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryTables::erase_worker(std::string_view id) {
    if (workers_.contains(id)) set(workers_, std::string(id), std::nullopt);
}

std::vector<engine::WorkerRow> MemoryTables::workers(std::string_view ns) {
    std::vector<engine::WorkerRow> rows;
    for (const auto& [id, row] : workers_) {
        if (row.ns == ns) rows.push_back(row);
    }
    return rows;
}

engine::OwnerFate MemoryTables::owner_fate(std::string_view worker_id) {
    const auto found = fates_.find(worker_id);
    return found == fates_.end() ? engine::OwnerFate::kUnknown : found->second;
}

std::optional<engine::QueueRow> MemoryTables::queue(std::string_view ns, std::string_view name) {
    const auto found = queues_.find(std::tuple{ns, name});
    return found == queues_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryTables::put_queue(const engine::QueueRow& row) {
    set(queues_, {row.ns, row.name}, row);
}

std::vector<engine::QueueCounts> MemoryTables::queue_counts(std::string_view ns) {
    std::map<std::string, engine::QueueCounts> counts;
    for (const auto& [name, stats] : jobs_.queues()) {
        if (name.first != ns) continue;
        engine::QueueCounts& queue = counts[name.second];
        for (std::size_t state = 0; state < stats.by_state.size(); ++state) {
            if (stats.by_state[state] == 0) continue;
            queue.by_state[std::string(to_string(static_cast<JobState>(state)))] =
                stats.by_state[state];
        }
        if (!stats.ready_times.empty()) queue.oldest_ready = *stats.ready_times.begin();
    }
    for (const auto& [name, row] : queues_) {
        if (row.ns == ns) counts[row.name].paused = row.paused;
    }
    for (const auto& [id, row] : workers_) {
        if (row.ns != ns || row.lease_until <= now_) continue;
        for (const std::string& queue : row.queues)
            ++counts[queue].live_workers;
    }
    std::vector<engine::QueueCounts> list;
    for (auto& [name, queue] : counts) {
        queue.queue = name;
        list.push_back(std::move(queue));
    }
    return list;
}

Result<void> MemoryTables::run_effects(const std::function<Result<void>(Transaction&)>& effects) {
    const UndoLog::Mark savepoint = undo_.mark();
    Result<void> result;
    try {
        Transaction transaction(std::make_unique<MemorySession>(*this));
        result = effects(transaction);
    } catch (const Failure& failure) {
        result = failure.error();
    } catch (const std::exception& thrown) {
        result = Error{.code = ErrorCode::kRefused, .message = thrown.what()};
    } catch (...) {
        result = Error{.code = ErrorCode::kRefused, .message = "an effect threw something unknown"};
    }
    if (!result.ok()) undo_.roll_back_to(savepoint);
    return result;
}

}  // namespace sekali::memory
