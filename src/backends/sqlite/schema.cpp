#include "backends/sqlite/schema.hpp"

#include <array>

namespace sekali::sqlite {
namespace {

// The states are stored as the numbers of `engine::JobState` and `engine::RecordState`; a test
// holds both together. An update that sets no column that an index depends on leaves the indexes
// alone; `JOB_PLACED` in sql.cpp lists those of the live jobs.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE sekali_meta(
  name  TEXT NOT NULL PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Live jobs only: what is final leaves for sekali_finished, so that this table stays small and hot.
-- An index costs every write, also where its rows are few; so each serves several questions.
CREATE TABLE sekali_jobs(
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  ns               TEXT NOT NULL,
  kind             TEXT NOT NULL,
  queue            TEXT NOT NULL,
  priority         INTEGER NOT NULL,
  key              TEXT,               -- null: the id
  lock_key         TEXT NOT NULL,
  unique_key       TEXT NOT NULL,
  unique_until     INTEGER NOT NULL,
  retry_base       INTEGER,
  retry_factor     REAL,
  retry_cap        INTEGER,
  retry_jitter     REAL,
  max_attempts     INTEGER,
  max_age          INTEGER,
  fingerprint      TEXT NOT NULL,
  fingerprint_rule TEXT NOT NULL,
  named_end        INTEGER NOT NULL,
  enqueued_at      INTEGER NOT NULL,
  state            INTEGER NOT NULL,
  waiting_for      INTEGER NOT NULL,
  waiting_name     TEXT NOT NULL,
  run_at           INTEGER NOT NULL,
  slot_held        INTEGER NOT NULL,
  attempts         INTEGER NOT NULL,
  crashes          INTEGER NOT NULL,
  interruptions    INTEGER NOT NULL,
  deliveries       INTEGER NOT NULL,
  lost_claims      INTEGER NOT NULL,
  owner            TEXT NOT NULL,
  lease_until      INTEGER NOT NULL,
  begun            INTEGER NOT NULL,
  suspect          INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  requested_by     TEXT NOT NULL,
  epoch            INTEGER NOT NULL,
  result           TEXT NOT NULL,
  error            TEXT NOT NULL,
  reason           TEXT NOT NULL,
  payload          BLOB NOT NULL
) STRICT;

CREATE INDEX sekali_jobs_ready  ON sekali_jobs(ns, queue, kind, priority DESC) WHERE state = 1;
CREATE INDEX sekali_jobs_due    ON sekali_jobs(ns, run_at) WHERE state = 0;
CREATE INDEX sekali_jobs_next   ON sekali_jobs(ns, queue, kind, (deliveries > 0), run_at)
  WHERE state = 0;
CREATE INDEX sekali_jobs_active ON sekali_jobs(state, owner) WHERE state IN (3, 4);
CREATE INDEX sekali_jobs_line   ON sekali_jobs(
    ns, waiting_for, iif(waiting_for = 1, '', kind), waiting_name, priority DESC)
  WHERE state = 2;
CREATE INDEX sekali_jobs_key    ON sekali_jobs(key, kind, ns) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX sekali_jobs_slot ON sekali_jobs(ns, kind, unique_key) WHERE slot_held = 1;

CREATE TABLE sekali_finished(
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  ns               TEXT NOT NULL,
  kind             TEXT NOT NULL,
  queue            TEXT NOT NULL,
  priority         INTEGER NOT NULL,
  key              TEXT,
  lock_key         TEXT NOT NULL,
  unique_key       TEXT NOT NULL,
  unique_until     INTEGER NOT NULL,
  retry_base       INTEGER,
  retry_factor     REAL,
  retry_cap        INTEGER,
  retry_jitter     REAL,
  max_attempts     INTEGER,
  max_age          INTEGER,
  fingerprint      TEXT NOT NULL,
  fingerprint_rule TEXT NOT NULL,
  named_end        INTEGER NOT NULL,
  enqueued_at      INTEGER NOT NULL,
  state            INTEGER NOT NULL,
  waiting_for      INTEGER NOT NULL,
  waiting_name     TEXT NOT NULL,
  run_at           INTEGER NOT NULL,
  slot_held        INTEGER NOT NULL,
  attempts         INTEGER NOT NULL,
  crashes          INTEGER NOT NULL,
  interruptions    INTEGER NOT NULL,
  deliveries       INTEGER NOT NULL,
  lost_claims      INTEGER NOT NULL,
  owner            TEXT NOT NULL,
  lease_until      INTEGER NOT NULL,
  begun            INTEGER NOT NULL,
  suspect          INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  requested_by     TEXT NOT NULL,
  epoch            INTEGER NOT NULL,
  result           TEXT NOT NULL,
  error            TEXT NOT NULL,
  reason           TEXT NOT NULL,
  finished_at      INTEGER,
  payload          BLOB                -- kept for what may be retried
) STRICT;

CREATE INDEX sekali_finished_ended ON sekali_finished(ns, finished_at);
CREATE INDEX sekali_finished_key   ON sekali_finished(key, kind, ns) WHERE key IS NOT NULL;
CREATE INDEX sekali_finished_dead  ON sekali_finished(ns) WHERE state = 7;

CREATE TABLE sekali_records(
  ns               TEXT NOT NULL,
  kind             TEXT NOT NULL,
  key              TEXT NOT NULL,
  state            INTEGER NOT NULL,
  expires_at       INTEGER,            -- end of the retention; null: not prunable
  job_id           TEXT NOT NULL,
  epoch            INTEGER NOT NULL,
  owner            TEXT NOT NULL,
  delivery         INTEGER NOT NULL,
  lease_until      INTEGER NOT NULL,
  fingerprint      TEXT NOT NULL,
  fingerprint_rule TEXT NOT NULL,
  not_before       INTEGER NOT NULL,
  effects          INTEGER NOT NULL,
  on_unknown       INTEGER NOT NULL,
  marked           INTEGER NOT NULL,
  mark_cause       TEXT NOT NULL,
  probing          INTEGER NOT NULL,
  death_proven     INTEGER NOT NULL,
  probe_after      INTEGER NOT NULL,
  ends             INTEGER NOT NULL,
  lock_key         TEXT NOT NULL,
  fence            INTEGER NOT NULL,
  attempt          INTEGER NOT NULL,
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER,
  keep             INTEGER NOT NULL,
  whole_answer     INTEGER NOT NULL,
  result           TEXT NOT NULL,
  PRIMARY KEY(ns, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX sekali_records_open   ON sekali_records(ns, kind, key) WHERE state IN (0, 3);
CREATE INDEX sekali_records_expiry ON sekali_records(ns, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE sekali_steps(
  ns     TEXT NOT NULL,
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  name   TEXT NOT NULL,
  epoch  INTEGER NOT NULL,
  call   TEXT NOT NULL,
  place  INTEGER NOT NULL,
  done   INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY(ns, kind, key, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sekali_locks(
  ns             TEXT NOT NULL,
  name           TEXT NOT NULL,
  owner          TEXT NOT NULL,
  token          TEXT NOT NULL,
  job_id         TEXT NOT NULL,
  fence          INTEGER NOT NULL,
  lease_until    INTEGER NOT NULL,
  reserved_for   TEXT NOT NULL,
  reserved_until INTEGER NOT NULL,
  PRIMARY KEY(ns, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sekali_attempts(
  number      INTEGER PRIMARY KEY,
  ns          TEXT NOT NULL,
  kind        TEXT NOT NULL,
  key         TEXT NOT NULL,
  job_id      TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
  epoch       INTEGER NOT NULL,
  worker      TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER,
  outcome     TEXT NOT NULL,
  error       TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX sekali_attempts_run
  ON sekali_attempts(key, kind, ns, job_id, epoch, worker);
CREATE INDEX sekali_attempts_ended ON sekali_attempts(ns, finished_at);

CREATE TABLE sekali_events(
  number INTEGER PRIMARY KEY,
  ns     TEXT NOT NULL,
  at     INTEGER NOT NULL,
  event  TEXT NOT NULL,
  job_id TEXT NOT NULL,
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  epoch  INTEGER NOT NULL,
  worker TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE INDEX sekali_events_key ON sekali_events(key, kind, ns);
CREATE INDEX sekali_events_at  ON sekali_events(ns, at);

CREATE TABLE sekali_workers(
  id            TEXT NOT NULL PRIMARY KEY,
  ns            TEXT NOT NULL,
  host          TEXT NOT NULL,
  pid           INTEGER NOT NULL,
  queues        TEXT NOT NULL,         -- JSON
  kinds         TEXT NOT NULL,         -- JSON
  concurrency   INTEGER NOT NULL,
  started_at    INTEGER NOT NULL,
  lease_until   INTEGER NOT NULL,
  stopping      INTEGER NOT NULL,
  death_company INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sekali_workers_ns ON sekali_workers(ns);

-- Which byte of which liveness file the process of a worker or lock client keeps locked.
CREATE TABLE sekali_liveness(
  worker   TEXT NOT NULL PRIMARY KEY,
  file     TEXT NOT NULL,
  place    INTEGER NOT NULL,
  taken_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sekali_queues(
  ns     TEXT NOT NULL,
  name   TEXT NOT NULL,
  paused INTEGER NOT NULL,
  PRIMARY KEY(ns, name)
) STRICT, WITHOUT ROWID;

CREATE VIEW sekali_v_jobs(
  namespace, id, kind, queue, state, key, lock_key, unique_key, attempts, crashes, deliveries,
  epoch, max_attempts, priority, enqueued_at, run_at, finished_at, worker, waiting_for, result,
  error, reason
) AS
WITH
  live_workers AS MATERIALIZED (
    SELECT ns, queues, kinds FROM sekali_workers
    WHERE stopping = 0
      AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  served_queues AS MATERIALIZED (
    SELECT DISTINCT w.ns AS ns, q.value AS queue
    FROM live_workers AS w, json_each(w.queues) AS q),
  served_kinds AS MATERIALIZED (
    SELECT DISTINCT w.ns AS ns, q.value AS queue, k.value AS kind
    FROM live_workers AS w, json_each(w.queues) AS q, json_each(w.kinds) AS k),
  -- What is due is ready, though nobody may have promoted it yet.
  due AS (
    SELECT *, iif(
        state = 0 AND run_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
        1, state) AS shown_state
    FROM sekali_jobs),
  shown AS (
    SELECT *,
      CASE
        WHEN state = 2 AND waiting_for = 1 THEN 'lock:' || waiting_name
        WHEN state = 2 AND waiting_for = 2 THEN 'key:' || waiting_name
        WHEN shown_state <> 1 THEN NULL
        WHEN EXISTS(SELECT 1 FROM sekali_queues AS q
                    WHERE q.ns = j.ns AND q.name = j.queue AND q.paused = 1) THEN 'pause'
        WHEN EXISTS(SELECT 1 FROM served_queues AS s WHERE s.ns = j.ns AND s.queue = j.queue)
             AND NOT EXISTS(SELECT 1 FROM served_kinds AS s
                            WHERE s.ns = j.ns AND s.queue = j.queue AND s.kind = j.kind)
          THEN 'handler'
      END AS waits_for
    FROM due AS j)
SELECT ns, id, kind, queue,
  CASE shown_state WHEN 0 THEN 'scheduled' WHEN 1 THEN iif(waits_for IS NULL, 'ready', 'waiting')
             WHEN 2 THEN 'waiting' WHEN 3 THEN 'running' WHEN 4 THEN 'held' END,
  coalesce(key, id), nullif(lock_key, ''), nullif(unique_key, ''), attempts, crashes, deliveries,
  epoch, coalesce(max_attempts, 10), priority,
  strftime('%Y-%m-%dT%H:%M:%fZ', enqueued_at / 1000.0, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', run_at / 1000.0, 'unixepoch'),
  NULL, nullif(owner, ''), waits_for, nullif(result, ''), nullif(error, ''), nullif(reason, '')
FROM shown
UNION ALL
SELECT ns, id, kind, queue,
  CASE state WHEN 5 THEN 'succeeded' WHEN 6 THEN 'duplicate' WHEN 7 THEN 'dead'
             WHEN 8 THEN 'cancelled' END,
  coalesce(key, id), nullif(lock_key, ''), nullif(unique_key, ''), attempts, crashes, deliveries,
  epoch, coalesce(max_attempts, 10), priority,
  strftime('%Y-%m-%dT%H:%M:%fZ', enqueued_at / 1000.0, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', run_at / 1000.0, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch'),
  nullif(owner, ''), NULL, nullif(result, ''), nullif(error, ''), nullif(reason, '')
FROM sekali_finished;

CREATE VIEW sekali_v_attempts(
  namespace, job_id, kind, key, attempt, epoch, worker, started_at, finished_at, outcome, error
) AS
SELECT ns, job_id, kind, key, attempt, epoch, worker,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch'),
  nullif(outcome, ''), nullif(error, '')
FROM sekali_attempts
UNION ALL
SELECT ns, job_id, kind, key, attempt, epoch, owner,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch'), NULL, NULL, NULL
FROM sekali_records WHERE state IN (0, 3) AND state = 0 AND probing = 0;

CREATE VIEW sekali_v_events(
  namespace, at, event, job_id, kind, key, epoch, worker, detail
) AS
SELECT ns, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'), event, nullif(job_id, ''),
  kind, key, epoch, nullif(worker, ''), nullif(detail, '')
FROM sekali_events;

CREATE VIEW sekali_v_locks(namespace, name, backend_key, owner, token, expires_at) AS
SELECT ns, name, ns || ':' || name, owner, token,
  strftime('%Y-%m-%dT%H:%M:%fZ', lease_until / 1000.0, 'unixepoch')
FROM sekali_locks WHERE owner <> '';
)sql";

constexpr std::array kMigrations{Migration{1, kVersion1}};

}  // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

std::int64_t newest_schema() {
    return kMigrations.back().version;
}

}  // namespace sekali::sqlite
