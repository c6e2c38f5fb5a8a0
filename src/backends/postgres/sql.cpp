#include "backends/postgres/sql.hpp"

#include <string>
#include <vector>

#include "backends/postgres/sql_text.hpp"

namespace sekali::postgres {
namespace {

using namespace sqltext;

/// Lines of a lock are shared by all kinds.
constexpr std::string_view kLineKind = "(CASE WHEN j.waiting_for = 1 THEN '' ELSE j.kind END)";

std::string planning(const std::string& scans, const std::string& cache) {
    std::string text = "SELECT set_config('plan_cache_mode', '" + cache + "', true)";
    for (const char* method : {"seqscan", "bitmapscan", "hashjoin", "mergejoin"})
        text += std::string(", set_config('enable_") + method + "', '" + scans + "', true)";
    return text;
}

/// One bounded search for each queue and kind, so that a head of kinds that nobody here serves
/// slows nothing down; more places than are wanted, because others may be about to take some. Only
/// as many rows are locked as are given out: the limit stands above the locking.
constexpr std::string_view kClaimable =
    "WITH places AS MATERIALIZED ("
    " SELECT p.priority, p.seq"
    " FROM (SELECT DISTINCT unnest($2::text[]) AS queue) AS q,"
    " (SELECT DISTINCT unnest($3::text[]) AS kind) AS k,"
    " LATERAL (SELECT j.priority, j.seq FROM @jobs AS j"
    "  WHERE j.ns = $1 AND j.queue = q.queue AND j.kind = k.kind AND j.state = 1"
    "  ORDER BY j.priority DESC, j.seq LIMIT $5) AS p"
    " WHERE NOT EXISTS (SELECT 1 FROM @queues AS u"
    "  WHERE u.ns = $1 AND u.name = q.queue AND u.paused)"
    " ORDER BY p.priority DESC, p.seq LIMIT $5)";

/// The kinds that records have, by one step along the index for each.
constexpr std::string_view kRecordKinds =
    "WITH RECURSIVE kinds AS ("
    " (SELECT kind FROM @records WHERE ns = $1 ORDER BY kind LIMIT 1) UNION ALL"
    " SELECT next.kind FROM kinds, LATERAL (SELECT r.kind FROM @records AS r"
    "  WHERE r.ns = $1 AND r.kind > kinds.kind ORDER BY r.kind LIMIT 1) AS next)";

std::string claimable_rows() {
    return std::string(kClaimable) + " SELECT " + job_columns("j.") +
           ", j.payload FROM places AS p JOIN @jobs AS j ON j.seq = p.seq WHERE j.state = 1 "
           "ORDER BY j.priority DESC, j.seq LIMIT $4";
}

// What a line waits for is held up by a job that will not move by itself: held, merely delayed, or
// in a paused queue.
constexpr std::string_view kHasDrainable =
    "SELECT EXISTS (SELECT 1 FROM @jobs AS j WHERE j.ns = $1 AND j.state = 3"
    "  AND j.state IN (3, 4) AND j.queue = ANY($2) AND j.kind = ANY($3))"
    " OR EXISTS (SELECT 1 FROM unnest($2::text[]) AS q(queue), unnest($3::text[]) AS k(kind)"
    "  WHERE NOT EXISTS (SELECT 1 FROM @queues AS u"
    "   WHERE u.ns = $1 AND u.name = q.queue AND u.paused)"
    "  AND (EXISTS (SELECT 1 FROM @jobs AS j WHERE j.ns = $1 AND j.queue = q.queue"
    "    AND j.kind = k.kind AND j.state = 1)"
    "   OR EXISTS (SELECT 1 FROM @jobs AS j WHERE j.ns = $1 AND j.queue = q.queue"
    "    AND j.kind = k.kind AND (j.deliveries > 0) = true AND j.state = 0)))"
    " OR EXISTS (SELECT 1 FROM @jobs AS j"
    "  LEFT JOIN @locks AS l ON j.waiting_for = 1 AND l.ns = j.ns AND l.name = j.waiting_name"
    "  LEFT JOIN @records AS r ON j.waiting_for = 2 AND r.ns = j.ns AND r.kind = j.kind"
    "   AND r.key = j.waiting_name"
    "  LEFT JOIN @jobs AS b ON b.id = CASE WHEN j.waiting_for = 2 THEN r.job_id"
    "   WHEN l.owner = '' THEN l.reserved_for ELSE l.job_id END"
    "  WHERE j.ns = $1 AND j.state = 2 AND j.queue = ANY($2) AND j.kind = ANY($3)"
    "  AND NOT EXISTS (SELECT 1 FROM @queues AS u"
    "   WHERE u.ns = $1 AND u.name = j.queue AND u.paused)"
    "  AND (j.waiting_for = 1 OR r.state IS DISTINCT FROM 3::smallint)"
    "  AND (b.id IS NULL OR b.state = 3 OR NOT (b.state = 4 OR (b.state = 0 AND b.deliveries = 0)"
    "   OR EXISTS (SELECT 1 FROM @queues AS u"
    "    WHERE u.ns = $1 AND u.name = b.queue AND u.paused))))";

// Lines are looked at in their order from behind the last one seen ($2, $3), some at a time.
std::string stalled(std::string_view wait, std::string_view stands) {
    return "WITH RECURSIVE line AS ("
           " (SELECT " +
           std::string(kLineKind) +
           " AS kind, j.waiting_name AS name"
           "  FROM @jobs AS j WHERE j.ns = $1 AND j.waiting_for = " +
           std::string(wait) + "  AND j.state = 2 AND (" + std::string(kLineKind) +
           ", j.waiting_name) > ($2, $3)"
           "  ORDER BY 1, 2 LIMIT 1)"
           " UNION ALL"
           " SELECT next.kind, next.name FROM line, LATERAL ("
           "  SELECT " +
           std::string(kLineKind) +
           " AS kind, j.waiting_name AS name"
           "  FROM @jobs AS j WHERE j.ns = $1 AND j.waiting_for = " +
           std::string(wait) +
           "  AND j.state = 2"
           "  AND (" +
           std::string(kLineKind) +
           ", j.waiting_name) > (line.kind, line.name)"
           "  ORDER BY 1, 2 LIMIT 1) AS next)"
           " SELECT line.kind, line.name, NOT EXISTS (" +
           std::string(stands) +
           ") FROM (SELECT kind, name FROM line LIMIT $5) AS line WHERE $4::bigint IS NOT NULL";
}

const std::string kJobsWhere = "SELECT " + job_columns("j.") + " FROM @jobs AS j WHERE ";
const std::string kFinishedWhere = "SELECT " + final_columns("j.") + " FROM @finished AS j WHERE ";
const std::string kRecordList = list(kRecord, "t.");
/// Many keys at once, and a record that one of them names.
const std::string kWanted = " FROM unnest($1::text[], $2::text[], $3::text[]) AS w(ns, kind, key)";
const std::string kSameRecord = "t.ns = w.ns AND t.kind = w.kind AND t.key = w.key";

}  // namespace

std::string in_schema(std::string_view text, std::string_view schema) {
    std::string made;
    for (const char c : text) {
        if (c != '@') {
            made += c;
            continue;
        }
        made += '"';
        made += schema;
        made += "\".";
    }
    return made;
}

std::string job_columns(std::string_view prefix) {
    return list(kFrozen + kMoving, prefix);
}

std::string final_columns(std::string_view prefix) {
    return list(kFrozen + kMoving + kFinishedAt, prefix);
}

Statements::Statements(std::string_view schema) : schema_(schema) {
    Maker make(schema);
    make_transactions(make);
    make_rows(make);
    make_job_sets(make);
    make_job_changes(make);
    make_other_changes(make);
    make_job_questions(make);
    make_record_questions(make);
    make_history(make);
    make_people(make);
}

void Statements::make_transactions(Maker& make) {
    begin = make("BEGIN ISOLATION LEVEL READ COMMITTED", "begin a transaction");
    begin_read = make("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "begin to read");
    commit = make("COMMIT", "commit");
    roll_back = make("ROLLBACK", "roll back");
    check_constraints = make("SET CONSTRAINTS ALL IMMEDIATE", "check the constraints");
    savepoint = make("SAVEPOINT sekali_effects", "set a savepoint");
    savepoint_release = make("RELEASE sekali_effects", "release a savepoint");
    savepoint_roll_back = make("ROLLBACK TO sekali_effects", "roll back to a savepoint");
    plan_freely = make(planning("on", "auto"), "plan statements");
    plan_by_index = make(planning("off", "force_generic_plan"), "plan statements");
    put_token = make(
        "WITH old AS (DELETE FROM @commits WHERE token = $2) INSERT INTO @commits(token) "
        "VALUES "
        "($1) RETURNING pg_current_xact_id()::xid",
        "note the commit");
    take_token = make(
        "WITH done AS (INSERT INTO @commits(token) VALUES ($1) ON CONFLICT DO NOTHING "
        "RETURNING 1) "
        "SELECT count(*) FROM done",
        "find out about a commit");
    look_around = make(
        "SELECT epoch_floor, fence_floor, (extract(epoch FROM clock_timestamp()) * "
        "1000)::bigint "
        "FROM @meta",
        "read the clock");
    arrivals = make("SELECT nextval('@arrivals') FROM generate_series(1, $1)", "number the jobs");
}

void Statements::make_rows(Maker& make) {
    jobs = make(kJobsWhere + "j.id = ANY($1) ORDER BY j.id", "FOR NO KEY UPDATE", "read jobs");
    finished = make(kFinishedWhere + "j.id = ANY($1) ORDER BY j.id", "FOR NO KEY UPDATE",
                    "read final jobs");
    records = make("SELECT " + kRecordList + kWanted + " JOIN @records AS t ON " + kSameRecord +
                       " ORDER BY t.ns, t.kind, t.key",
                   "FOR NO KEY UPDATE OF t", "read records");
    kept_records = make("SELECT " + kRecordList + kWanted + " JOIN @records AS t ON " +
                            kSameRecord + " ORDER BY t.ns, t.kind, t.key FOR KEY SHARE OF t",
                        "read records");
    locks = make("SELECT " + list(kLock, "t.") +
                     " FROM unnest($1::text[], $2::text[]) AS w(ns, name)"
                     " JOIN @locks AS t ON t.ns = w.ns AND t.name = w.name ORDER BY t.ns, t.name",
                 "FOR NO KEY UPDATE OF t", "read locks");
    workers = make("SELECT " + list(kWorker) + " FROM @workers WHERE id = ANY($1) ORDER BY id",
                   "FOR NO KEY UPDATE", "read workers");
    steps = make("SELECT " + list(kStep, "t.") + kWanted + " JOIN @steps AS t ON " + kSameRecord +
                     " ORDER BY t.ns, t.kind, t.key, t.place, t.name",
                 "read steps");
    slot_holders = make("SELECT " + job_columns("j.") + kWanted +
                            " JOIN @jobs AS j ON j.ns = w.ns AND j.kind = w.kind"
                            " AND j.unique_key = w.key AND j.slot_held ORDER BY j.id",
                        "FOR NO KEY UPDATE OF j", "read unique slots");
}

void Statements::make_job_sets(Maker& make) {
    const std::string line =
        "SELECT j.* FROM @jobs AS j WHERE j.ns = w.ns"
        " AND j.waiting_for = w.waiting_for AND " +
        std::string(kLineKind) +
        " = w.kind AND j.waiting_name = w.name AND j.state = 2"
        " ORDER BY j.priority DESC, j.seq LIMIT 1";
    const std::string lines = "SELECT " + job_columns("j.") +
                              " FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[])"
                              " AS w(ns, waiting_for, kind, name), LATERAL (";
    first_in_line = {make(lines + line + ") AS j", "read lines"),
                     make(lines + line + " FOR NO KEY UPDATE) AS j", "read lines")};
    lines_are_empty = make(
        "SELECT @expect((SELECT count(*)"
        " FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[])"
        " AS w(ns, waiting_for, kind, name) WHERE EXISTS (" +
            line + ")), 0)",
        "look for waiting jobs");
    live_of_key =
        make("SELECT " + job_columns("j.") + kWanted +
                 ", LATERAL (SELECT f.seq FROM ("
                 "(SELECT j.state, j.seq FROM @jobs AS j WHERE j.key = w.key AND j.kind = w.kind"
                 " AND j.ns = w.ns ORDER BY j.state = 2, j.seq LIMIT 1) UNION ALL"
                 " SELECT j.state, j.seq FROM @jobs AS j WHERE j.id = w.key AND j.kind = w.kind"
                 " AND j.ns = w.ns AND j.key IS NULL) AS f ORDER BY f.state = 2, f.seq LIMIT 1) "
                 "AS f"
                 " JOIN @jobs AS j ON j.seq = f.seq",
             "read the jobs of keys");
}

void Statements::make_job_questions(Maker& make) {
    payload = make(
        "SELECT payload FROM @jobs WHERE id = $1 UNION ALL"
        " SELECT payload FROM @finished WHERE id = $1",
        "read a payload");
    promote_due = make(
        "UPDATE @jobs SET state = 1 WHERE seq IN (SELECT seq FROM @jobs"
        " WHERE ns = $1 AND state = 0 AND run_at <= $2 ORDER BY run_at, seq LIMIT $3"
        " FOR NO KEY UPDATE SKIP LOCKED) RETURNING id",
        "make due jobs ready");
    claimable = make(claimable_rows(), "FOR NO KEY UPDATE OF j SKIP LOCKED", "claim");
    lapsed = make(kJobsWhere +
                      "j.ns = $1 AND j.state = 3 AND j.state IN (3, 4) AND j.seq > $3"
                      " AND j.kind = ANY($2) AND (j.lease_until <= $4"
                      " OR j.owner = ANY($5)) ORDER BY j.seq LIMIT $6",
                  "FOR NO KEY UPDATE SKIP LOCKED", "look for lapsed claims");
    running_owners = make(
        "SELECT DISTINCT owner FROM @jobs WHERE ns = $1 AND state = 3"
        " AND state IN (3, 4)",
        "look for lapsed claims");
    count_begun =
        make("SELECT count(*) FROM @jobs WHERE owner = $1 AND state = 3 AND begun", "count runs");
    has_jobs_of = make("SELECT 1 FROM @jobs WHERE owner = $1 AND state = 3 LIMIT 1", "count runs");
    running_jobs_of = make(kJobsWhere +
                               "j.ns = $1 AND j.owner = $2 AND j.state = 3 AND j.state IN (3, 4)"
                               " ORDER BY j.seq",
                           "FOR NO KEY UPDATE", "claim again");
    has_live_or_dead = make(
        "SELECT EXISTS (SELECT 1 FROM @jobs WHERE key = $3 AND kind = $2 AND ns = $1)"
        " OR EXISTS (SELECT 1 FROM @jobs WHERE id = $3 AND kind = $2 AND ns = $1 AND key "
        "IS NULL)"
        " OR EXISTS (SELECT 1 FROM @finished"
        "  WHERE key = $3 AND kind = $2 AND ns = $1 AND state = 7)"
        " OR EXISTS (SELECT 1 FROM @finished"
        "  WHERE id = $3 AND kind = $2 AND ns = $1 AND key IS NULL AND state = 7)",
        "look for the jobs of a key");
    next_run_at = make(
        "SELECT min(f.run_at) FROM unnest($2::text[]) AS q(queue), unnest($3::text[]) AS "
        "k(kind),"
        " (VALUES (false), (true)) AS r(retry),"
        " LATERAL (SELECT j.run_at FROM @jobs AS j WHERE j.ns = $1 AND j.queue = q.queue"
        "  AND j.kind = k.kind AND (j.deliveries > 0) = r.retry AND j.state = 0"
        "  ORDER BY j.run_at LIMIT 1) AS f",
        "look for the next due job");
    has_drainable = make(std::string(kHasDrainable), "look for what is left");
    live_of_key_all =
        make(kJobsWhere + "j.key = $3 AND j.kind = $2 AND j.ns = $1 UNION ALL " + kJobsWhere +
                 "j.id = $3 AND j.kind = $2 AND j.ns = $1 AND j.key IS NULL",
             "read the jobs of a key");
    finished_of_key_all =
        make(kFinishedWhere + "j.key = $3 AND j.kind = $2 AND j.ns = $1 UNION ALL " +
                 kFinishedWhere + "j.id = $3 AND j.kind = $2 AND j.ns = $1 AND j.key IS NULL",
             "read the jobs of a key");
}

void Statements::make_record_questions(Maker& make) {
    prunable_records =
        make("SELECT " + kRecordList +
                 " FROM @records AS t WHERE t.ns = $1"
                 " AND t.expires_at <= $2 ORDER BY t.expires_at, t.kind, t.key LIMIT $3",
             "FOR UPDATE SKIP LOCKED", "look for what may be pruned");
    stale_records = make("SELECT " + kRecordList +
                             " FROM @records AS t WHERE t.ns = $1"
                             " AND t.state IN (0, 3) AND (t.state = 3 OR t.lease_until <= $2)"
                             " ORDER BY t.kind, t.key LIMIT $3",
                         "look for stale records");
    const std::string locks_where = "SELECT " + list(kLock) + " FROM @locks WHERE ns = $1 AND ";
    held_locks = make(locks_where + "owner <> '' AND lease_until > $2 ORDER BY name", "read locks");
    idle_locks = make(locks_where +
                          "lease_until < $2 AND reserved_until < $2 ORDER BY name"
                          " LIMIT $3 FOR UPDATE SKIP LOCKED",
                      "look for idle locks");
    stalled_lines =
        make(stalled("1",
                     "SELECT 1 FROM @locks AS l WHERE l.ns = $1 AND l.name = line.name AND"
                     " ((l.owner <> '' AND l.lease_until > $4)"
                     " OR (l.reserved_for <> '' AND l.reserved_until > $4))"),
             "look for lines that stand");
    stalled_keys = make(stalled("2",
                                "SELECT 1 FROM @records AS r WHERE r.ns = $1 AND r.kind = line.kind"
                                " AND r.key = line.name"
                                " AND (r.state = 3 OR (r.state = 0 AND r.lease_until > $4))"),
                        "look for lines that stand");
}

void Statements::make_history(Maker& make) {
    const std::string of_key = " WHERE key = $3 AND kind = $2 AND ns = $1 ORDER BY number";
    attempts_of_key =
        make("SELECT " + list(kAttempt) + " FROM @attempts" + of_key, "read attempts");
    events_of_key = make("SELECT " + list(kEvent) + " FROM @events" + of_key, "read events");
    kinds_of_key =
        make(std::string(kRecordKinds) +
                 " SELECT kinds.kind FROM kinds JOIN @records AS r"
                 " ON r.ns = $1 AND r.kind = kinds.kind AND r.key = $2"
                 " UNION SELECT kind FROM @jobs WHERE key = $2 AND ns = $1"
                 " UNION SELECT kind FROM @finished WHERE key = $2 AND ns = $1"
                 " UNION SELECT kind FROM @jobs WHERE id = $2 AND ns = $1 AND key IS NULL"
                 " UNION SELECT kind FROM @finished WHERE id = $2 AND ns = $1 AND key IS NULL"
                 " ORDER BY kind",
             "read kinds");
    neighbours =
        make(std::string(kRecordKinds) +
                 " SELECT f.key FROM kinds AS k, LATERAL ("
                 "(SELECT key FROM @records WHERE ns = $1 AND kind = k.kind AND key >= $2"
                 " ORDER BY key LIMIT $3) UNION ALL"
                 " (SELECT key FROM @records WHERE ns = $1 AND kind = k.kind AND key < $2"
                 " ORDER BY key DESC LIMIT $3)) AS f UNION"
                 " (SELECT key FROM @jobs WHERE key >= $2 AND ns = $1 ORDER BY key LIMIT "
                 "$3) UNION"
                 " (SELECT key FROM @jobs WHERE key < $2 AND ns = $1 ORDER BY key DESC "
                 "LIMIT $3) UNION"
                 " (SELECT key FROM @finished WHERE key >= $2 AND ns = $1 ORDER BY key "
                 "LIMIT $3) UNION"
                 " (SELECT key FROM @finished WHERE key < $2 AND ns = $1 ORDER BY key DESC "
                 "LIMIT $3)",
             "look for like keys");
    prune_finished = make(
        "DELETE FROM @finished WHERE seq IN (SELECT seq FROM @finished"
        " WHERE ns = $1 AND finished_at < $2"
        " ORDER BY finished_at LIMIT $3)",
        "prune jobs");
    prune_attempts = make(
        "DELETE FROM @attempts WHERE ctid IN (SELECT ctid FROM @attempts"
        " WHERE ns = $1 AND finished_at < $2 ORDER BY finished_at LIMIT $3)",
        "prune attempts");
    prune_events = make(
        "DELETE FROM @events WHERE ctid IN (SELECT ctid FROM @events"
        " WHERE ns = $1 AND at < $2 ORDER BY at LIMIT $3)",
        "prune events");
}

void Statements::make_people(Maker& make) {
    workers_of = make("SELECT " + list(kWorker) + " FROM @workers WHERE ns = $1 ORDER BY id",
                      "read workers");
    queue = make("SELECT paused FROM @queues WHERE ns = $1 AND name = $2", "read a queue");
    queues_of = make("SELECT name, paused FROM @queues WHERE ns = $1", "read queues");
    live_counts = make(
        "SELECT queue, state, count(*), min(run_at) FROM @jobs WHERE ns = $1"
        " GROUP BY queue, state",
        "count jobs");
}

}  // namespace sekali::postgres
