#include "bench/postgres_raw.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/sql.hpp"
#include "base/clock.hpp"

namespace sekali::bench {
namespace {

using postgres::Command;
using postgres::Parameters;
using postgres::Sql;

constexpr std::string_view kWorker = "0123456789abcdef";
constexpr std::string_view kToken = "0123456789abcdef/1";
constexpr std::string_view kFingerprint =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
constexpr std::int64_t kLeaseMs = 15'000;
constexpr std::int64_t kRunTimeMs = 325'000;  // timeout and grace of a kind that says nothing
constexpr std::int64_t kKeepMs = std::int64_t{30} * 24 * 3600 * 1000;

const std::string& key_of(const JobDraft& job) {
    return job.key.empty() ? job.id : job.key;
}

template <typename Get>
std::vector<std::string> column(std::span<const JobDraft> jobs, Get get) {
    std::vector<std::string> values;
    values.reserve(jobs.size());
    for (const JobDraft& job : jobs)
        values.push_back(get(job));
    return values;
}

std::vector<std::string> ids(std::span<const JobDraft> jobs) {
    return column(jobs, [](const JobDraft& job) { return job.id; });
}
std::vector<std::string> keys(std::span<const JobDraft> jobs) {
    return column(jobs, key_of);
}
std::vector<std::string> lock_keys(std::span<const JobDraft> jobs) {
    return column(jobs, [](const JobDraft& job) { return job.lock_key; });
}

std::vector<std::int64_t> places(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    std::vector<std::int64_t> values(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i)
        values[i] = first_seq + static_cast<std::int64_t>(i);
    return values;
}

}  // namespace

struct RawPostgres::Texts {
    explicit Texts(const std::string& schema) : schema_(schema) {}

    const std::string& schema_;
    Sql insert_jobs = make(
        "insert_jobs",
        "INSERT INTO @jobs(seq, priority, enqueued_at, run_at, lease_until, named_end, attempts,"
        " crashes, interruptions, deliveries, lost_claims, epoch, state, waiting_for,"
        " unique_until, slot_held, begun, suspect, cancel_requested, id, ns, kind, queue, key,"
        " lock_key, unique_key, waiting_name, owner, fingerprint, fingerprint_rule,"
        " requested_by, result, error, reason, payload)"
        " SELECT n.seq, 0, $7, $7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, n.unique_key <> '', false,"
        " false, false, n.id, 'default', $8, $9, nullif(n.key, n.id), n.lock_key, n.unique_key,"
        " '', '', $10, '', '', '', '', '', n.payload"
        " FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[])"
        " AS n(seq, id, key, lock_key, unique_key, payload)");
    Sql claim =
        make("claim",
             "WITH places AS MATERIALIZED (SELECT j.seq FROM @jobs AS j WHERE j.ns = 'default'"
             " AND j.queue = $1 AND j.kind = $2 AND j.state = 1 ORDER BY j.priority DESC, j.seq"
             " LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)"
             " UPDATE @jobs AS j SET state = 3, owner = $4, lease_until = $5, deliveries = 1"
             " FROM places WHERE j.seq = places.seq RETURNING j.seq, j.id, j.key, j.lock_key,"
             " j.fingerprint, j.payload");
    Sql take_locks =
        make("take_locks",
             "INSERT INTO @locks(ns, name, owner, token, job_id, fence, lease_until, reserved_for,"
             " reserved_until) SELECT 'default', n.name, $3, $4, n.id, 1, $5, '', 0"
             " FROM unnest($1::text[], $2::text[]) AS n(name, id)");
    Sql insert_records = make(
        "insert_records",
        "INSERT INTO @records(ns, kind, key, state, expires_at, job_id, epoch, owner, delivery,"
        " lease_until, fingerprint, fingerprint_rule, not_before, effects, on_unknown, marked,"
        " mark_cause, probing, death_proven, probe_after, ends, lock_key, fence, attempt,"
        " started_at, finished_at, keep, whole_answer, result)"
        " SELECT 'default', $3, n.key, 0, NULL, n.id, 1, $4, 1, $5, $6, '', 0, 0, 0, false, '',"
        " false, false, $7, 0, '', 0, 1, $8, NULL, $9, true, ''"
        " FROM unnest($1::text[], $2::text[]) AS n(key, id)");
    Sql begin_runs =
        make("begin_runs", "UPDATE @jobs SET begun = true, epoch = 1 WHERE seq = ANY($1)");
    Sql insert_effects = make("insert_effects",
                              "INSERT INTO @bench_effects(job_id, cents) SELECT n.id, $2 FROM "
                              "unnest($1::text[]) AS n(id)");
    Sql insert_attempts =
        make("insert_attempts",
             "INSERT INTO @attempts(ns, kind, key, job_id, attempt, epoch, worker, started_at,"
             " finished_at, outcome, error) SELECT 'default', $3, n.key, n.id, 1, 1, $4, $5, $5,"
             " 'succeeded', '' FROM unnest($1::text[], $2::text[]) AS n(key, id)");
    Sql free_locks =
        make("free_locks",
             "UPDATE @locks AS t SET owner = '', token = '', job_id = '', lease_until = $2"
             " FROM unnest($1::text[], $3::text[]) AS n(name, ns) WHERE t.ns = n.ns AND t.name = "
             "n.name");
    // Keys are compared in all their parts with the arrays': on a table without statistics the
    // planner would else look through all that has the namespace and kind for each of them.
    Sql succeed = make(
        "succeed",
        "UPDATE @records AS t SET state = 1, expires_at = $3, finished_at = $4, result = 'null'"
        " FROM unnest($1::text[], $2::text[], $5::text[]) AS n(key, kind, ns)"
        " WHERE t.ns = n.ns AND t.kind = n.kind AND t.key = n.key");
    Sql finish = make(
        "finish",
        "WITH gone AS (DELETE FROM @jobs WHERE seq = ANY($1) RETURNING *)"
        " INSERT INTO @finished(seq, priority, enqueued_at, run_at, lease_until, named_end,"
        " attempts, crashes, interruptions, deliveries, lost_claims, epoch, state, waiting_for,"
        " unique_until, slot_held, begun, suspect, cancel_requested, id, ns, kind, queue, key,"
        " lock_key, unique_key, waiting_name, owner, fingerprint, fingerprint_rule,"
        " requested_by, result, error, reason, payload, finished_at)"
        " SELECT seq, priority, enqueued_at, run_at, 0, named_end, 1, 0, 0, deliveries,"
        " lost_claims, epoch, 5, 0, unique_until, false, false, false, false, id, ns, kind,"
        " queue, key, lock_key, unique_key, '', '', fingerprint, fingerprint_rule, '', 'null',"
        " '', '', NULL, $2 FROM gone");

 private:
    [[nodiscard]] Sql make(const char* name, const char* text) const {
        return {name, postgres::in_schema(text, schema_), "write it"};
    }
};

RawPostgres::RawPostgres(const postgres::PostgresOptions& options, const Level& level)
    : level_(level),
      sql_(std::make_unique<const Texts>(options.schema)),
      connection_(postgres::Connection::open(options)) {}

RawPostgres::~RawPostgres() = default;

void RawPostgres::enqueue(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    postgres::ArrayEncoder payloads(postgres::PgType::kBytea);
    for (const JobDraft& job : jobs)
        payloads.next().put(job.payload);
    Parameters arguments;
    arguments.add_list(places(jobs, first_seq)).add_list(ids(jobs)).add_list(keys(jobs));
    arguments.add_list(lock_keys(jobs));
    arguments.add_list(column(jobs, [](const JobDraft& job) { return job.unique_key; }));
    arguments.add_array(payloads).add(base::wall_ms()).add(kKind).add(kQueue).add(kFingerprint);
    connection_->run_one({&sql_->insert_jobs, std::move(arguments)});
}

void RawPostgres::claim(std::span<const JobDraft> jobs, std::int64_t /*first_seq*/) {
    const auto claimed = connection_->run_one(
        {&sql_->claim,
         postgres::parameters(kQueue, kKind, jobs.size(), kWorker, base::wall_ms() + kLeaseMs)});
    if (PQntuples(claimed.get()) == static_cast<int>(jobs.size())) return;
    throw Failure({.code = ErrorCode::kInternal, .message = "a raw claim found other jobs"});
}

void RawPostgres::begin_runs(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    const std::int64_t now = base::wall_ms();
    std::vector<Command> commands;
    if (level_.lock_key) {
        Parameters arguments;
        arguments.add_list(lock_keys(jobs)).add_list(ids(jobs));
        arguments.add(kWorker).add(kToken).add(now + kLeaseMs);
        commands.push_back({&sql_->take_locks, std::move(arguments)});
    }
    if (level_.record) {
        Parameters arguments;
        arguments.add_list(keys(jobs)).add_list(ids(jobs)).add(kKind).add(kWorker);
        arguments.add(now + kLeaseMs).add(kFingerprint).add(now + kRunTimeMs).add(now).add(kKeepMs);
        commands.push_back({&sql_->insert_records, std::move(arguments)});
    }
    commands.push_back(
        {&sql_->begin_runs, std::move(Parameters{}.add_list(places(jobs, first_seq)))});
    connection_->run(commands);
}

void RawPostgres::settle(std::span<const JobDraft> jobs, std::int64_t first_seq) {
    const std::int64_t now = base::wall_ms();
    std::vector<Command> commands;
    if (level_.commit) {
        Parameters arguments;
        arguments.add_list(ids(jobs)).add(kEffectCents);
        commands.push_back({&sql_->insert_effects, std::move(arguments)});
    }
    Parameters attempts;
    attempts.add_list(keys(jobs)).add_list(ids(jobs)).add(kKind).add(kWorker).add(now);
    commands.push_back({&sql_->insert_attempts, std::move(attempts)});
    if (level_.lock_key) {
        Parameters arguments;
        arguments.add_list(lock_keys(jobs)).add(now);
        arguments.add_list(std::vector<std::string>(jobs.size(), "default"));
        commands.push_back({&sql_->free_locks, std::move(arguments)});
    }
    if (level_.record) {
        Parameters arguments;
        arguments.add_list(keys(jobs));
        arguments.add_list(std::vector<std::string>(jobs.size(), std::string(kKind)));
        arguments.add(now + kKeepMs).add(now);
        arguments.add_list(std::vector<std::string>(jobs.size(), "default"));
        commands.push_back({&sql_->succeed, std::move(arguments)});
    }
    Parameters finished;
    finished.add_list(places(jobs, first_seq)).add(now);
    commands.push_back({&sql_->finish, std::move(finished)});
    connection_->run(commands);
}

}  // namespace sekali::bench
