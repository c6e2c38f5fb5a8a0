#include "backends/sqlite/sql.hpp"

#include <array>

// Column lists, in the order in which rows.cpp binds and reads them. They are macros because only
// those join string literals.
#define JOB_FROZEN                                                                         \
    "id, ns, kind, queue, priority, key, lock_key, unique_key, unique_until, retry_base, " \
    "retry_factor, retry_cap, retry_jitter, max_attempts, max_age, fingerprint, "          \
    "fingerprint_rule, named_end, enqueued_at"
// Those of the changing ones that an index of jobs depends on, and the others.
#define JOB_PLACED "state, waiting_for, waiting_name, run_at, slot_held, deliveries, owner"
#define JOB_MOVING                                                                 \
    "attempts, crashes, interruptions, lost_claims, lease_until, begun, suspect, " \
    "cancel_requested, requested_by, epoch, result, error, reason"
#define JOB_CHANGING JOB_PLACED ", " JOB_MOVING
#define JOB_COLUMNS "seq, " JOB_FROZEN ", " JOB_CHANGING
#define FROZEN_VALUES \
    "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20"
#define CHANGING_VALUES                                                                          \
    "?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, " \
    "?39, ?40"
#define JOB_VALUES "?1, " FROZEN_VALUES ", " CHANGING_VALUES
#define SELECT_JOB "SELECT " JOB_COLUMNS ", NULL FROM sekali_jobs "
#define SELECT_FINISHED "SELECT " JOB_COLUMNS ", finished_at FROM sekali_finished "

// Lines of a lock are shared by all kinds.
#define LINE_KIND "iif(waiting_for = 1, '', kind)"

#define RECORD_CHANGING                                                                   \
    "state, expires_at, job_id, epoch, owner, delivery, lease_until, fingerprint, "       \
    "fingerprint_rule, not_before, "                                                      \
    "effects, on_unknown, marked, mark_cause, probing, death_proven, probe_after, ends, " \
    "lock_key, fence, attempt, started_at, finished_at, keep, whole_answer, result"
#define RECORD_CHANGING_VALUES                                                                  \
    "?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, " \
    "?23, "                                                                                     \
    "?24, ?25, ?26, ?27, ?28, ?29"
#define SELECT_RECORD "SELECT ns, kind, key, " RECORD_CHANGING " FROM sekali_records "
#define THE_RECORD "WHERE ns = ?1 AND kind = ?2 AND key = ?3"

#define LOCK_COLUMNS \
    "ns, name, owner, token, job_id, fence, lease_until, reserved_for, reserved_until"
#define ATTEMPT_COLUMNS \
    "ns, kind, key, job_id, attempt, epoch, worker, started_at, finished_at, outcome, error"
#define EVENT_COLUMNS "ns, at, event, job_id, kind, key, epoch, worker, detail"
#define WORKER_COLUMNS                                                                   \
    "id, ns, host, pid, queues, kinds, concurrency, started_at, lease_until, stopping, " \
    "death_company"

namespace sekali::sqlite {
namespace {

struct Statement {
    Sql which;
    std::string_view text;
};

// INDEXED BY holds a plan whatever ANALYZE has made of the statistics: where the index is gone or
// cannot serve, preparing fails instead of scanning.
// clang-format off
constexpr std::array kStatements{
    Statement{Sql::kBegin, "BEGIN IMMEDIATE"},
    Statement{Sql::kBeginRead, "BEGIN"},
    Statement{Sql::kCommit, "COMMIT"},
    Statement{Sql::kSavepoint, "SAVEPOINT sekali_effects"},
    Statement{Sql::kSavepointRelease, "RELEASE sekali_effects"},
    Statement{Sql::kSavepointRollBack, "ROLLBACK TO sekali_effects"},
    Statement{Sql::kDataVersion, "PRAGMA data_version"},
    Statement{Sql::kMeta, "SELECT value FROM sekali_meta WHERE name = ?1"},
    Statement{Sql::kPutMeta, "INSERT INTO sekali_meta(name, value) VALUES(?1, ?2) "
        "ON CONFLICT(name) DO UPDATE SET value = excluded.value"},
    Statement{Sql::kRaiseMeta, "INSERT INTO sekali_meta(name, value) VALUES(?1, ?2) "
        "ON CONFLICT(name) DO UPDATE SET value = excluded.value WHERE value < excluded.value"},

    Statement{Sql::kLastSeq, "SELECT max(coalesce((SELECT max(seq) FROM sekali_jobs), 0), "
        "coalesce((SELECT max(seq) FROM sekali_finished), 0))"},
    Statement{Sql::kJob, SELECT_JOB "WHERE id = ?1"},
    Statement{Sql::kJobBySeq, SELECT_JOB "WHERE seq = ?1"},
    Statement{Sql::kClaimedJob, "SELECT " JOB_COLUMNS ", NULL, payload FROM sekali_jobs WHERE seq "
        "= ?1"},
    Statement{Sql::kInsertJob, "INSERT INTO sekali_jobs(" JOB_COLUMNS ", payload) "
        "VALUES(" JOB_VALUES ", ?41) ON CONFLICT(id) DO NOTHING"},
    Statement{Sql::kFinishJob, "INSERT INTO sekali_finished(" JOB_COLUMNS ", finished_at, payload) "
        "SELECT seq, " JOB_FROZEN ", " CHANGING_VALUES ", ?41, iif(?42, payload, NULL) "
        "FROM sekali_jobs WHERE seq = ?1"},
    Statement{Sql::kDeleteJob, "DELETE FROM sekali_jobs WHERE seq = ?1"},
    Statement{Sql::kFinished, SELECT_FINISHED "WHERE id = ?1"},
    Statement{Sql::kFinishedBySeq, SELECT_FINISHED "WHERE seq = ?1"},
    Statement{Sql::kHasFinished, "SELECT 1 FROM sekali_finished WHERE id = ?1"},
    Statement{Sql::kHasJob, "SELECT 1 FROM sekali_jobs WHERE id = ?1"},
    Statement{Sql::kInsertFinished, "INSERT INTO sekali_finished(" JOB_COLUMNS ", finished_at, "
        "payload) "
        "VALUES(" JOB_VALUES ", ?41, ?42)"},
    Statement{Sql::kReviveJob, "INSERT INTO sekali_jobs(" JOB_COLUMNS ", payload) "
        "SELECT " JOB_VALUES ", coalesce(payload, x'') FROM sekali_finished WHERE id = ?2"},
    Statement{Sql::kDeleteFinished, "DELETE FROM sekali_finished WHERE id = ?1"},
    Statement{Sql::kPayload, "SELECT payload FROM sekali_jobs WHERE id = ?1"},
    Statement{Sql::kFinishedPayload, "SELECT payload FROM sekali_finished WHERE id = ?1"},
    Statement{Sql::kPromoteDue, "UPDATE sekali_jobs SET state = 1 WHERE seq IN ("
        "SELECT seq FROM sekali_jobs INDEXED BY sekali_jobs_due "
        "WHERE ns = ?1 AND state = 0 AND run_at <= ?2 ORDER BY run_at LIMIT ?3)"},
    Statement{Sql::kReadyPlaces, "SELECT priority, seq FROM sekali_jobs INDEXED BY "
        "sekali_jobs_ready "
        "WHERE ns = ?1 AND queue = ?2 AND kind = ?3 AND state = 1 ORDER BY priority DESC, seq "
        "LIMIT ?4"},
    Statement{Sql::kReadyJobs, "SELECT " JOB_COLUMNS ", NULL, payload FROM sekali_jobs INDEXED BY "
        "sekali_jobs_ready "
        "WHERE ns = ?1 AND queue = ?2 AND kind = ?3 AND state = 1 ORDER BY priority DESC, seq "
        "LIMIT ?4"},
    Statement{Sql::kRunning, "SELECT seq, kind, owner, lease_until FROM sekali_jobs "
        "INDEXED BY sekali_jobs_active WHERE state IN (3, 4) AND state = 3 AND ns = ?1 "
        "AND seq > ?2 ORDER BY seq"},
    Statement{Sql::kCountBegun, "SELECT count(*) FROM sekali_jobs INDEXED BY sekali_jobs_active "
        "WHERE owner = ?1 AND state IN (3, 4) AND state = 3 AND begun = 1"},
    Statement{Sql::kHasJobsOf, "SELECT 1 FROM sekali_jobs INDEXED BY sekali_jobs_active "
        "WHERE owner = ?1 AND state IN (3, 4) AND state = 3 LIMIT 1"},
    Statement{Sql::kJobsOf, "SELECT " JOB_COLUMNS ", NULL, payload FROM sekali_jobs "
        "INDEXED BY sekali_jobs_active "
        "WHERE owner = ?2 AND state IN (3, 4) AND state = 3 AND ns = ?1 ORDER BY seq"},
    Statement{Sql::kSlotHolder, SELECT_JOB "INDEXED BY sekali_jobs_slot "
        "WHERE ns = ?1 AND kind = ?2 AND unique_key = ?3 AND slot_held = 1"},
    Statement{Sql::kSomebodyWaits, "SELECT 1 FROM sekali_jobs INDEXED BY sekali_jobs_line "
        "WHERE state = 2 LIMIT 1"},
    Statement{Sql::kFirstInLine, SELECT_JOB "INDEXED BY sekali_jobs_line "
        "WHERE ns = ?1 AND waiting_for = ?2 AND " LINE_KIND " = ?3 AND waiting_name = ?4 "
        "AND state = 2 ORDER BY priority DESC, seq LIMIT 1"},
    Statement{Sql::kHasLiveOfKey,
        "SELECT 1 FROM sekali_jobs INDEXED BY sekali_jobs_key "
        "WHERE key = ?3 AND kind = ?2 AND ns = ?1 UNION ALL "
        "SELECT 1 FROM sekali_jobs WHERE id = ?3 AND kind = ?2 AND ns = ?1 AND key IS NULL "
        "LIMIT 1"},
    Statement{Sql::kLiveWithKey, SELECT_JOB "INDEXED BY sekali_jobs_key "
        "WHERE key = ?3 AND kind = ?2 AND ns = ?1 ORDER BY seq LIMIT 1"},
    Statement{Sql::kNotWaitingWithKey, SELECT_JOB "INDEXED BY sekali_jobs_key "
        "WHERE key = ?3 AND kind = ?2 AND ns = ?1 AND state <> 2 ORDER BY seq LIMIT 1"},
    Statement{Sql::kLiveWithId, SELECT_JOB "WHERE id = ?3 AND kind = ?2 AND ns = ?1 AND key IS "
        "NULL"},
    Statement{Sql::kHasDeadOfKey,
        "SELECT 1 FROM sekali_finished INDEXED BY sekali_finished_key "
        "WHERE key = ?3 AND kind = ?2 AND ns = ?1 AND state = 7 UNION ALL "
        "SELECT 1 FROM sekali_finished "
        "WHERE id = ?3 AND kind = ?2 AND ns = ?1 AND key IS NULL AND state = 7 LIMIT 1"},
    Statement{Sql::kNextRunAt, "SELECT run_at FROM sekali_jobs INDEXED BY sekali_jobs_next "
        "WHERE ns = ?1 AND queue = ?2 AND kind = ?3 AND (deliveries > 0) = ?4 AND state = 0 "
        "ORDER BY run_at LIMIT 1"},
    Statement{Sql::kHasReady, "SELECT 1 FROM sekali_jobs INDEXED BY sekali_jobs_ready "
        "WHERE ns = ?1 AND queue = ?2 AND kind = ?3 AND state = 1 LIMIT 1"},
    Statement{Sql::kRunningServed, "SELECT queue, kind FROM sekali_jobs "
        "INDEXED BY sekali_jobs_active WHERE state IN (3, 4) AND state = 3 AND ns = ?1"},
    Statement{Sql::kNextLine, "SELECT " LINE_KIND ", waiting_name FROM sekali_jobs "
        "INDEXED BY sekali_jobs_line WHERE ns = ?1 AND waiting_for = ?2 "
        "AND (" LINE_KIND ", waiting_name) > (?3, ?4) AND state = 2 "
        "ORDER BY " LINE_KIND ", waiting_name LIMIT 1"},
    Statement{Sql::kLineJobs, "SELECT queue, kind FROM sekali_jobs INDEXED BY sekali_jobs_line "
        "WHERE ns = ?1 AND waiting_for = ?2 AND " LINE_KIND " = ?3 AND waiting_name = ?4 "
        "AND state = 2"},
    Statement{Sql::kJobsOfKey,
        SELECT_JOB "INDEXED BY sekali_jobs_key WHERE key = ?3 AND kind = ?2 AND ns = ?1 UNION ALL "
        SELECT_JOB "WHERE id = ?3 AND kind = ?2 AND ns = ?1 AND key IS NULL"},
    Statement{Sql::kFinishedOfKey,
        SELECT_FINISHED "INDEXED BY sekali_finished_key WHERE key = ?3 AND kind = ?2 AND ns = ?1 "
        "UNION ALL "
        SELECT_FINISHED "WHERE id = ?3 AND kind = ?2 AND ns = ?1 AND key IS NULL"},
    Statement{Sql::kLiveCounts, "SELECT queue, state, count(*), min(run_at) FROM sekali_jobs "
        "WHERE ns = ?1 GROUP BY queue, state"},

    Statement{Sql::kRecord, SELECT_RECORD THE_RECORD},
    Statement{Sql::kPutRecord, "INSERT INTO sekali_records(ns, kind, key, " RECORD_CHANGING ") "
        "VALUES(?1, ?2, ?3, " RECORD_CHANGING_VALUES ") ON CONFLICT(ns, kind, key) DO UPDATE SET "
        "(" RECORD_CHANGING ") = (" RECORD_CHANGING_VALUES ")"},
    Statement{Sql::kDeleteRecord, "DELETE FROM sekali_records " THE_RECORD},
    Statement{Sql::kPrunableRecords, SELECT_RECORD "INDEXED BY sekali_records_expiry "
        "WHERE ns = ?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3"},
    Statement{Sql::kStaleRecords, SELECT_RECORD "INDEXED BY sekali_records_open "
        "WHERE ns = ?1 AND state IN (0, 3) AND (state = 3 OR lease_until <= ?2) ORDER BY kind, "
        "key LIMIT ?3"},
    Statement{Sql::kSteps, "SELECT name, epoch, call, place, done, result FROM sekali_steps "
        THE_RECORD " ORDER BY place, name"},
    Statement{Sql::kPutStep, "INSERT INTO sekali_steps(ns, kind, key, name, epoch, call, place, "
        "done, result) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(ns, kind, key, name) DO UPDATE SET "
        "(epoch, call, place, done, result) = (?5, ?6, ?7, ?8, ?9)"},
    Statement{Sql::kDeleteSteps, "DELETE FROM sekali_steps " THE_RECORD},

    Statement{Sql::kLock, "SELECT " LOCK_COLUMNS " FROM sekali_locks WHERE ns = ?1 AND name = ?2"},
    Statement{Sql::kPutLock, "INSERT INTO sekali_locks(" LOCK_COLUMNS ") "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(ns, name) DO UPDATE SET "
        "(owner, token, job_id, fence, lease_until, reserved_for, reserved_until) = "
        "(?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
    Statement{Sql::kDeleteLock, "DELETE FROM sekali_locks WHERE ns = ?1 AND name = ?2"},
    Statement{Sql::kLocksHeld, "SELECT " LOCK_COLUMNS " FROM sekali_locks "
        "WHERE ns = ?1 AND owner <> '' AND lease_until > ?2 ORDER BY name"},
    Statement{Sql::kLocksIdle, "SELECT " LOCK_COLUMNS " FROM sekali_locks "
        "WHERE ns = ?1 AND lease_until < ?2 AND reserved_until < ?2 ORDER BY name LIMIT ?3"},

    Statement{Sql::kAddAttempt, "INSERT INTO sekali_attempts(" ATTEMPT_COLUMNS ") "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) "
        "ON CONFLICT(key, kind, ns, job_id, epoch, worker) DO NOTHING"},
    Statement{Sql::kAddEvent, "INSERT INTO sekali_events(" EVENT_COLUMNS ") "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
    Statement{Sql::kAttemptsOfKey, "SELECT " ATTEMPT_COLUMNS " FROM sekali_attempts "
        "INDEXED BY sekali_attempts_run WHERE key = ?3 AND kind = ?2 AND ns = ?1 ORDER BY number"},
    Statement{Sql::kEventsOfKey, "SELECT " EVENT_COLUMNS " FROM sekali_events "
        "INDEXED BY sekali_events_key WHERE key = ?3 AND kind = ?2 AND ns = ?1 ORDER BY number"},
    Statement{Sql::kNextRecordKind, "SELECT kind FROM sekali_records WHERE ns = ?1 AND kind > ?2 "
        "ORDER BY kind LIMIT 1"},
    Statement{Sql::kRecordKeysFrom, "SELECT key FROM sekali_records "
        "WHERE ns = ?1 AND kind = ?2 AND key >= ?3 ORDER BY key LIMIT ?4"},
    Statement{Sql::kRecordKeysBefore, "SELECT key FROM sekali_records "
        "WHERE ns = ?1 AND kind = ?2 AND key < ?3 ORDER BY key DESC LIMIT ?4"},
    Statement{Sql::kKindsOfJobKey, "SELECT DISTINCT kind FROM sekali_jobs INDEXED BY "
        "sekali_jobs_key "
        "WHERE key = ?2 AND ns = ?1"},
    Statement{Sql::kKindsOfFinishedKey, "SELECT DISTINCT kind FROM sekali_finished "
        "INDEXED BY sekali_finished_key WHERE key = ?2 AND ns = ?1"},
    Statement{Sql::kKindOfId, "SELECT kind FROM sekali_jobs WHERE id = ?2 AND ns = ?1 AND key IS "
        "NULL"},
    Statement{Sql::kKindOfFinishedId,
        "SELECT kind FROM sekali_finished WHERE id = ?2 AND ns = ?1 AND key IS NULL"},
    Statement{Sql::kJobKeysFrom, "SELECT key FROM sekali_jobs INDEXED BY sekali_jobs_key "
        "WHERE key >= ?2 AND ns = ?1 ORDER BY key LIMIT ?3"},
    Statement{Sql::kJobKeysBefore, "SELECT key FROM sekali_jobs INDEXED BY sekali_jobs_key "
        "WHERE key < ?2 AND ns = ?1 ORDER BY key DESC LIMIT ?3"},
    Statement{Sql::kFinishedKeysFrom, "SELECT key FROM sekali_finished INDEXED BY "
        "sekali_finished_key "
        "WHERE key >= ?2 AND ns = ?1 ORDER BY key LIMIT ?3"},
    Statement{Sql::kFinishedKeysBefore, "SELECT key FROM sekali_finished INDEXED BY "
        "sekali_finished_key "
        "WHERE key < ?2 AND ns = ?1 ORDER BY key DESC LIMIT ?3"},
    Statement{Sql::kPruneFinished, "DELETE FROM sekali_finished WHERE seq IN ("
        "SELECT seq FROM sekali_finished INDEXED BY sekali_finished_ended "
        "WHERE ns = ?1 AND finished_at < ?2 ORDER BY finished_at LIMIT ?3)"},
    Statement{Sql::kPruneAttempts, "DELETE FROM sekali_attempts WHERE number IN ("
        "SELECT number FROM sekali_attempts INDEXED BY sekali_attempts_ended "
        "WHERE ns = ?1 AND finished_at < ?2 ORDER BY finished_at LIMIT ?3)"},
    Statement{Sql::kPruneEvents, "DELETE FROM sekali_events WHERE number IN ("
        "SELECT number FROM sekali_events INDEXED BY sekali_events_at "
        "WHERE ns = ?1 AND at < ?2 ORDER BY at LIMIT ?3)"},

    Statement{Sql::kWorker, "SELECT " WORKER_COLUMNS " FROM sekali_workers WHERE id = ?1"},
    Statement{Sql::kPutWorker, "INSERT INTO sekali_workers(" WORKER_COLUMNS ") "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT(id) DO UPDATE SET "
        "(ns, host, pid, queues, kinds, concurrency, started_at, lease_until, stopping, "
        "death_company) = "
        "(?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"},
    Statement{Sql::kDeleteWorker, "DELETE FROM sekali_workers WHERE id = ?1"},
    Statement{Sql::kWorkers, "SELECT " WORKER_COLUMNS " FROM sekali_workers "
        "INDEXED BY sekali_workers_ns WHERE ns = ?1 ORDER BY id"},
    Statement{Sql::kLiveness, "SELECT file, place FROM sekali_liveness WHERE worker = ?1"},
    Statement{Sql::kPutLiveness, "INSERT INTO sekali_liveness(worker, file, place, taken_at) "
        "VALUES(?1, ?2, ?3, ?4) ON CONFLICT(worker) DO UPDATE SET "
        "(file, place, taken_at) = (?2, ?3, ?4)"},
    Statement{Sql::kDeleteLiveness, "DELETE FROM sekali_liveness WHERE worker = ?1"},
    Statement{Sql::kOldLiveness, "SELECT worker FROM sekali_liveness WHERE taken_at < ?1 "
        "AND worker NOT IN (SELECT id FROM sekali_workers) LIMIT ?2"},
    Statement{Sql::kQueue, "SELECT paused FROM sekali_queues WHERE ns = ?1 AND name = ?2"},
    Statement{Sql::kPutQueue, "INSERT INTO sekali_queues(ns, name, paused) VALUES(?1, ?2, ?3) "
        "ON CONFLICT(ns, name) DO UPDATE SET paused = ?3"},
    Statement{Sql::kQueues, "SELECT name, paused FROM sekali_queues WHERE ns = ?1"},
};
// clang-format on

constexpr bool listed_in_order() {
    for (std::size_t i = 0; i < kStatements.size(); ++i) {
        if (kStatements[i].which != static_cast<Sql>(i)) return false;
    }
    return kStatements.size() == kSqlCount;
}
static_assert(listed_in_order());

}  // namespace

std::string_view text_of(Sql which) {
    return kStatements.at(static_cast<std::size_t>(which)).text;
}

UpdateText job_update() {
    return {"sekali_jobs", "seq = ?1", 1, JOB_CHANGING};
}

UpdateText record_update() {
    return {"sekali_records", "ns = ?1 AND kind = ?2 AND key = ?3", 3, RECORD_CHANGING};
}

}  // namespace sekali::sqlite
