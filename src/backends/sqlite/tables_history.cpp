#include <algorithm>
#include <set>

#include "backends/rows/nearest_keys.hpp"
#include "backends/rows/refusals.hpp"
#include "backends/sqlite/rows.hpp"
#include "backends/sqlite/tables.hpp"

// Lists and history: what people ask for.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::StoreTime;

std::string_view narrowest_source(const engine::JobFilter& filter, std::optional<JobState> state,
                                  bool live) {
    if (filter.key) {
        return live ? "sekali_jobs WHERE (key = ?4 OR id = ?4 AND key IS NULL)"
                    : "sekali_finished WHERE (key = ?4 OR id = ?4 AND key IS NULL)";
    }
    if (state == JobState::kHeld || state == JobState::kRunning) {
        return "sekali_jobs INDEXED BY sekali_jobs_active WHERE state IN (3, 4)";
    }
    if (state == JobState::kDead) {
        return "sekali_finished INDEXED BY sekali_finished_dead WHERE state = 7";
    }
    return live ? "sekali_jobs NOT INDEXED WHERE 1" : "sekali_finished NOT INDEXED WHERE 1";
}

/// The places of what a list shows of one table. Lists are rare and their filters many, so the text
/// is made for each.
std::vector<std::int64_t> listed(Connection& connection, const engine::JobFilter& filter,
                                 std::int64_t after_seq, bool live) {
    std::optional<JobState> state;
    if (filter.state) {
        state = engine::parse_job_state(*filter.state);
        if (!state || is_final(*state) == live) return {};
    }
    std::string sql = "SELECT seq FROM ";
    sql += narrowest_source(filter, state, live);
    sql += " AND ns = ?1 AND seq > ?2";
    if (state) sql += " AND state = ?3";
    if (filter.kind) sql += " AND kind = ?5";
    if (filter.queue) sql += " AND queue = ?6";
    sql += " ORDER BY seq LIMIT ?7";

    const StatementPtr statement = connection.prepare(sql);
    Query query(connection, statement.get());
    query.bind(filter.ns).bind(after_seq).bind(state);
    query.bind(filter.key).bind(filter.kind).bind(filter.queue).bind(filter.limit + 1);
    std::vector<std::int64_t> places;
    while (query.next())
        places.push_back(query.take<std::int64_t>());
    return places;
}

}  // namespace

engine::Page<JobRow> SqliteTables::list_jobs(const engine::JobFilter& filter) {
    const std::int64_t after_seq = rows::parse_continuation(filter.after);
    std::vector<std::pair<std::int64_t, Sql>> places;
    for (const std::int64_t seq : listed(connection_, filter, after_seq, true))
        places.emplace_back(seq, Sql::kJobBySeq);
    for (const std::int64_t seq : listed(connection_, filter, after_seq, false))
        places.emplace_back(seq, Sql::kFinishedBySeq);
    std::sort(places.begin(), places.end());

    engine::Page<JobRow> page;
    for (const auto& [seq, from] : places) {
        if (page.items.size() == filter.limit) {
            if (!page.items.empty()) page.next = std::to_string(page.items.back().seq);
            break;
        }
        Query query(statements_, from, seq);
        if (query.next()) page.items.push_back(take_job(query));
    }
    return page;
}

std::vector<JobRow> SqliteTables::jobs_of_key(std::string_view ns, std::string_view kind,
                                              std::string_view key) {
    std::vector<JobRow> rows;
    for (const Sql which : {Sql::kJobsOfKey, Sql::kFinishedOfKey}) {
        Query query(statements_, which, ns, kind, key);
        while (query.next())
            rows.push_back(take_job(query));
    }
    std::sort(rows.begin(), rows.end(),
              [](const JobRow& a, const JobRow& b) { return a.seq < b.seq; });
    return rows;
}

void SqliteTables::add_attempt(const engine::AttemptRow& row) {
    Query(statements_, Sql::kAddAttempt, row.ns, row.kind, row.key, row.job_id, row.attempt,
          row.epoch, row.worker, row.started_at, row.finished_at, row.outcome, row.error)
        .run();
}

void SqliteTables::add_event(const engine::EventRow& row) {
    Query(statements_, Sql::kAddEvent, row.ns, row.at, to_string(row.event), row.job_id, row.kind,
          row.key, row.epoch, row.worker, row.detail)
        .run();
}

std::vector<engine::AttemptRow> SqliteTables::attempts_of_key(const RecordKey& key) {
    Query query(statements_, Sql::kAttemptsOfKey, key.ns, key.kind, key.key);
    std::vector<engine::AttemptRow> rows;
    while (query.next())
        rows.push_back(take_attempt(query));
    return rows;
}

std::vector<engine::EventRow> SqliteTables::events_of_key(const RecordKey& key) {
    Query query(statements_, Sql::kEventsOfKey, key.ns, key.kind, key.key);
    std::vector<engine::EventRow> rows;
    while (query.next())
        rows.push_back(take_event(query));
    return rows;
}

std::vector<std::string> SqliteTables::record_kinds(std::string_view ns) {
    std::vector<std::string> kinds;
    std::string last;
    for (;;) {
        Query query(statements_, Sql::kNextRecordKind, ns, last);
        if (!query.next()) return kinds;
        query.take_into(last);
        kinds.push_back(last);
    }
}

std::vector<std::string> SqliteTables::kinds_of_key(std::string_view ns, std::string_view key) {
    std::set<std::string> kinds;
    for (const std::string& kind : record_kinds(ns)) {
        if (record({std::string(ns), kind, std::string(key)})) kinds.insert(kind);
    }
    for (const Sql which :
         {Sql::kKindsOfJobKey, Sql::kKindsOfFinishedKey, Sql::kKindOfId, Sql::kKindOfFinishedId}) {
        Query query(statements_, which, ns, key);
        while (query.next())
            kinds.insert(query.take<std::string>());
    }
    return {kinds.begin(), kinds.end()};
}

std::vector<std::string> SqliteTables::nearest_keys(std::string_view ns, std::string_view key,
                                                    std::size_t limit) {
    std::set<std::string> neighbours;
    const auto collect = [&](Query query) {
        while (query.next())
            neighbours.insert(query.take<std::string>());
    };
    for (const std::string& kind : record_kinds(ns)) {
        for (const Sql which : {Sql::kRecordKeysFrom, Sql::kRecordKeysBefore})
            collect(Query(statements_, which, ns, kind, key, rows::kNeighbours));
    }
    for (const Sql which : {Sql::kJobKeysFrom, Sql::kJobKeysBefore, Sql::kFinishedKeysFrom,
                            Sql::kFinishedKeysBefore}) {
        collect(Query(statements_, which, ns, key, rows::kNeighbours));
    }
    return rows::nearest(key, {neighbours.begin(), neighbours.end()}, limit);
}

std::size_t SqliteTables::prune_history(std::string_view ns, StoreTime before, std::size_t limit) {
    std::size_t dropped = 0;
    for (const Sql which : {Sql::kPruneFinished, Sql::kPruneAttempts, Sql::kPruneEvents})
        dropped += Query(statements_, which, ns, before, limit).run();
    return dropped;
}

}  // namespace sekali::sqlite
