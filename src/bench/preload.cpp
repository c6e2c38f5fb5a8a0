#include "bench/preload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"

namespace sekali::bench {
namespace {

using sqlite::Connection;

constexpr std::chrono::milliseconds kBusyDeadline{10'000};
constexpr std::int64_t kChunk = 50'000;
/// Ascending numbers: records lie below the jobs that wait, and those below all that is measured.
constexpr std::int64_t kJobsFrom = 100'000'000;
constexpr std::uint64_t kFreshFrom = 500'000'000;

constexpr std::string_view kNumbers =
    "WITH RECURSIVE numbers(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < "
    "?2) ";

std::string key_text(bool random_keys, std::int64_t first) {
    return random_keys ? "lower(hex(randomblob(16)))"
                       : fmt::format("printf('order:%012d', i + {})", first);
}

std::string jobs_text(bool random_keys) {
    return fmt::format(
        "INSERT INTO sekali_jobs(id, ns, kind, queue, priority, key, lock_key, unique_key, "
        "unique_until, fingerprint, fingerprint_rule, named_end, enqueued_at, state, waiting_for, "
        "waiting_name, run_at, slot_held, attempts, crashes, interruptions, deliveries, "
        "lost_claims, owner, lease_until, begun, suspect, cancel_requested, requested_by, epoch, "
        "result, error, reason, payload) {} "
        "SELECT printf('00000000-0000-7000-8000-%012x', i), 'default', 'bench.charge', "
        "iif(i % 2, 'elsewhere', 'bench'), 0, {}, '', '', 0, hex(zeroblob(32)), '', 0, ?3, i % 2, "
        "0, '', ?3 + iif(i % 2, 0, 31536000000), 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, '', 0, '', '', "
        "'', cast('{{\"order_id\":\"order-00000000\",\"cents\":4200}}' AS BLOB) FROM numbers",
        kNumbers, key_text(random_keys, kJobsFrom));
}

std::string records_text(bool random_keys) {
    return fmt::format(
        "INSERT INTO sekali_records(ns, kind, key, state, expires_at, job_id, epoch, owner, "
        "delivery, lease_until, fingerprint, fingerprint_rule, not_before, effects, on_unknown, "
        "marked, mark_cause, probing, death_proven, probe_after, ends, lock_key, fence, attempt, "
        "started_at, finished_at, keep, whole_answer, result) {} "
        "SELECT 'default', 'bench.charge', {}, 1, ?3 + 2592000000, 'preloaded', 1, "
        "'0123456789abcdef', 1, 0, hex(zeroblob(32)), '', 0, 0, 0, 0, '', 0, 0, 0, 0, '', 0, 1, "
        "?3, ?3, 2592000000, 1, 'null' FROM numbers",
        kNumbers, key_text(random_keys, 0));
}

}  // namespace

Preload::Preload(const std::string& path, bool random_keys)
    : connection_(path, Connection::Mode::kReadWrite, kBusyDeadline) {
    connection_.execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -262144");
    insert_jobs_ = connection_.prepare(jobs_text(random_keys), true);
    insert_records_ = connection_.prepare(records_text(random_keys), true);
}

void Preload::grow_to(std::size_t rows) {
    const auto wanted = static_cast<std::int64_t>(rows);
    while (rows_ < wanted) {
        const std::int64_t end = std::min(wanted, rows_ + kChunk);
        add(rows_, end);
        rows_ = end;
    }
}

void Preload::add(std::int64_t begin, std::int64_t end) {
    connection_.execute("BEGIN IMMEDIATE");
    for (sqlite3_stmt* statement : {insert_jobs_.get(), insert_records_.get()}) {
        sqlite3_bind_int64(statement, 1, begin);
        sqlite3_bind_int64(statement, 2, end);
        sqlite3_bind_int64(statement, 3, base::wall_ms());
        const int code = sqlite3_step(statement);
        sqlite3_reset(statement);
        if (code != SQLITE_DONE) sqlite::throw_sqlite(code, "fill it", connection_.handle());
    }
    connection_.execute("COMMIT");
    connection_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

void Preload::forget_others() {
    connection_.execute(
        "BEGIN IMMEDIATE; DELETE FROM sekali_finished; DELETE FROM sekali_attempts; "
        "DELETE FROM sekali_records WHERE job_id <> 'preloaded'; COMMIT; "
        "PRAGMA wal_checkpoint(TRUNCATE)");
}

std::string fresh_key(bool random_keys, std::uint64_t number) {
    constexpr std::size_t kBytes = 16;
    return random_keys ? base::random_hex(kBytes)
                       : fmt::format("order:{:012}", kFreshFrom + number);
}

}  // namespace sekali::bench
