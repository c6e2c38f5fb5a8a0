#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sekali/policy.hpp"
#include "sekali/retry.hpp"

// The rows that the protocol reads and writes, as plain values. A backend stores them; it adds no
// meaning.
namespace sekali::engine {

using Millis = std::chrono::milliseconds;

/// The store's own clock: milliseconds near the Unix epoch that no wall clock step moves. Only the
/// store reads it; workers measure durations on their steady clock and never compare the two.
struct StoreClock {
    using duration = Millis;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<StoreClock>;
    static constexpr bool is_steady = true;
};
using StoreTime = StoreClock::time_point;

enum class JobState : std::uint8_t {
    kScheduled,  ///< Delayed, or waiting for a retry.
    kReady,
    kWaiting,  ///< Parked behind a lock key or an idempotency key.
    kRunning,  ///< Claimed by a worker.
    kHeld,     ///< Waits for an answer from a probe, a person or the reconciler.
    kSucceeded,
    kDuplicate,
    kDead,
    kCancelled,
};
[[nodiscard]] constexpr bool is_final(JobState state) {
    return state >= JobState::kSucceeded;
}
/// Whether a final job's payload stays, for its replay.
[[nodiscard]] constexpr bool keeps_payload(JobState final_state) {
    return final_state == JobState::kDead || final_state == JobState::kCancelled;
}
[[nodiscard]] std::string_view to_string(JobState state);
[[nodiscard]] std::optional<JobState> parse_job_state(std::string_view text);

/// What a waiting job is parked behind. Pause and a missing handler are seen when a job is shown;
/// they are no stored state, because the queue and the workers decide them, not the job.
enum class WaitFor : std::uint8_t { kNothing, kLock, kKey };

using sekali::Effects;
using sekali::OnBusy;
using sekali::OnDuplicate;
using sekali::OnLockUnavailable;
using sekali::OnUnknown;
using sekali::UniqueUntil;
using RecordMode = sekali::Record;
[[nodiscard]] std::optional<Effects> parse_effects(std::string_view text);
[[nodiscard]] std::optional<OnUnknown> parse_on_unknown(std::string_view text);
[[nodiscard]] std::optional<OnBusy> parse_on_busy(std::string_view text);
[[nodiscard]] std::optional<OnLockUnavailable> parse_on_lock_unavailable(std::string_view text);

/// A job as it was enqueued; frozen from then on.
struct Envelope {
    std::string id;  ///< UUIDv7.
    std::string ns = "default";
    std::string kind;
    std::string queue = "default";
    std::string payload;     ///< Opaque JSON bytes. Empty where a row is read without it.
    std::string key;         ///< Idempotency key; the job id when none was given.
    std::string lock_key;    ///< Empty: none.
    std::string unique_key;  ///< Empty: none.
    UniqueUntil unique_until = UniqueUntil::kEnd;
    std::int32_t priority = 0;  ///< 0..9, larger first.
    RetryOverrides retry;       ///< What the call or the type froze; the rest is the kind's.
    std::string fingerprint;    ///< 64 hex digits; empty for rule `none`.
    std::string fingerprint_rule;
    /// The record's end counter as read at enqueue: a dead or cancelled record with this very count
    /// is the end that the producer knew, so the job is a fresh start.
    std::uint64_t named_end = 0;
};

struct JobRow {
    std::int64_t seq = 0;  ///< Order of arrival, given by the store.
    Envelope job;
    JobState state = JobState::kReady;
    WaitFor waiting_for = WaitFor::kNothing;
    std::string waiting_name;  ///< The lock name or idempotency key it waits for.
    StoreTime enqueued_at{};
    StoreTime run_at{};
    std::optional<StoreTime> finished_at;
    std::uint64_t attempts = 0;
    std::uint64_t crashes = 0;
    std::uint64_t interruptions = 0;
    std::uint64_t deliveries =
        0;  ///< Claims so far; the present one's number is its delivery token.
    std::uint64_t lost_claims = 0;  ///< Claims that died before begin.
    std::string owner;              ///< Worker of the present claim.
    StoreTime lease_until{};
    bool begun = false;      ///< The present claim's handler may have started.
    bool suspect = false;    ///< Was in company when a process died: runs alone next time.
    bool slot_held = false;  ///< Holds the slot of its unique key.
    bool cancel_requested = false;
    std::string requested_by;  ///< Who asked for the cancel.
    std::uint64_t epoch = 0;   ///< Of its last begin.
    std::string result;
    std::string error;
    std::string reason;
};

enum class RecordState : std::uint8_t {
    kProcessing,
    kSucceeded,
    kRetryable,
    kHeld,
    kDead,
    kCancelled,
};
[[nodiscard]] std::string_view to_string(RecordState state);
[[nodiscard]] std::optional<RecordState> parse_record_state(std::string_view text);

struct RecordKey {
    std::string ns;
    std::string kind;
    std::string key;
    auto operator<=>(const RecordKey&) const = default;
};

/// The idempotency record: the source of truth about one (namespace, kind, key).
struct RecordRow {
    RecordKey id;
    RecordState state = RecordState::kProcessing;
    std::string job_id;  ///< Job of the last begin, or of the success.
    std::uint64_t epoch = 0;
    std::string owner;  ///< Worker whose run may still write; changing it shuts that run out.
    std::uint64_t delivery = 0;
    StoreTime lease_until{};
    std::string fingerprint;
    std::string fingerprint_rule;
    StoreTime not_before{};
    Effects effects = Effects::kOutside;
    OnUnknown on_unknown = OnUnknown::kRerun;
    bool marked = false;        ///< An earlier run's outcome is unknown and unanswered.
    std::string mark_cause;     ///< Why, in words, e.g. `worker_crash`.
    bool probing = false;       ///< The present owner asks the probe; its handler has not begun.
    bool death_proven = false;  ///< The process of the unknown run is known to be gone.
    StoreTime probe_after{};    ///< Earliest probe where the death is not proven.
    std::uint64_t ends = 0;     ///< Times the record became dead or cancelled.
    std::string lock_key;       ///< Lock key of the present run; empty: none.
    std::uint64_t fence = 0;
    std::uint64_t attempt = 0;
    StoreTime started_at{};
    std::optional<StoreTime> finished_at;
    std::string result;
    Millis keep{};              ///< Retention of this record after its end.
    bool whole_answer = false;  ///< Its handler has neither steps nor a commit of its own, so that
                                ///< an answer about it may end the job.
};

/// The store's row of a lock key. Its fence outlives every holder.
struct LockRow {
    std::string ns;
    std::string name;
    std::string owner;  ///< Worker or lock client; empty: free.
    std::string token;  ///< Unique for each grant.
    std::string job_id;
    std::uint64_t fence = 0;
    StoreTime lease_until{};
    std::string reserved_for;  ///< The woken first in line; others yield to it for a moment.
    StoreTime reserved_until{};
};

struct StepRow {
    RecordKey record;
    std::string name;
    std::uint64_t epoch = 0;  ///< Of the run that used it last.
    std::string call;         ///< The call that used it last, so that a repeated request is known.
    std::int32_t order = 0;
    bool done = false;  ///< False: the intent is recorded, the answer is not.
    std::string result;
};

struct AttemptRow {
    std::string ns, job_id, kind, key;
    std::uint64_t attempt = 0;
    std::uint64_t epoch = 0;
    std::string worker;
    StoreTime started_at{};
    std::optional<StoreTime> finished_at;
    std::string outcome;
    std::string error;
};

enum class EventKind : std::uint8_t {
    kDuplicate,
    kSuperseded,
    kTakeover,
    kLockLost,
    kLeaseLost,
    kLockUnavailable,
    kLockFenced,
    kWorkerCrash,
    kTimeout,
    kInterrupted,
    kHeld,
    kResolved,
    kReplay,
    kKeyReused,
    kUniqueRefused,
    kReplaced,
    kCancelled,
    kLateResult,
    kAckLost,
};
[[nodiscard]] std::string_view to_string(EventKind kind);
[[nodiscard]] std::optional<EventKind> parse_event_kind(std::string_view text);

struct EventRow {
    std::string ns;
    StoreTime at{};
    EventKind event{};
    std::string job_id, kind, key;
    std::uint64_t epoch = 0;
    std::string worker;
    std::string detail;
};

struct WorkerRow {
    std::string id;  ///< A nonce of its process; host and pid identify nobody.
    std::string ns;
    std::string host;
    std::int64_t pid = 0;
    std::vector<std::string> queues;
    std::vector<std::string> kinds;
    std::uint32_t concurrency = 0;
    StoreTime started_at{};
    StoreTime lease_until{};
    bool stopping = false;
    std::uint64_t death_company =
        0;  ///< Begun runs it had when its death was first seen; 0: lives.
};

struct QueueRow {
    std::string ns;
    std::string name;
    bool paused = false;
};

}  // namespace sekali::engine
