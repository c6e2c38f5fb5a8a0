#include <algorithm>
#include <utility>

#include "backends/postgres/fields.hpp"
#include "backends/postgres/tables.hpp"

// Idempotency records, their steps, lock rows, lines, and the floors that records and locks leave.
namespace sekali::postgres {

using engine::LockRow;
using engine::RecordKey;
using engine::RecordRow;
using engine::StepRow;
using engine::StoreTime;
using engine::WaitFor;

namespace {

/// Lines that one look along goes past at most.
constexpr std::size_t kLinesAtOnce = 500;

}  // namespace

PostgresTables::Entry<RecordRow>& PostgresTables::record_entry(const RecordKey& key) {
    const auto known = records_.find(key);
    if (known != records_.end()) return known->second;
    need([&](Wanted& wanted) { wanted.records.insert(key); });
    return records_[key];
}

std::optional<RecordRow> PostgresTables::record(const RecordKey& key) {
    return record_entry(key).row;
}

void PostgresTables::put_record(const RecordRow& row) {
    auto& entry = record_entry(row.id);
    if (mode_ == Mode::kWriteThrough && entry.stored) lock_unchanged(entry);
    remember(entry);
    if (entry.stored && !entry.row) {
        entry.changed = ~ColumnSet{0};  // it was to be erased
    } else {
        const RecordRow before = entry.row.value_or(RecordRow{});
        entry.changed |= different_columns(record_fields().subspan(3), before, row);
    }
    entry.row = row;
    entry.dirty = true;
    if (row.state != engine::RecordState::kProcessing) made_news_ = true;
    changed();
}

void PostgresTables::erase_record(const RecordKey& key) {
    auto& entry = record_entry(key);
    if (!entry.row) return;
    remember(epoch_floor_);
    epoch_floor_ = std::max(epoch_floor_, entry.row->epoch);
    erase_steps(key);
    remember(entry);
    entry.row.reset();
    entry.dirty = true;
    changed();
}

std::uint64_t PostgresTables::epoch_floor() {
    if (!has_looked_) need([](Wanted&) {});
    return epoch_floor_;
}

std::uint64_t PostgresTables::fence_floor() {
    if (!has_looked_) need([](Wanted&) {});
    return fence_floor_;
}

std::vector<RecordRow> PostgresTables::prunable_records(std::string_view ns, std::size_t limit) {
    query_begins();
    const ResultPtr found = query(form(sql_.prunable_records), parameters(ns, now_, limit));
    std::vector<RecordRow> rows = all_rows(found.get(), record_fields());
    if (!locks_rows()) return rows;
    for (const RecordRow& row : rows)
        records_.try_emplace(row.id, Entry<RecordRow>{true, false, row});
    return rows;
}

std::vector<RecordRow> PostgresTables::stale_records(std::string_view ns, std::size_t limit) {
    query_begins();
    const ResultPtr found = query(sql_.stale_records, parameters(ns, now_, limit));
    return all_rows(found.get(), record_fields());
}

PostgresTables::StepsEntry& PostgresTables::steps_entry(const RecordKey& key) {
    const auto known = steps_.find(key);
    if (known != steps_.end()) return known->second;
    need([&](Wanted& wanted) { wanted.steps.insert(key); });
    return steps_[key];
}

std::vector<StepRow> PostgresTables::steps(const RecordKey& key) {
    return steps_entry(key).rows;
}

void PostgresTables::put_step(const StepRow& row) {
    StepsEntry& entry = steps_entry(row.record);
    remember(entry);
    auto& rows = entry.rows;
    std::erase_if(rows, [&](const StepRow& old) { return old.name == row.name; });
    const auto place = std::find_if(rows.begin(), rows.end(), [&](const StepRow& other) {
        return std::tie(row.order, row.name) < std::tie(other.order, other.name);
    });
    rows.insert(place, row);
    entry.dirty.insert(row.name);
    changed();
}

void PostgresTables::erase_steps(const RecordKey& key) {
    StepsEntry& entry = steps_entry(key);
    remember(entry);
    entry = {{}, {}, true};
    changed();
}

PostgresTables::Entry<LockRow>& PostgresTables::lock_entry(const LockName& name) {
    const auto known = locks_.find(name);
    if (known != locks_.end()) return known->second;
    need([&](Wanted& wanted) { wanted.locks.insert(name); });
    return locks_[name];
}

std::optional<LockRow> PostgresTables::lock(std::string_view ns, std::string_view name) {
    return lock_entry({std::string(ns), std::string(name)}).row;
}

void PostgresTables::put_lock(const LockRow& row) {
    auto& entry = lock_entry({row.ns, row.name});
    remember(entry);
    entry.row = row;
    entry.dirty = true;
    if (row.owner.empty()) made_news_ = true;
    changed();
}

void PostgresTables::erase_lock(std::string_view ns, std::string_view name) {
    auto& entry = lock_entry({std::string(ns), std::string(name)});
    if (!entry.row) return;
    remember(fence_floor_);
    fence_floor_ = std::max(fence_floor_, entry.row->fence);
    remember(entry);
    entry.row.reset();
    entry.dirty = true;
    made_news_ = true;
    changed();
}

std::vector<LockRow> PostgresTables::held_locks(std::string_view ns) {
    query_begins();
    return all_rows(query(sql_.held_locks, parameters(ns, now_)).get(), lock_fields());
}

std::vector<LockRow> PostgresTables::idle_locks(std::string_view ns, StoreTime before,
                                                std::size_t limit) {
    query_begins();
    const ResultPtr found = query(sql_.idle_locks, parameters(ns, before, limit));
    std::vector<LockRow> rows = all_rows(found.get(), lock_fields());
    for (const LockRow& row : rows)
        locks_.try_emplace({row.ns, row.name}, Entry<LockRow>{true, false, row});
    return rows;
}

std::vector<RecordKey> PostgresTables::standing(const Sql& sql, WaitFor wait, std::string_view ns,
                                                std::size_t limit) {
    query_begins();
    RecordKey& at = line_cursors_.try_emplace({wait, std::string(ns)}).first->second;
    const ResultPtr lines = query(sql, parameters(ns, at.kind, at.key, now_, kLinesAtOnce));
    std::vector<RecordKey> found;
    const int count = PQntuples(lines.get());
    for (int row = 0; row < count && found.size() < limit; ++row) {
        Cursor cursor(lines.get(), row);
        at.ns = ns;
        cursor.take_into(at.kind);
        cursor.take_into(at.key);
        if (cursor.take<bool>()) found.push_back(at);
    }
    const bool at_the_end = found.size() < limit && count < static_cast<int>(kLinesAtOnce);
    if (at_the_end) at = {};
    return found;
}

std::vector<std::string> PostgresTables::stalled_lines(std::string_view ns, std::size_t limit) {
    std::vector<std::string> names;
    for (RecordKey& line : standing(sql_.stalled_lines, WaitFor::kLock, ns, limit))
        names.push_back(std::move(line.key));
    return names;
}

std::vector<RecordKey> PostgresTables::stalled_keys(std::string_view ns, std::size_t limit) {
    return standing(sql_.stalled_keys, WaitFor::kKey, ns, limit);
}

}  // namespace sekali::postgres
