#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/ports.hpp"
#include "engine/tables.hpp"

// The protocol of section 4 and the operations of people and producers, each written once, on the
// rows of one open transaction. They decide; a backend only stores. All throw `Failure` for bad
// requests and leave the transaction to be rolled back.
namespace sekali::engine {

// ---- producers (ops_enqueue.cpp)
// ---------------------------------------------------------------------

struct EnqueueRequest {
    Envelope job;
    std::optional<Millis> delay;
    OnDuplicate on_duplicate = OnDuplicate::kKeep;
    /// Last bound of a unique slot that is not the job's own row; where it is, the row decides.
    std::optional<Millis> unique_for{};
    bool has_fresh_id = false;  ///< Made at random just now: no job and no record knows it.
};
struct EnqueueReply {
    enum class Kind : std::uint8_t {
        kEnqueued,
        kDuplicate,  ///< The slot of its unique key is taken; `winner` has it.
        kReplaced,   ///< It took the place of `winner`, which waited.
        kKeyReused,  ///< Its idempotency key is recorded with another payload.
        kIdTaken,    ///< A different job has this id.
    } kind = Kind::kEnqueued;
    std::string id;
    std::optional<JobRow> winner;
};
EnqueueReply enqueue(Tables& tables, const EnqueueRequest& request);

// ---- what is touched (footprint.cpp)
// ---------------------------------------------------------------------

/// Adds the rows that a request will touch.
void add_footprint(Footprint& rows, const QueueCommand& command);
void add_footprint(Footprint& rows, const StoreCommand& command);
void add_footprint(Footprint& rows, const LockCommand& command);
/// For work that will enqueue these; to be called at its beginning.
void foresee(Tables& tables, std::span<const EnqueueRequest> requests);

// ---- runners (ops_claim.cpp, ops_begin.cpp, ops_settle.cpp, ops_steps.cpp, ops_recover.cpp)
// ------------

Claimed claim(Tables& tables, const Claim& request);
void give_back(Tables& tables, const Return& request);
BeginReply begin(Tables& tables, const Begin& request);
Settled settle(Tables& tables, const Settle& request);
Renewed renew(Tables& tables, const Renew& request);
StepIntentReply step_intent(Tables& tables, const StepIntent& request);
/// False: the run was superseded; the result is kept as evidence only.
bool step_result(Tables& tables, const StepResult& request);
/// Nothing: the mark is cleared and the handler may start.
std::optional<Settled> answer(Tables& tables, const Answer& request);
Recovered recover(Tables& tables, const Recover& request);
void heartbeat(Tables& tables, const Heartbeat& request);

/// `once`: begins a job that no queue has. The row exists from its begin, or as a final duplicate.
BeginReply begin_inline(Tables& tables, const Begin& request);

// ---- locks (ops_locks.cpp)
// ---------------------------------------------------------------------------

LockReply acquire_lock(Tables& tables, const LockAcquire& request);
LockReply renew_lock(Tables& tables, const LockRenew& request);
LockReply release_lock(Tables& tables, const LockRelease& request);
/// Ends a lock whoever holds it; raises the fence, so that the holder cannot commit. False: it was
/// free.
bool break_lock(Tables& tables, std::string_view ns, std::string_view name);

// ---- people (ops_admin.cpp)
// --------------------------------------------------------------------------

struct AdminReply {
    enum class Kind : std::uint8_t {
        kDone,
        kRequested,  ///< It runs: its worker has been asked.
        kNotFound,
        kWrongState,  ///< `row.state` says in which it is.
        kSlotTaken,   ///< Its unique slot belongs to `winner` now.
    } kind = Kind::kDone;
    std::optional<JobRow> row;
    std::optional<JobRow> winner;
};
AdminReply cancel_job(Tables& tables, std::string_view id, std::string_view who,
                      std::string_view reason);
/// Runs a job that waits for its time now.
AdminReply retry_now(Tables& tables, std::string_view id, std::string_view who);
/// Makes a dead job live again, with its key, its history and a new set of attempts.
AdminReply retry_dead(Tables& tables, std::string_view id, std::string_view who);
AdminReply drop_dead(Tables& tables, std::string_view id, std::string_view who);

struct Resolution {
    enum class Kind : std::uint8_t { kSucceeded, kRerun, kDead } kind = Kind::kRerun;
    std::string result;
};
/// Answers for a held job. A success answers for its open step where it has one; then the job runs
/// on.
AdminReply resolve_held(Tables& tables, std::string_view id, const Resolution& resolution,
                        std::string_view who);
/// An empty `who` is not recorded.
void pause_queue(Tables& tables, std::string_view ns, std::string_view queue, bool paused,
                 std::string_view who = {});
/// Frees the unique slot of a live job without ending it.
AdminReply free_unique(Tables& tables, std::string_view id, std::string_view who);

struct PruneReply {
    std::size_t records = 0;
    std::size_t history = 0;
};
PruneReply prune(Tables& tables, std::string_view ns, Millis keep_history, std::size_t limit);

// ---- shared pieces (ops_shared.cpp)
// --------------------------------------------------------------------

/// Wakes the first job in line for a lock and reserves the lock for it for a moment.
void wake_for_lock(Tables& tables, std::string_view ns, std::string_view name);
/// Wakes the first job in line for an idempotency key.
void wake_for_key(Tables& tables, const RecordKey& key);
/// Frees the lock row if `run` still holds it, and wakes the next.
void release_lock_of(Tables& tables, const RunRef& run);
void note(Tables& tables, EventKind event, const JobRow& row, std::string_view worker,
          std::string detail);
/// Puts a live row into a final state: frees its slot, writes history, wakes what waited for it.
void end_job(Tables& tables, JobRow& row, JobState state, std::string reason);

}  // namespace sekali::engine
