#include "backends/postgres/schema.hpp"

#include <array>

#include "backends/postgres/sql.hpp"
#include "base/text.hpp"

namespace sekali::postgres {
namespace {

struct Migration {
    std::int64_t version;
    std::string_view sql;
};

// The states are stored as the numbers of `engine::JobState` and `engine::RecordState`. Keys and
// names are compared byte by byte (collation "C"), whatever the database's locale is. What handlers
// made is kept as bytes, which need not be UTF-8.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE @meta(
  version     bigint NOT NULL,
  epoch_floor bigint NOT NULL DEFAULT 0,
  fence_floor bigint NOT NULL DEFAULT 0
);
INSERT INTO @meta(version) VALUES (0);

CREATE SEQUENCE @arrivals AS bigint;

-- Live jobs only: what is final leaves for @finished, so that this table stays small and hot. Room
-- in each page keeps the versions of a row together where no index depends on what changed.
CREATE TABLE @jobs(
  seq              bigint NOT NULL PRIMARY KEY,
  priority         bigint NOT NULL,
  enqueued_at      bigint NOT NULL,
  run_at           bigint NOT NULL,
  lease_until      bigint NOT NULL,
  named_end        bigint NOT NULL,
  attempts         bigint NOT NULL,
  crashes          bigint NOT NULL,
  interruptions    bigint NOT NULL,
  deliveries       bigint NOT NULL,
  lost_claims      bigint NOT NULL,
  epoch            bigint NOT NULL,
  retry_base       bigint,
  retry_factor     float8,
  retry_cap        bigint,
  retry_jitter     float8,
  max_attempts     bigint,
  max_age          bigint,
  state            smallint NOT NULL,
  waiting_for      smallint NOT NULL,
  unique_until     smallint NOT NULL,
  slot_held        boolean NOT NULL,
  begun            boolean NOT NULL,
  suspect          boolean NOT NULL,
  cancel_requested boolean NOT NULL,
  id               text COLLATE "C" NOT NULL,
  ns               text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  queue            text COLLATE "C" NOT NULL,
  key              text COLLATE "C",                -- null: the id
  lock_key         text COLLATE "C" NOT NULL,
  unique_key       text COLLATE "C" NOT NULL,
  waiting_name     text COLLATE "C" NOT NULL,
  owner            text COLLATE "C" NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
  fingerprint_rule text COLLATE "C" NOT NULL,
  requested_by     bytea NOT NULL,
  result           bytea NOT NULL,
  error            bytea NOT NULL,
  reason           bytea NOT NULL,
  payload          bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX jobs_id ON @jobs(id);
CREATE INDEX jobs_ready  ON @jobs(ns, queue, kind, priority DESC, seq) WHERE state = 1;
CREATE INDEX jobs_due    ON @jobs(ns, run_at) WHERE state = 0;
CREATE INDEX jobs_next   ON @jobs(ns, queue, kind, (deliveries > 0), run_at) WHERE state = 0;
CREATE INDEX jobs_active ON @jobs(ns, state, seq) WHERE state IN (3, 4);
CREATE INDEX jobs_owned  ON @jobs(owner) WHERE state = 3;
CREATE INDEX jobs_line   ON @jobs(
    ns, waiting_for, (CASE WHEN waiting_for = 1 THEN '' ELSE kind END), waiting_name,
    priority DESC, seq) WHERE state = 2;
CREATE INDEX jobs_key    ON @jobs(key, kind, ns) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX jobs_slot ON @jobs(ns, kind, unique_key) WHERE slot_held;

CREATE TABLE @finished(LIKE @jobs, finished_at bigint);
ALTER TABLE @finished ALTER COLUMN payload DROP NOT NULL;  -- kept for what may be retried
ALTER TABLE @finished ADD PRIMARY KEY (seq);
CREATE UNIQUE INDEX finished_id    ON @finished(id);
CREATE INDEX finished_ended ON @finished(ns, finished_at);
CREATE INDEX finished_key   ON @finished(key, kind, ns) WHERE key IS NOT NULL;
CREATE INDEX finished_dead  ON @finished(ns, seq) WHERE state = 7;

CREATE TABLE @records(
  epoch            bigint NOT NULL,
  delivery         bigint NOT NULL,
  lease_until      bigint NOT NULL,
  not_before       bigint NOT NULL,
  probe_after      bigint NOT NULL,
  ends             bigint NOT NULL,
  fence            bigint NOT NULL,
  attempt          bigint NOT NULL,
  started_at       bigint NOT NULL,
  finished_at      bigint,
  expires_at       bigint,                          -- end of the retention; null: not prunable
  keep             bigint NOT NULL,
  state            smallint NOT NULL,
  effects          smallint NOT NULL,
  on_unknown       smallint NOT NULL,
  marked           boolean NOT NULL,
  probing          boolean NOT NULL,
  death_proven     boolean NOT NULL,
  whole_answer     boolean NOT NULL,
  ns               text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  key              text COLLATE "C" NOT NULL,
  job_id           text COLLATE "C" NOT NULL,
  owner            text COLLATE "C" NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
  fingerprint_rule text COLLATE "C" NOT NULL,
  lock_key         text COLLATE "C" NOT NULL,
  mark_cause       bytea NOT NULL,
  result           bytea NOT NULL,
  PRIMARY KEY (ns, kind, key)
) WITH (fillfactor = 80);

CREATE INDEX records_open   ON @records(ns, kind, key) WHERE state IN (0, 3);
CREATE INDEX records_expiry ON @records(ns, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE @steps(
  epoch  bigint NOT NULL,
  place  bigint NOT NULL,
  done   boolean NOT NULL,
  ns     text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  name   bytea NOT NULL,
  call   text COLLATE "C" NOT NULL,
  result bytea NOT NULL,
  PRIMARY KEY (ns, kind, key, name)
);

CREATE TABLE @locks(
  fence          bigint NOT NULL,
  lease_until    bigint NOT NULL,
  reserved_until bigint NOT NULL,
  ns             text COLLATE "C" NOT NULL,
  name           text COLLATE "C" NOT NULL,
  owner          text COLLATE "C" NOT NULL,
  token          text COLLATE "C" NOT NULL,
  job_id         text COLLATE "C" NOT NULL,
  reserved_for   text COLLATE "C" NOT NULL,
  PRIMARY KEY (ns, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

CREATE TABLE @attempts(
  number      bigint GENERATED ALWAYS AS IDENTITY,
  attempt     bigint NOT NULL,
  epoch       bigint NOT NULL,
  started_at  bigint NOT NULL,
  finished_at bigint,
  ns          text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  job_id      text COLLATE "C" NOT NULL,
  worker      text COLLATE "C" NOT NULL,
  outcome     text COLLATE "C" NOT NULL,
  error       bytea NOT NULL,
  PRIMARY KEY (key, kind, ns, job_id, epoch, worker)
);
CREATE INDEX attempts_ended ON @attempts(ns, finished_at);

CREATE TABLE @events(
  number bigint GENERATED ALWAYS AS IDENTITY,
  at     bigint NOT NULL,
  epoch  bigint NOT NULL,
  ns     text COLLATE "C" NOT NULL,
  event  text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  detail bytea NOT NULL
);
CREATE INDEX events_key ON @events(key, kind, ns);
CREATE INDEX events_at  ON @events(ns, at);

CREATE TABLE @workers(
  pid           bigint NOT NULL,
  concurrency   bigint NOT NULL,
  started_at    bigint NOT NULL,
  lease_until   bigint NOT NULL,
  death_company bigint NOT NULL,
  stopping      boolean NOT NULL,
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  ns            text COLLATE "C" NOT NULL,
  host          text COLLATE "C" NOT NULL,
  queues        text COLLATE "C" NOT NULL,          -- JSON
  kinds         text COLLATE "C" NOT NULL           -- JSON
) WITH (fillfactor = 50);
CREATE INDEX workers_ns ON @workers(ns);

CREATE TABLE @queues(
  paused boolean NOT NULL,
  ns     text COLLATE "C" NOT NULL,
  name   text COLLATE "C" NOT NULL,
  PRIMARY KEY (ns, name)
);

-- The last commit of each connection: who lost the answer to a commit finds out by trying to insert
-- the same token, which waits for the end of that transaction and shuts it out if it has not come.
CREATE TABLE @commits(
  token text COLLATE "C" NOT NULL PRIMARY KEY,
  at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- Raises in the server, so that a commit that was sent along cannot land.
CREATE FUNCTION @expect(written bigint, wanted bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF written <> wanted THEN
    RAISE EXCEPTION 'sekali: % rows were there to be written instead of %', written, wanted
      USING ERRCODE = '40001';
  END IF;
  RETURN true;
END $$;

CREATE FUNCTION @text_of(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  RETURN nullif(convert_from(bytes, 'UTF8'), '');
EXCEPTION WHEN OTHERS THEN
  RETURN encode(bytes, 'escape');
END $$;

CREATE FUNCTION @time_of(ms bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT to_char(to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Enqueues from any language and any trigger, in the caller's transaction. It is what the library's
-- enqueue does where a refused duplicate keeps its place; names and defaults are the same.
CREATE FUNCTION @enqueue(
  kind text, payload text DEFAULT 'null', queue text DEFAULT 'default', key text DEFAULT NULL,
  lock text DEFAULT NULL, "unique" text DEFAULT NULL, delay interval DEFAULT NULL,
  priority integer DEFAULT 0, max_attempts bigint DEFAULT NULL, id text DEFAULT NULL,
  namespace text DEFAULT 'default', OUT job_id text, OUT status text, OUT winner text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_ms constant bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  due_ms constant bigint := now_ms + coalesce(extract(epoch FROM enqueue.delay) * 1000, 0)::bigint;
  print  constant text := encode(sha256(convert_to(enqueue.payload, 'UTF8')), 'hex');
  fresh  constant text := coalesce(enqueue.id, overlay(overlay(overlay(gen_random_uuid()::text
    PLACING substr(lpad(to_hex(now_ms), 12, '0'), 1, 8) FROM 1 FOR 8)
    PLACING substr(lpad(to_hex(now_ms), 12, '0'), 9, 4) FROM 10 FOR 4) PLACING '7' FROM 15 FOR 1));
  the_key constant text := coalesce(enqueue.key, fresh);
  known  record;
BEGIN
  IF concat_ws(' ', enqueue.kind, enqueue.queue, enqueue.namespace)
     !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}( [A-Za-z0-9][A-Za-z0-9._-]{0,63}){2}$' THEN
    RAISE EXCEPTION 'sekali: kind, queue and namespace are 1 to 64 of A-Z a-z 0-9 . _ -'
      USING ERRCODE = '22023';
  END IF;
  IF enqueue.priority NOT BETWEEN 0 AND 9 OR octet_length(enqueue.payload) > 1048576
     OR EXISTS (SELECT 1 FROM unnest(ARRAY[the_key, enqueue.lock, enqueue.unique]) AS k(v)
                WHERE octet_length(v) NOT BETWEEN 1 AND 512 OR v ~ '[[:cntrl:]]') THEN
    RAISE EXCEPTION 'sekali: keys have 1 to 512 bytes without control characters, a priority is '
      '0 to 9, a payload at most 1 MiB' USING ERRCODE = '22023';
  END IF;
  PERFORM enqueue.payload::json;
  job_id := fresh;
  FOR known IN
    SELECT j.ns, j.kind, coalesce(j.key, j.id) AS key, j.fingerprint FROM @jobs AS j
    WHERE j.id = fresh UNION ALL
    SELECT j.ns, j.kind, coalesce(j.key, j.id), j.fingerprint FROM @finished AS j
    WHERE j.id = fresh
  LOOP
    IF (known.ns, known.kind, known.key, known.fingerprint)
       <> (enqueue.namespace, enqueue.kind, the_key, print) THEN
      RAISE EXCEPTION 'sekali: id % belongs to another job', fresh USING ERRCODE = '23505';
    END IF;
    status := 'enqueued';
    RETURN;
  END LOOP;
  SELECT r.state, r.marked, r.ends, r.fingerprint, r.fingerprint_rule INTO known
    FROM @records AS r WHERE r.ns = enqueue.namespace AND r.kind = enqueue.kind
    AND r.key = the_key FOR KEY SHARE;
  IF known.fingerprint_rule = '' AND known.fingerprint <> print
     AND (known.marked OR known.state NOT IN (4, 5)) THEN
    RAISE EXCEPTION 'sekali: key % of kind % is in use with another payload', the_key,
      enqueue.kind USING ERRCODE = '23505';
  END IF;
  BEGIN
    INSERT INTO @jobs(seq, priority, enqueued_at, run_at, lease_until, named_end, attempts, crashes,
      interruptions, deliveries, lost_claims, epoch, max_attempts, state, waiting_for,
      unique_until, slot_held, begun, suspect, cancel_requested, id, ns, kind, queue, key,
      lock_key, unique_key, waiting_name, owner, fingerprint, fingerprint_rule, requested_by,
      result, error, reason, payload)
    VALUES (nextval('@arrivals'), enqueue.priority, now_ms, due_ms, 0, coalesce(known.ends, 0), 0,
      0, 0, 0, 0, 0, enqueue.max_attempts, CASE WHEN due_ms > now_ms THEN 0 ELSE 1 END, 0, 0,
      enqueue.unique IS NOT NULL, false, false, false, fresh, enqueue.namespace, enqueue.kind,
      enqueue.queue, nullif(the_key, fresh), coalesce(enqueue.lock, ''),
      coalesce(enqueue.unique, ''), '', '', print, '', '', '', '', '',
      convert_to(enqueue.payload, 'UTF8'));
    status := 'enqueued';
  EXCEPTION WHEN unique_violation THEN
    SELECT j.id INTO winner FROM @jobs AS j WHERE j.ns = enqueue.namespace
      AND j.kind = enqueue.kind AND j.unique_key = enqueue.unique AND j.slot_held;
    IF winner IS NULL THEN RAISE; END IF;
    status := 'duplicate';
    INSERT INTO @events(ns, at, event, job_id, kind, key, epoch, worker, detail)
    VALUES (enqueue.namespace, now_ms, 'unique_refused', fresh, enqueue.kind, the_key, 0, '',
      convert_to('winner ' || winner, 'UTF8'));
  END;
END $$;

CREATE VIEW @sekali_v_jobs(
  namespace, id, kind, queue, state, key, lock_key, unique_key, attempts, crashes, deliveries,
  epoch, max_attempts, priority, enqueued_at, run_at, finished_at, worker, waiting_for, result,
  error, reason
) AS
WITH
  live_workers AS MATERIALIZED (
    SELECT ns, queues::json AS queues, kinds::json AS kinds FROM @workers
    WHERE lease_until > extract(epoch FROM clock_timestamp()) * 1000),
  served_queues AS MATERIALIZED (
    SELECT DISTINCT w.ns, q.value AS queue
    FROM live_workers AS w, json_array_elements_text(w.queues) AS q),
  served_kinds AS MATERIALIZED (
    SELECT DISTINCT w.ns, q.value AS queue, k.value AS kind
    FROM live_workers AS w, json_array_elements_text(w.queues) AS q,
      json_array_elements_text(w.kinds) AS k),
  shown AS (
    SELECT *,
      CASE
        WHEN state = 2 AND waiting_for = 1 THEN 'lock:' || waiting_name
        WHEN state = 2 AND waiting_for = 2 THEN 'key:' || waiting_name
        WHEN state <> 1 THEN NULL
        WHEN EXISTS(SELECT 1 FROM @queues AS q
                    WHERE q.ns = j.ns AND q.name = j.queue AND q.paused) THEN 'pause'
        WHEN EXISTS(SELECT 1 FROM served_queues AS s WHERE s.ns = j.ns AND s.queue = j.queue)
             AND NOT EXISTS(SELECT 1 FROM served_kinds AS s
                            WHERE s.ns = j.ns AND s.queue = j.queue AND s.kind = j.kind)
          THEN 'handler'
      END AS waits_for
    FROM @jobs AS j)
SELECT ns, id, kind, queue,
  CASE state WHEN 0 THEN 'scheduled'
             WHEN 1 THEN CASE WHEN waits_for IS NULL THEN 'ready' ELSE 'waiting' END
             WHEN 2 THEN 'waiting' WHEN 3 THEN 'running' WHEN 4 THEN 'held' END,
  coalesce(key, id), nullif(lock_key, ''), nullif(unique_key, ''), attempts, crashes, deliveries,
  epoch, max_attempts, priority, @time_of(enqueued_at), @time_of(run_at),
  NULL::text, nullif(owner, ''), waits_for, @text_of(result), @text_of(error), @text_of(reason)
FROM shown
UNION ALL
SELECT ns, id, kind, queue,
  CASE state WHEN 5 THEN 'succeeded' WHEN 6 THEN 'duplicate' WHEN 7 THEN 'dead'
             WHEN 8 THEN 'cancelled' END,
  coalesce(key, id), nullif(lock_key, ''), nullif(unique_key, ''), attempts, crashes, deliveries,
  epoch, max_attempts, priority, @time_of(enqueued_at), @time_of(run_at), @time_of(finished_at),
  nullif(owner, ''), NULL, @text_of(result), @text_of(error), @text_of(reason)
FROM @finished;

CREATE VIEW @sekali_v_attempts(
  namespace, job_id, kind, key, attempt, epoch, worker, started_at, finished_at, outcome, error
) AS
SELECT ns, job_id, kind, key, attempt, epoch, worker, @time_of(started_at), @time_of(finished_at),
  nullif(outcome, ''), @text_of(error)
FROM @attempts
UNION ALL
SELECT ns, job_id, kind, key, attempt, epoch, owner, @time_of(started_at), NULL, NULL, NULL
FROM @records WHERE state IN (0, 3) AND state = 0 AND NOT probing;

CREATE VIEW @sekali_v_events(
  namespace, at, event, job_id, kind, key, epoch, worker, detail
) AS
SELECT ns, @time_of(at), event, nullif(job_id, ''), kind, key, epoch, nullif(worker, ''),
  @text_of(detail)
FROM @events;

CREATE VIEW @sekali_v_locks(namespace, name, backend_key, owner, token, expires_at) AS
SELECT ns, name, ns || ':' || name, owner, token, @time_of(lease_until)
FROM @locks WHERE owner <> '';
)sql";

constexpr std::array kMigrations{Migration{1, kVersion1}};

/// 0: there is no schema yet.
std::int64_t version_of(Connection& connection, const std::string& schema) {
    // The catalog is read as a table: what to_regclass remembers may be older than a lock.
    const Sql exists{"",
                     "SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n"
                     " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta')",
                     "look for the schema"};
    const ResultPtr found = connection.run_one({&exists, parameters(schema)});
    if (!Cursor(found.get(), 0).take<bool>()) return 0;
    const Sql version{"", in_schema("SELECT version FROM @meta", schema), "read its version"};
    const ResultPtr read = connection.run_one({&version, {}});
    if (PQntuples(read.get()) == 0) return 0;
    return Cursor(read.get(), 0).take<std::int64_t>();
}

Error refusal(const std::string& message, std::string hint) {
    return {.code = ErrorCode::kRefused, .message = message, .hint = std::move(hint)};
}

void refuse_newer(std::int64_t found, const std::string& schema) {
    if (found <= newest_schema()) return;
    throw Failure(refusal("postgres: the schema " + base::quoted(schema) + " has version " +
                              std::to_string(found) + ", newer than this program's " +
                              std::to_string(newest_schema()),
                          "use the newer sekali that upgraded it"));
}

void require_utf8(Connection& connection) {
    const char* encoding = PQparameterStatus(connection.handle(), "server_encoding");
    if (encoding != nullptr && std::string_view(encoding) == "UTF8") return;
    throw Failure(refusal("postgres: the database's encoding is not UTF8",
                          "create it with encoding UTF8 and template template0"));
}

}  // namespace

std::int64_t newest_schema() {
    return kMigrations.back().version;
}

void migrate(Connection& connection, const std::string& schema) {
    require_utf8(connection);
    const std::int64_t present = version_of(connection, schema);
    refuse_newer(present, schema);
    if (present == newest_schema()) return;
    connection.run_script("BEGIN ISOLATION LEVEL READ COMMITTED", "begin");
    try {
        // Whoever else migrates waits here and then finds everything done.
        const Sql lock{"", "SELECT pg_advisory_xact_lock(hashtext('sekali ' || $1))", "wait"};
        connection.run_script("SET LOCAL lock_timeout = 0", "wait");
        connection.run_one({&lock, parameters(schema)});
        const std::int64_t found = version_of(connection, schema);
        if (found == 0) {
            // Not IF NOT EXISTS: who owns an empty schema may lack the right to create one.
            const Sql known{"", "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)",
                            "look for the schema"};
            const ResultPtr is_there = connection.run_one({&known, parameters(schema)});
            if (!Cursor(is_there.get(), 0).take<bool>()) {
                connection.run_script("CREATE SCHEMA \"" + schema + "\"", "create the schema");
            }
        }
        for (const Migration& migration : kMigrations) {
            if (migration.version <= found) continue;
            connection.run_script(in_schema(migration.sql, schema), "upgrade the schema");
            connection.run_script(in_schema("UPDATE @meta SET version = ", schema) +
                                      std::to_string(migration.version),
                                  "upgrade the schema");
        }
        connection.run_script("COMMIT", "commit the schema");
    } catch (const Failure&) {
        connection.roll_back();
        throw;
    }
}

void require_version(Connection& connection, const std::string& schema) {
    const std::int64_t found = version_of(connection, schema);
    refuse_newer(found, schema);
    if (found == 0) {
        throw Failure({.code = ErrorCode::kNotFound,
                       .message = "postgres: there is no schema " + base::quoted(schema) +
                                  " of sekali's in this database yet",
                       .hint = "run `sekali migrate` with this URL first"});
    }
    if (found < newest_schema()) {
        throw Failure(refusal("postgres: the schema " + base::quoted(schema) + " has version " +
                                  std::to_string(found) + ", this program needs " +
                                  std::to_string(newest_schema()),
                              "run `sekali migrate` with this URL first"));
    }
}

}  // namespace sekali::postgres
