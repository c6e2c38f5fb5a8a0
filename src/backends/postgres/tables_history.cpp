#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "backends/postgres/fields.hpp"
#include "backends/postgres/tables.hpp"
#include "backends/rows/nearest_keys.hpp"
#include "backends/rows/refusals.hpp"

// History, lists, workers and queues: what people ask for.
namespace sekali::postgres {

using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::StoreTime;
using engine::WorkerRow;

namespace {

/// The condition of a list; lists are rare and their filters many, so the text is made for each.
std::string condition(const engine::JobFilter& filter, std::optional<JobState> state,
                      const std::string& table) {
    std::string text = " WHERE j.ns = $1 AND j.seq > $2";
    if (state) text += " AND j.state = $3::smallint";
    // Said once more, so that the partial index of these states is found to serve.
    if (state == JobState::kHeld || state == JobState::kRunning) text += " AND j.state IN (3, 4)";
    if (state == JobState::kDead) text += " AND j.state = 7";
    if (filter.kind) text += " AND j.kind = $4";
    if (filter.queue) text += " AND j.queue = $5";
    if (filter.key) {
        text += " AND j.seq IN (SELECT seq FROM " + table +
                " WHERE key = $6 AND ns = $1 UNION ALL"
                " SELECT seq FROM " +
                table + " WHERE id = $6 AND key IS NULL)";
    }
    return text + " ORDER BY j.seq LIMIT $7";
}

}  // namespace

engine::Page<JobRow> PostgresTables::list_jobs(const engine::JobFilter& filter) {
    query_begins();
    const std::int64_t after_seq = rows::parse_continuation(filter.after);
    std::optional<JobState> state;
    if (filter.state) state = engine::parse_job_state(*filter.state);
    engine::Page<JobRow> page;
    if (filter.state && !state) return page;
    Parameters arguments = parameters(filter.ns, after_seq, state, filter.kind, filter.queue,
                                      filter.key, filter.limit + 1);
    const bool wants_live = !state || !is_final(*state);
    const bool wants_final = !state || is_final(*state);
    std::vector<JobRow> rows;
    if (wants_live) {
        const Sql sql{"",
                      sql_.qualified("SELECT " + job_columns("j.") + " FROM @jobs AS j" +
                                     condition(filter, state, "@jobs")),
                      "list jobs"};
        const ResultPtr found = query(sql, arguments);
        for (int row = 0; row < PQntuples(found.get()); ++row) {
            Cursor cursor(found.get(), row);
            rows.push_back(take_job(cursor));
        }
    }
    if (wants_final) {
        const Sql sql{"",
                      sql_.qualified("SELECT " + final_columns("j.") + " FROM @finished AS j" +
                                     condition(filter, state, "@finished")),
                      "list jobs"};
        const ResultPtr found = query(sql, std::move(arguments));
        for (int row = 0; row < PQntuples(found.get()); ++row) {
            Cursor cursor(found.get(), row);
            rows.push_back(take_final_job(cursor));
        }
    }
    std::sort(rows.begin(), rows.end(),
              [](const JobRow& a, const JobRow& b) { return a.seq < b.seq; });
    if (rows.size() > filter.limit) {
        rows.resize(filter.limit);
        if (!rows.empty()) page.next = std::to_string(rows.back().seq);
    }
    page.items = std::move(rows);
    return page;
}

std::vector<JobRow> PostgresTables::jobs_of_key(std::string_view ns, std::string_view kind,
                                                std::string_view key) {
    query_begins();
    std::vector<JobRow> rows;
    const ResultPtr live = query(sql_.live_of_key_all, parameters(ns, kind, key));
    for (int row = 0; row < PQntuples(live.get()); ++row) {
        Cursor cursor(live.get(), row);
        rows.push_back(take_job(cursor));
    }
    const ResultPtr final_ones = query(sql_.finished_of_key_all, parameters(ns, kind, key));
    for (int row = 0; row < PQntuples(final_ones.get()); ++row) {
        Cursor cursor(final_ones.get(), row);
        rows.push_back(take_final_job(cursor));
    }
    std::sort(rows.begin(), rows.end(),
              [](const JobRow& a, const JobRow& b) { return a.seq < b.seq; });
    return rows;
}

void PostgresTables::add_attempt(const engine::AttemptRow& row) {
    attempts_.push_back(row);
    changed();
}

void PostgresTables::add_event(const engine::EventRow& row) {
    events_.push_back(row);
    changed();
}

std::vector<engine::AttemptRow> PostgresTables::attempts_of_key(const RecordKey& key) {
    query_begins();
    return all_rows(query(sql_.attempts_of_key, parameters(key.ns, key.kind, key.key)).get(),
                    attempt_fields());
}

std::vector<engine::EventRow> PostgresTables::events_of_key(const RecordKey& key) {
    query_begins();
    return all_rows(query(sql_.events_of_key, parameters(key.ns, key.kind, key.key)).get(),
                    event_fields());
}

std::vector<std::string> PostgresTables::kinds_of_key(std::string_view ns, std::string_view key) {
    query_begins();
    const ResultPtr found = query(sql_.kinds_of_key, parameters(ns, key));
    std::vector<std::string> kinds;
    for (int row = 0; row < PQntuples(found.get()); ++row)
        kinds.push_back(Cursor(found.get(), row).take<std::string>());
    return kinds;
}

std::vector<std::string> PostgresTables::nearest_keys(std::string_view ns, std::string_view key,
                                                      std::size_t limit) {
    query_begins();
    const ResultPtr found = query(sql_.neighbours, parameters(ns, key, rows::kNeighbours));
    std::set<std::string> neighbours;
    for (int row = 0; row < PQntuples(found.get()); ++row)
        neighbours.insert(Cursor(found.get(), row).take<std::string>());
    return rows::nearest(key, {neighbours.begin(), neighbours.end()}, limit);
}

std::size_t PostgresTables::prune_history(std::string_view ns, StoreTime before,
                                          std::size_t limit) {
    query_begins();
    writes();
    std::size_t dropped = 0;
    for (const Sql* sql : {&sql_.prune_finished, &sql_.prune_attempts, &sql_.prune_events}) {
        const ResultPtr done = query(*sql, parameters(ns, before, limit));
        dropped += std::stoull(PQcmdTuples(done.get()));
    }
    return dropped;
}

void PostgresTables::put_worker(const WorkerRow& row) {
    auto& entry = workers_.try_emplace(row.id).first->second;
    remember(entry);
    entry.row = row;
    entry.dirty = true;
    changed();
}

std::optional<WorkerRow> PostgresTables::worker(std::string_view id) {
    const auto known = workers_.find(id);
    if (known != workers_.end()) return known->second.row;
    need([&](Wanted& wanted) { wanted.workers.insert(std::string(id)); });
    return workers_.find(id)->second.row;
}

void PostgresTables::erase_worker(std::string_view id) {
    query_begins();
    writes();
    query(sql_.delete_worker, parameters(id));
    workers_[std::string(id)] = {};
}

std::vector<WorkerRow> PostgresTables::workers(std::string_view ns) {
    query_begins();
    return all_rows(query(sql_.workers_of, parameters(ns)).get(), worker_fields());
}

engine::OwnerFate PostgresTables::owner_fate(std::string_view worker_id) {
    // A connection that is gone proves no death: its worker may be alive behind a broken network.
    return options_.fate ? options_.fate(worker_id) : engine::OwnerFate::kUnknown;
}

std::optional<engine::QueueRow> PostgresTables::queue(std::string_view ns, std::string_view name) {
    query_begins();
    const ResultPtr found = query(sql_.queue, parameters(ns, name));
    if (PQntuples(found.get()) == 0) return std::nullopt;
    return engine::QueueRow{std::string(ns), std::string(name),
                            Cursor(found.get(), 0).take<bool>()};
}

void PostgresTables::put_queue(const engine::QueueRow& row) {
    query_begins();
    writes();
    made_news_ = true;
    query(sql_.put_queue, parameters(row.ns, row.name, row.paused));
}

std::vector<engine::QueueCounts> PostgresTables::queue_counts(std::string_view ns) {
    query_begins();
    std::map<std::string, engine::QueueCounts> counts;
    const ResultPtr jobs = query(sql_.live_counts, parameters(ns));
    for (int row = 0; row < PQntuples(jobs.get()); ++row) {
        Cursor cursor(jobs.get(), row);
        engine::QueueCounts& queue = counts[cursor.take<std::string>()];
        const auto state = cursor.take<JobState>();
        queue.by_state[std::string(to_string(state))] = cursor.take<std::uint64_t>();
        if (state == JobState::kReady) cursor.take_into(queue.oldest_ready);
    }
    const ResultPtr queues = query(sql_.queues_of, parameters(ns));
    for (int row = 0; row < PQntuples(queues.get()); ++row) {
        Cursor cursor(queues.get(), row);
        engine::QueueCounts& queue = counts[cursor.take<std::string>()];
        cursor.take_into(queue.paused);
    }
    for (const WorkerRow& worker : workers(ns)) {
        if (worker.lease_until <= now_) continue;
        for (const std::string& name : worker.queues)
            ++counts[name].live_workers;
    }
    std::vector<engine::QueueCounts> list;
    for (auto& [name, queue] : counts) {
        queue.queue = name;
        list.push_back(std::move(queue));
    }
    return list;
}

}  // namespace sekali::postgres
