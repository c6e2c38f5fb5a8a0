#include "backends/memory/job_table.hpp"

#include <algorithm>
#include <queue>

#include "sekali/result.hpp"

namespace sekali::memory {
namespace {

using engine::JobState;
using engine::RecordKey;
using engine::StoreTime;
using engine::WaitFor;

RecordKey key_of(const engine::JobRow& row) {
    return {row.job.ns, row.job.kind, row.job.key};
}

JobTable::Place place_of(const engine::JobRow& row) {
    return {-row.job.priority, row.seq};
}

JobTable::Group group_of(const engine::JobRow& row) {
    return {row.job.ns, row.job.queue, row.job.kind};
}

/// Lock names are shared by all kinds; an idempotency key belongs to one.
JobTable::LineName line_of(const engine::JobRow& row) {
    const bool of_lock = row.waiting_for == WaitFor::kLock;
    return {row.job.ns, row.waiting_for, of_lock ? std::string{} : row.job.kind, row.waiting_name};
}

bool live_or_dead(const engine::JobRow& row) {
    return !is_final(row.state) || row.state == JobState::kDead;
}

/// Calls `visit` for each group of these queues and kinds that has rows; names may repeat.
template <typename Groups, typename Visit>
void for_each_group(const Groups& groups, std::string_view ns,
                    const std::vector<std::string>& queues, const std::vector<std::string>& kinds,
                    const Visit& visit) {
    const std::set<std::string_view> queue_names(queues.begin(), queues.end());
    const std::set<std::string_view> kind_names(kinds.begin(), kinds.end());
    for (const std::string_view queue : queue_names) {
        for (const std::string_view kind : kind_names) {
            const auto group = groups.find(std::tuple{ns, queue, kind});
            if (group != groups.end()) visit(group->second);
        }
    }
}

template <typename Map>
const std::set<std::int64_t>& set_of(const Map& sets, std::string_view name) {
    static const std::set<std::int64_t> none;
    const auto found = sets.find(name);
    return found == sets.end() ? none : found->second;
}

template <typename Map, typename Key, typename Value>
void erase_from(Map& groups, const Key& group, const Value& value) {
    const auto found = groups.find(group);
    found->second.erase(value);
    if (found->second.empty()) groups.erase(found);
}

}  // namespace

std::optional<engine::JobRow> JobTable::set(const std::string& id, std::optional<Row> row) {
    if (row) require_free_slot(*row);
    std::optional<Row> before;
    const auto found = rows_.find(id);
    if (found != rows_.end()) {
        remove(found->second);
        before = std::move(found->second);
        if (!row) rows_.erase(found);
    }
    if (row) {
        Row& stored = rows_[id];
        stored = *std::move(row);
        add(stored);
    }
    return before;
}

void JobTable::require_free_slot(const Row& row) const {
    if (is_final(row.state) || !row.slot_held) return;
    const Row* holder = slot_holder(row.job.ns, row.job.kind, row.job.unique_key);
    if (holder == nullptr || holder->job.id == row.job.id) return;
    throw Failure({.code = ErrorCode::kInternal,
                   .message = "job " + row.job.id + " takes the unique slot that job " +
                              holder->job.id + " holds"});
}

void JobTable::add(const Row& row) {
    by_seq_[row.seq] = &row;
    by_namespace_[row.job.ns].insert(row.seq);
    KeyJobs& of_key = by_key_[key_of(row)];
    of_key.all.insert(row.seq);
    if (live_or_dead(row)) of_key.live_or_dead.insert(row.seq);
    if (is_final(row.state)) {
        ended_.emplace(row.job.ns, row.finished_at.value_or(StoreTime{}), row.seq);
    } else {
        add_live(row);
    }
}

void JobTable::remove(const Row& row) {
    by_seq_.erase(row.seq);
    erase_from(by_namespace_, row.job.ns, row.seq);
    const auto of_key = by_key_.find(key_of(row));
    of_key->second.all.erase(row.seq);
    of_key->second.live_or_dead.erase(row.seq);
    if (of_key->second.all.empty()) by_key_.erase(of_key);
    if (is_final(row.state)) {
        ended_.erase({row.job.ns, row.finished_at.value_or(StoreTime{}), row.seq});
    } else {
        remove_live(row);
    }
}

void JobTable::add_live(const Row& row) {
    QueueStats& stats = queues_[{row.job.ns, row.job.queue}];
    ++stats.by_state.at(static_cast<std::size_t>(row.state));
    if (row.slot_held) slots_[{row.job.ns, row.job.kind, row.job.unique_key}] = row.seq;
    if (row.state == JobState::kReady) {
        ready_[group_of(row)].insert(place_of(row));
        stats.ready_times.insert(row.run_at);
    } else if (row.state == JobState::kScheduled) {
        scheduled_[group_of(row)].emplace(row.run_at, row.seq);
    } else if (row.state == JobState::kWaiting) {
        lines_[line_of(row)].insert(place_of(row));
    } else if (row.state == JobState::kRunning) {
        running_[row.job.ns].insert(row.seq);
        Load& load = loads_[row.owner];
        ++load.running;
        load.begun += row.begun ? 1 : 0;
    }
}

void JobTable::remove_live(const Row& row) {
    const auto queue = queues_.find({row.job.ns, row.job.queue});
    QueueStats& stats = queue->second;
    --stats.by_state.at(static_cast<std::size_t>(row.state));
    if (row.slot_held) slots_.erase({row.job.ns, row.job.kind, row.job.unique_key});
    if (row.state == JobState::kReady) {
        erase_from(ready_, group_of(row), place_of(row));
        stats.ready_times.erase(stats.ready_times.find(row.run_at));
    } else if (row.state == JobState::kScheduled) {
        erase_from(scheduled_, group_of(row), std::pair{row.run_at, row.seq});
    } else if (row.state == JobState::kWaiting) {
        erase_from(lines_, line_of(row), place_of(row));
    } else if (row.state == JobState::kRunning) {
        erase_from(running_, row.job.ns, row.seq);
        Load& load = loads_[row.owner];
        load.begun -= row.begun ? 1 : 0;
        if (--load.running == 0) loads_.erase(row.owner);
    }
    if (stats.by_state == std::array<std::uint64_t, 5>{}) queues_.erase(queue);
}

const engine::JobRow* JobTable::find(std::string_view id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
}

std::vector<const engine::JobRow*> JobTable::ready(std::string_view ns,
                                                   const std::vector<std::string>& queues,
                                                   const std::vector<std::string>& kinds,
                                                   std::size_t limit) const {
    using Cursor = std::pair<Line::const_iterator, Line::const_iterator>;
    const auto later = [](const Cursor& a, const Cursor& b) { return *a.first > *b.first; };
    std::priority_queue<Cursor, std::vector<Cursor>, decltype(later)> heads(later);
    for_each_group(ready_, ns, queues, kinds,
                   [&](const Line& line) { heads.emplace(line.begin(), line.end()); });
    std::vector<const Row*> rows;
    while (!heads.empty() && rows.size() < limit) {
        auto [next, end] = heads.top();
        heads.pop();
        rows.push_back(by_seq_.at(next->second));
        if (++next != end) heads.emplace(next, end);
    }
    return rows;
}

std::optional<StoreTime> JobTable::next_scheduled(std::string_view ns,
                                                  const std::vector<std::string>& queues,
                                                  const std::vector<std::string>& kinds) const {
    std::optional<StoreTime> next;
    for_each_group(scheduled_, ns, queues, kinds, [&](const Times& times) {
        const StoreTime first = times.begin()->first;
        if (!next || first < *next) next = first;
    });
    return next;
}

bool JobTable::has_retry(std::string_view ns, const std::vector<std::string>& queues,
                         const std::vector<std::string>& kinds) const {
    bool found = false;
    for_each_group(scheduled_, ns, queues, kinds, [&](const Times& times) {
        found = found || std::any_of(times.begin(), times.end(), [&](const auto& time) {
                    return by_seq_.at(time.second)->deliveries > 0;
                });
    });
    return found;
}

std::vector<const engine::JobRow*> JobTable::due(std::string_view ns, StoreTime now,
                                                 std::size_t limit) const {
    Times due_times;
    const std::tuple first{ns, std::string_view{}, std::string_view{}};
    for (auto group = scheduled_.lower_bound(first); group != scheduled_.end(); ++group) {
        if (std::get<0>(group->first) != ns) break;
        std::size_t taken = 0;
        for (const auto& time : group->second) {
            if (time.first > now || taken++ == limit) break;
            due_times.insert(time);
        }
    }
    std::vector<const Row*> rows;
    for (const auto& [run_at, seq] : due_times) {
        if (rows.size() == limit) break;
        rows.push_back(by_seq_.at(seq));
    }
    return rows;
}

const std::set<std::int64_t>& JobTable::of_namespace(std::string_view ns) const {
    return set_of(by_namespace_, ns);
}

const std::set<std::int64_t>& JobTable::running(std::string_view ns) const {
    return set_of(running_, ns);
}

JobTable::Load JobTable::load(std::string_view owner) const {
    const auto found = loads_.find(owner);
    return found == loads_.end() ? Load{} : found->second;
}

const engine::JobRow* JobTable::slot_holder(std::string_view ns, std::string_view kind,
                                            std::string_view unique_key) const {
    const auto found = slots_.find(std::tuple{ns, kind, unique_key});
    return found == slots_.end() ? nullptr : by_seq_.at(found->second);
}

const engine::JobRow* JobTable::first_in_line(std::string_view ns, WaitFor wait,
                                              std::string_view kind, std::string_view name) const {
    const std::string_view line_kind = wait == WaitFor::kLock ? std::string_view{} : kind;
    const auto found = lines_.find(std::tuple{ns, wait, line_kind, name});
    return found == lines_.end() ? nullptr : by_seq_.at(found->second.begin()->second);
}

}  // namespace sekali::memory
