#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model.hpp"
#include "sekali/result.hpp"

namespace sekali {
class Transaction;
}

namespace sekali::engine {

/// Which jobs a worker may be given.
struct ClaimSpec {
    std::string ns;
    std::vector<std::string> queues;
    std::vector<std::string> kinds;  ///< Those with a handler here; others wait, visibly.
    std::size_t limit = 0;
};

/// What a list shows: every set field must match.
struct JobFilter {
    std::string ns;
    std::optional<std::string> state, kind, queue, key;
    std::size_t limit = 100;
    std::string after;  ///< Continuation from an earlier page; opaque to callers.
};

template <typename T>
struct Page {
    std::vector<T> items;
    std::string next;  ///< Empty: no more.
};

/// Rows that a piece of work will touch, as far as its request names them. A hint: what is missing
/// here is found all the same, only later.
struct Footprint {
    std::vector<std::string> jobs;      ///< Ids of live jobs.
    std::vector<std::string> new_jobs;  ///< Ids of jobs to be inserted.
    /// As above, of ids that were made at random just now: no other job has them.
    std::vector<std::string> fresh_jobs;
    std::vector<RecordKey> records;
    std::vector<RecordKey> steps;
    std::vector<RecordKey> key_lines;                        ///< Records whose line is looked at.
    std::vector<RecordKey> live_of_keys;                     ///< Keys whose live job is looked for.
    std::vector<RecordKey> slots;                            ///< Namespace, kind and unique key.
    std::vector<std::pair<std::string, std::string>> locks;  ///< Namespace and name.
    std::vector<std::pair<std::string, std::string>> lock_lines;
    std::vector<std::string> workers;
};

/// How a worker's process is doing, as far as this host can prove it.
enum class OwnerFate : std::uint8_t { kAlive, kDead, kUnknown };

struct QueueCounts {
    std::string queue;
    bool paused = false;
    std::map<std::string, std::uint64_t> by_state;  ///< Live states only.
    std::optional<StoreTime> oldest_ready;          ///< Run time of the oldest ready job.
    std::uint64_t live_workers = 0;
};

/// The rows inside one open transaction of a store.
///
/// The protocol's operations (`engine/ops_*.hpp`) are written once, on this; a backend with rows
/// implements it. A read sees the writes made before it through the same object. Not thread-safe:
/// it belongs to the thread that runs the transaction. Calls throw `Failure` when the store fails;
/// the backend then rolls back and reports. `now()` is one instant for the whole transaction.
class Tables {
 public:
    virtual ~Tables() = default;
    [[nodiscard]] virtual StoreTime now() const = 0;

    /// Whether every row costs a round trip, so that `foresee` is worth its while.
    [[nodiscard]] virtual bool is_far() const { return false; }
    /// Says at the beginning of a piece of work what it will touch, so that a store that is far
    /// away loads it at once. It may leave the work by an exception and run it again.
    virtual void foresee(const Footprint& /*rows*/) {}

    // Live jobs. Rows are read without their payload.
    virtual std::optional<JobRow> job(std::string_view id) = 0;
    /// Gives the row its `seq`; false when a job of that id exists, live or final.
    virtual bool insert_job(JobRow& row) = 0;
    virtual void update_job(const JobRow& row) = 0;
    /// Moves a live row whose state is final out of the hot table. Payloads are kept for dead and
    /// cancelled jobs, which may be retried, and dropped for the others.
    virtual void finish_job(const JobRow& row) = 0;
    virtual std::optional<JobRow> finished_job(std::string_view id) = 0;
    /// Writes a final job that never had a live row, e.g. a duplicate caller of `once`.
    virtual void insert_finished(const JobRow& row) = 0;
    /// Moves a final row back among the live ones, with its payload.
    virtual void revive_job(const JobRow& row) = 0;
    virtual void erase_finished(std::string_view id) = 0;
    virtual std::string payload(std::string_view job_id) = 0;

    /// Scheduled jobs whose time has come become ready; at most `limit`. Returns how many.
    virtual std::size_t promote_due(std::string_view ns, std::size_t limit) = 0;
    /// Ready jobs in claim order (priority, then arrival), with payload; paused queues give none.
    virtual std::vector<JobRow> claimable(const ClaimSpec& spec) = 0;
    /// Running jobs of the given kinds whose lease has lapsed or whose owner is proven dead, in
    /// order of `seq`, from behind `after_seq`.
    virtual std::vector<JobRow> lapsed_jobs(std::string_view ns,
                                            const std::vector<std::string>& kinds,
                                            std::int64_t after_seq, std::size_t limit) = 0;
    virtual std::uint64_t count_begun(std::string_view owner) = 0;
    /// Whether a running job belongs to this worker.
    virtual bool has_jobs_of(std::string_view owner) = 0;
    /// The running jobs of this worker, with payload.
    virtual std::vector<JobRow> running_jobs_of(std::string_view ns, std::string_view owner) = 0;
    virtual std::optional<JobRow> unique_holder(std::string_view ns, std::string_view kind,
                                                std::string_view unique_key) = 0;
    /// The first in line (priority, then arrival) of what waits for this lock or key.
    virtual std::optional<JobRow> first_waiting(std::string_view ns, WaitFor wait,
                                                std::string_view kind, std::string_view name) = 0;
    /// Whether a live, held or dead job uses this idempotency key; such a record is not pruned.
    virtual bool has_live_or_dead_job(const RecordKey& key) = 0;
    /// A live job that uses this idempotency key: one that does not wait in line before those that
    /// do, then the oldest.
    virtual std::optional<JobRow> live_job_of_key(const RecordKey& key) = 0;
    /// When the next scheduled job of these queues and kinds is due.
    virtual std::optional<StoreTime> next_run_at(const ClaimSpec& spec) = 0;
    /// Whether `--drain` has something left to wait for among these queues and kinds: a ready or
    /// running job, a retry (a scheduled job that was claimed before), or a waiting one whose lock
    /// or key is not held up by a held, paused or merely delayed job.
    virtual bool has_drainable(const ClaimSpec& spec) = 0;
    virtual Page<JobRow> list_jobs(const JobFilter& filter) = 0;

    // Idempotency records.
    virtual std::optional<RecordRow> record(const RecordKey& key) = 0;
    virtual void put_record(const RecordRow& row) = 0;
    /// Removes the record and its steps, and raises the floor that new records of any key start
    /// from.
    virtual void erase_record(const RecordKey& key) = 0;
    /// No epoch at or below this may be given to a new record: what pruned records had reached.
    virtual std::uint64_t epoch_floor() = 0;
    /// Ended, unmarked records whose retention has passed, oldest first.
    virtual std::vector<RecordRow> prunable_records(std::string_view ns, std::size_t limit) = 0;
    /// Records in `processing` whose lease has lapsed, or `held`: what `reconcile` looks at.
    virtual std::vector<RecordRow> stale_records(std::string_view ns, std::size_t limit) = 0;

    // Steps of a record, in order.
    virtual std::vector<StepRow> steps(const RecordKey& key) = 0;
    virtual void put_step(const StepRow& row) = 0;
    virtual void erase_steps(const RecordKey& key) = 0;

    // Lock rows.
    virtual std::optional<LockRow> lock(std::string_view ns, std::string_view name) = 0;
    virtual void put_lock(const LockRow& row) = 0;
    virtual void erase_lock(std::string_view ns, std::string_view name) = 0;
    virtual std::uint64_t fence_floor() = 0;
    virtual std::vector<LockRow> held_locks(std::string_view ns) = 0;
    /// Free lock rows last used before `before`.
    virtual std::vector<LockRow> idle_locks(std::string_view ns, StoreTime before,
                                            std::size_t limit) = 0;
    /// Names of locks that are free or lapsed, unreserved, and have jobs in line.
    virtual std::vector<std::string> stalled_lines(std::string_view ns, std::size_t limit) = 0;
    /// (kind, key) of records that ended or lapsed and still have jobs waiting for them.
    virtual std::vector<RecordKey> stalled_keys(std::string_view ns, std::size_t limit) = 0;

    // History.
    /// Does nothing when the run (record, job id, epoch, worker) has its row already: two may
    /// notice one end.
    virtual void add_attempt(const AttemptRow& row) = 0;
    virtual void add_event(const EventRow& row) = 0;
    virtual std::vector<AttemptRow> attempts_of_key(const RecordKey& key) = 0;
    virtual std::vector<EventRow> events_of_key(const RecordKey& key) = 0;
    virtual std::vector<JobRow> jobs_of_key(std::string_view ns, std::string_view kind,
                                            std::string_view key) = 0;
    /// Kinds that know this key, and the nearest existing keys when none does.
    virtual std::vector<std::string> kinds_of_key(std::string_view ns, std::string_view key) = 0;
    virtual std::vector<std::string> nearest_keys(std::string_view ns, std::string_view key,
                                                  std::size_t limit) = 0;
    /// Drops final jobs, attempts and events that ended before `before`; returns rows dropped.
    virtual std::size_t prune_history(std::string_view ns, StoreTime before, std::size_t limit) = 0;

    // Workers and queues.
    virtual void put_worker(const WorkerRow& row) = 0;
    virtual std::optional<WorkerRow> worker(std::string_view id) = 0;
    virtual void erase_worker(std::string_view id) = 0;
    virtual std::vector<WorkerRow> workers(std::string_view ns) = 0;
    virtual OwnerFate owner_fate(std::string_view worker_id) = 0;
    virtual std::optional<QueueRow> queue(std::string_view ns, std::string_view name) = 0;
    virtual void put_queue(const QueueRow& row) = 0;
    virtual std::vector<QueueCounts> queue_counts(std::string_view ns) = 0;

    /// Runs a handler's own writes inside this transaction, under a savepoint: when they fail or
    /// throw, they are undone and the error is returned, while the transaction goes on.
    virtual Result<void> run_effects(const std::function<Result<void>(Transaction&)>& effects) = 0;
};

/// One piece of work for a transaction. Many share a commit; when that fails each is run again
/// alone, so `work` may run more than once and must set its outputs afresh each time.
struct Task {
    std::function<void(Tables&)> work;
    std::function<void(Result<void>)>
        done;             ///< Called once, after the commit is durable or refused.
    bool urgent = false;  ///< Renewals go before everything else.
    /// Those that are submitted with this set run in their order; jobs get their places by it.
    bool in_order = false;
};

/// Runs tasks in transactions, grouping what is ready (one commit, one fsync). Thread-safe.
class Executor {
 public:
    virtual ~Executor() = default;
    /// As of its tables: every row costs a round trip.
    [[nodiscard]] virtual bool is_far() const { return false; }
    virtual void submit(std::vector<Task> tasks) = 0;
    /// Runs `work` on one consistent read-only snapshot, on the caller's thread.
    [[nodiscard]] virtual Result<void> read(const std::function<void(Tables&)>& work) = 0;
    /// Returns when another transaction may have made something ready, or after `at_most`.
    virtual void wait_for_change(Millis at_most) = 0;
};

}  // namespace sekali::engine
