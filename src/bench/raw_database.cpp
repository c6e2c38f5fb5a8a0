#include "bench/raw_database.hpp"

#include <chrono>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"

namespace sekali::bench {
namespace {

using sqlite::Connection;
using sqlite::Synchronous;

constexpr std::chrono::milliseconds kBusyDeadline{10'000};
constexpr std::string_view kWorker = "0123456789abcdef";
constexpr std::string_view kToken = "0123456789abcdef/1";
constexpr std::string_view kFingerprint =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
constexpr std::int64_t kLeaseMs = 15'000;
constexpr std::int64_t kRunTimeMs = 325'000;  // timeout and grace of a kind that says nothing
constexpr std::int64_t kKeepMs = std::int64_t{30} * 24 * 3600 * 1000;

// In the order of `RawDatabase::Sql`; ?1 is the place of the job or its key.
constexpr std::array<std::string_view, 14> kTexts{
    "BEGIN IMMEDIATE",
    "COMMIT",
    "INSERT INTO sekali_jobs(seq, id, ns, kind, queue, priority, key, lock_key, unique_key, "
    "unique_until, fingerprint, fingerprint_rule, named_end, enqueued_at, state, waiting_for, "
    "waiting_name, run_at, slot_held, attempts, crashes, interruptions, deliveries, lost_claims, "
    "owner, lease_until, begun, suspect, cancel_requested, requested_by, epoch, result, error, "
    "reason, payload) VALUES(?1, ?2, 'default', ?3, ?4, 0, ?5, ?6, ?7, 0, ?8, '', 0, ?9, 1, 0, '', "
    "?9, ?10, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, '', 0, '', '', '', ?11)",
    "UPDATE sekali_jobs SET state = 3, owner = ?2, lease_until = ?3, deliveries = 1 WHERE seq = ?1",
    "UPDATE sekali_jobs SET state = 3, owner = ?2, lease_until = ?3, deliveries = 1, begun = 1, "
    "epoch = 1 WHERE seq = ?1",
    "INSERT INTO sekali_locks(ns, name, owner, token, job_id, fence, lease_until, reserved_for, "
    "reserved_until) VALUES('default', ?1, ?2, ?3, ?4, 1, ?5, '', 0)",
    "INSERT INTO sekali_records(ns, kind, key, state, expires_at, job_id, epoch, owner, delivery, "
    "lease_until, fingerprint, fingerprint_rule, not_before, effects, on_unknown, marked, "
    "mark_cause, probing, death_proven, probe_after, ends, lock_key, fence, attempt, started_at, "
    "finished_at, keep, whole_answer, result) VALUES('default', ?2, ?1, 0, NULL, ?3, 1, ?4, 1, ?5, "
    "?6, '', 0, 0, 0, 0, '', 0, 0, ?7, 0, '', 0, 1, ?8, NULL, ?9, 1, '')",
    "UPDATE sekali_jobs SET begun = 1, epoch = 1 WHERE seq = ?1",
    "UPDATE sekali_locks SET owner = '', token = '', job_id = '', lease_until = ?2 "
    "WHERE ns = 'default' AND name = ?1",
    "INSERT INTO bench_effects(job_id, cents) VALUES(?1, ?2)",
    "INSERT INTO sekali_attempts(ns, kind, key, job_id, attempt, epoch, worker, started_at, "
    "finished_at, outcome, error) VALUES('default', ?2, ?1, ?3, 1, 1, ?4, ?5, ?5, 'succeeded', '')",
    "UPDATE sekali_records SET state = 1, expires_at = ?3, finished_at = ?4, result = 'null' "
    "WHERE ns = 'default' AND kind = ?2 AND key = ?1",
    "INSERT INTO sekali_finished SELECT seq, id, ns, kind, queue, priority, key, lock_key, "
    "unique_key, unique_until, retry_base, retry_factor, retry_cap, retry_jitter, max_attempts, "
    "max_age, fingerprint, fingerprint_rule, named_end, enqueued_at, 5, 0, '', run_at, 0, 1, 0, 0, "
    "deliveries, lost_claims, '', 0, 0, suspect, cancel_requested, requested_by, epoch, 'null', "
    "'', '', ?2, NULL FROM sekali_jobs WHERE seq = ?1",
    "DELETE FROM sekali_jobs WHERE seq = ?1",
};

const std::string& key_of(const JobDraft& job) {
    return job.key.empty() ? job.id : job.key;
}

}  // namespace

/// One use of a statement.
class RawDatabase::Use {
 public:
    Use(RawDatabase& database, Sql which)
        : statement_(database.statements_[static_cast<std::size_t>(which)].get()) {}

    Use& text(std::string_view text) {
        sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                          SQLITE_STATIC);
        return *this;
    }
    Use& text_or_null(std::string_view bytes) {
        if (!bytes.empty()) return text(bytes);
        sqlite3_bind_null(statement_, ++bound_);
        return *this;
    }
    Use& blob(std::string_view bytes) {
        sqlite3_bind_blob(statement_, ++bound_, bytes.data(), static_cast<int>(bytes.size()),
                          SQLITE_STATIC);
        return *this;
    }
    Use& integer(std::int64_t number) {
        sqlite3_bind_int64(statement_, ++bound_, number);
        return *this;
    }
    void run() {
        const int code = sqlite3_step(statement_);
        sqlite3_reset(statement_);
        if (code != SQLITE_DONE) {
            sqlite::throw_sqlite(code, "write it", sqlite3_db_handle(statement_));
        }
    }

 private:
    sqlite3_stmt* statement_;
    int bound_ = 0;
};

RawDatabase::RawDatabase(const std::string& path, Synchronous synchronous, const Level& level)
    : level_(level),
      connection_(path, Connection::Mode::kReadWrite, kBusyDeadline),
      log_(connection_, sqlite::SqliteOptions{}.log_limit_bytes, {}) {
    connection_.execute(synchronous == Synchronous::kFull ? "PRAGMA synchronous = FULL"
                                                          : "PRAGMA synchronous = NORMAL");
    static_assert(kTexts.size() == std::tuple_size_v<decltype(statements_)>);
    for (std::size_t i = 0; i < kTexts.size(); ++i)
        statements_[i] = connection_.prepare(kTexts[i], true);
}

void RawDatabase::write_all(std::span<const JobDraft> jobs, std::int64_t first_seq, Write write) {
    Use(*this, Sql::kBegin).run();
    now_ = base::wall_ms();
    for (std::size_t i = 0; i < jobs.size(); ++i)
        (this->*write)(jobs[i], first_seq + static_cast<std::int64_t>(i));
    Use(*this, Sql::kCommit).run();
    log_.checkpoint_if_due();
}

void RawDatabase::enqueue(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    write_all(jobs, first_seq, &RawDatabase::enqueue_one);
}
void RawDatabase::claim(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    write_all(jobs, first_seq, &RawDatabase::claim_one);
}
void RawDatabase::begin_runs(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    if (level_.lock_key) write_all(jobs, first_seq, &RawDatabase::begin_one);
}
void RawDatabase::settle(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    write_all(jobs, first_seq, &RawDatabase::settle_one);
}

void RawDatabase::enqueue_one(const JobDraft& job, std::int64_t seq) {
    Use(*this, Sql::kInsertJob)
        .integer(seq)
        .text(job.id)
        .text(kKind)
        .text(kQueue)
        .text_or_null(job.key)
        .text(job.lock_key)
        .text(job.unique_key)
        .text(kFingerprint)
        .integer(now_)
        .integer(job.unique_key.empty() ? 0 : 1)
        .blob(job.payload)
        .run();
}

/// As sekali does: what needs no lock is begun by its claim.
void RawDatabase::claim_one(const JobDraft& job, std::int64_t seq) {
    const Sql which = level_.lock_key ? Sql::kClaim : Sql::kClaimAndBegin;
    Use(*this, which).integer(seq).text(kWorker).integer(now_ + kLeaseMs).run();
    if (level_.record && !level_.lock_key) insert_record(job);
}

void RawDatabase::begin_one(const JobDraft& job, std::int64_t seq) {
    Use(*this, Sql::kTakeLock)
        .text(job.lock_key)
        .text(kWorker)
        .text(kToken)
        .text(job.id)
        .integer(now_ + kLeaseMs)
        .run();
    if (level_.record) insert_record(job);
    Use(*this, Sql::kBeginRun).integer(seq).run();
}

void RawDatabase::insert_record(const JobDraft& job) {
    Use(*this, Sql::kInsertRecord)
        .text(key_of(job))
        .text(kKind)
        .text(job.id)
        .text(kWorker)
        .integer(now_ + kLeaseMs)
        .text(kFingerprint)
        .integer(now_ + kRunTimeMs)
        .integer(now_)
        .integer(kKeepMs)
        .run();
}

void RawDatabase::settle_one(const JobDraft& job, std::int64_t seq) {
    if (level_.commit) Use(*this, Sql::kInsertEffect).text(job.id).integer(kEffectCents).run();
    Use(*this, Sql::kInsertAttempt)
        .text(key_of(job))
        .text(kKind)
        .text(job.id)
        .text(kWorker)
        .integer(now_)
        .run();
    if (level_.lock_key) Use(*this, Sql::kFreeLock).text(job.lock_key).integer(now_).run();
    if (level_.record) {
        Use(*this, Sql::kSucceed)
            .text(key_of(job))
            .text(kKind)
            .integer(now_ + kKeepMs)
            .integer(now_)
            .run();
    }
    Use(*this, Sql::kFinish).integer(seq).integer(now_).run();
    Use(*this, Sql::kDelete).integer(seq).run();
}

}  // namespace sekali::bench
