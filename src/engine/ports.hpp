#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/model.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

// What the engine asks of a backend, in values: a batch of calls goes in, each is answered once, in
// any order, on a thread of the backend's. Nothing here blocks, and the engine knows nothing below
// it.
namespace sekali {
class Transaction;
}

namespace sekali::engine {

/// How a kind is worked here. What a record must outlive is written with it at begin.
struct KindPolicy {
    RecordMode record = RecordMode::kKept;
    Effects effects = Effects::kOutside;
    OnUnknown on_unknown = OnUnknown::kRerun;
    /// Whether an unknown run can be asked about here: not at all, before the handler starts, or by
    /// the step that is open.
    enum class Probe : std::uint8_t { kNone, kBefore, kInStep } probe = Probe::kNone;
    OnBusy on_busy = OnBusy::kWait;
    RetryPolicy retry;
    Millis timeout{std::chrono::minutes{5}};
    Millis grace{std::chrono::seconds{25}};
    Millis lock_ttl{std::chrono::seconds{30}};
    std::uint64_t max_crashes = 3;
    Millis keep{std::chrono::hours{24 * 30}};  ///< Retention of the record after its end.
    bool whole_answer = false;  ///< The handler has neither steps nor a commit (exec, HTTP).
};

/// One run of one job by one claim. Every write of a runner is guarded by all of it.
struct RunRef {
    std::string job_id;
    RecordKey record;  ///< `record.key` is empty for kinds without a record.
    std::string worker;
    std::uint64_t delivery = 0;
    std::uint64_t epoch = 0;  ///< 0 before begin.
    std::string lock_key;
    std::uint64_t fence = 0;
};

// ---- the answer to a begin
// ---------------------------------------------------------------------------------------

struct Started {
    std::uint64_t epoch = 0;
    std::uint64_t fence = 0;
    std::uint64_t attempt = 0;
    std::vector<StepRow> steps;  ///< What earlier runs recorded.
    bool probe_first = false;    ///< Ask the probe, then send `Answer`; the handler has not begun.
    bool ask_in_step = false;    ///< The open step asks its own probe before it runs again.
    /// A repeated begin finds its lock gone: no handler may start any more. It takes nothing back,
    /// because one may be running if this request is a late copy.
    bool lock_lost = false;
};
struct Parked {
    WaitFor waiting_for = WaitFor::kNothing;
    std::string name;
    std::optional<Millis> delay;  ///< Set where it waits for time only.
};
struct Ended {
    JobState state{};
    std::string reason;
    std::string result;
};
struct HeldBack {};
/// The claim is no longer this worker's.
struct Gone {};
using BeginReply = std::variant<Started, Parked, Ended, HeldBack, Gone>;

struct Delivery {
    JobRow row;  ///< As it was claimed, with payload; `row.deliveries` is the delivery token.
    std::optional<BeginReply> begun{};  ///< Where the claim has begun the run.
};

// ---- queue
// -----------------------------------------------------------------------------------------

/// Credit: give up to `spec.limit` jobs, under a lease.
struct Claim {
    ClaimSpec spec;
    std::string worker;
    Millis lease;
    bool draining = false;  ///< Also answer `drained`.
    /// Kinds whose runs begin in the commit of the claim, if they need no lock and may have
    /// company: one write and one answer less for each. Only for queues that say `begins`.
    std::map<std::string, KindPolicy, std::less<>> begin{};
    bool may_take_over = false;  ///< For these begins.
    /// Asks again after a claim whose answer was lost: claims nothing new, and hands out what this
    /// worker has claimed, save what it knows of.
    bool repeat = false;
    std::vector<std::pair<std::string, std::uint64_t>> known{};  ///< Job id and delivery.
};
struct Claimed {
    std::vector<Delivery> deliveries;
    bool more = false;               ///< More was ready than the limit.
    std::optional<Millis> next_due;  ///< Until the next scheduled job of these queues is due.
    bool drained = false;            ///< Nothing is left that a draining worker waits for.
};

/// Gives a claim back that never began: nothing is counted.
struct Return {
    RunRef run;
    std::optional<Millis> delay;
};
/// For a queue that is not the store: the delivery has been taken care of elsewhere.
struct Acknowledge {
    RunRef run;
};
struct Extend {
    RunRef run;
    Millis lease;
};
struct Done {};

using QueueCommand = std::variant<Claim, Return, Acknowledge, Extend>;
using QueueReply = std::variant<Claimed, Done>;

struct QueueTraits {
    bool joint =
        false;  ///< Lives in the store's database: begin, settle and renew move its rows too.
    bool custody = false;  ///< Can delay, park and find jobs by id.
    bool push = false;     ///< Credit is a prefetch window, not a request.
    bool begins = false;   ///< A claim can begin runs in its own commit.
};

class QueuePort {
 public:
    virtual ~QueuePort() = default;
    [[nodiscard]] virtual QueueTraits traits() const = 0;
    struct Call {
        QueueCommand command;
        std::function<void(Result<QueueReply>)> done;
    };
    virtual void submit(std::vector<Call> calls) = 0;
};

// ---- store
// -----------------------------------------------------------------------------------------

/// Section 4, step 3. Repeatable: the same worker and delivery get the same answer.
struct Begin {
    Envelope job;  ///< Without payload where the queue is joint; whole where `adopt` is set.
    RunRef run;
    KindPolicy policy;
    Millis lease;
    std::uint64_t attempts = 0;  ///< Of the job so far.
    /// The store has answered this worker for one whole lease, so a lapse is the owner's, not the
    /// store's. A death proven on this host needs no wait.
    bool may_take_over = false;
    std::string lock_token;
    /// An outside lock service refused the lock: end the claim as `policy.on_busy` says.
    bool lock_refused = false;
    double random = 0.0;  ///< For the jitter of `on_busy = fail`.
    /// The queue cannot keep a job that waits: the store takes the whole envelope into its custody
    /// with this begin, and the delivery may be acknowledged as soon as it has answered.
    bool adopt = false;
};

/// How a run ended, as its runner saw it.
struct Outcome {
    enum class Kind : std::uint8_t {
        kSuccess,
        kRetry,  ///< Failed by itself; counts an attempt.
        kPermanent,
        kSnooze,
        kCancel,       ///< The handler cancelled its own job.
        kTimeout,      ///< Counts an attempt; what it did is unknown.
        kCrashed,      ///< Its own child process died; it was alone in that.
        kInterrupted,  ///< Handed back, stopped by a lost lock or lease, or by a cancel.
        kHold,         ///< The probe or step could not tell.
    };
    Kind kind = Kind::kSuccess;
    std::string result;
    std::string error;
    std::string reason;
    bool nothing_applied = false;  ///< Said explicitly: exit 75 or `sekali::retry`.
    bool process_gone = true;      ///< Nothing of the run is alive any more.
    std::optional<Millis> delay;   ///< Snooze, or the handler's own retry delay.
};

/// Section 4, step 5, and every other end of a run. Effects, result and final state are one commit.
struct Settle {
    RunRef run;
    Envelope job;
    KindPolicy policy;
    Outcome outcome;
    Millis ran_for{};     ///< How long the handler ran, by the worker's steady clock.
    double random = 0.0;  ///< For the jitter of a retry; drawn here, so that a seed replays.
    /// The handler's own writes; run inside the transaction, perhaps more than once after a
    /// rollback. An error or exception undoes them and the success with them.
    std::function<Result<void>(Transaction&)> effects;
    struct ExtraLock {
        std::string name;
        std::uint64_t fence = 0;
    };
    std::vector<ExtraLock> extra_locks;  ///< Taken by `ctx.lock()`; their fences are checked too.
};
struct Settled {
    enum class Kind : std::uint8_t {
        kApplied,
        kSuperseded,     ///< The key was taken over: this runner writes and requeues nothing.
        kLockFenced,     ///< The lock was begun by another; the record has been released.
        kEffectsFailed,  ///< The effects raised; nothing of it is durable, the run is still open.
    } kind = Kind::kApplied;
    JobState state{};  ///< What became of the job.
    std::optional<Millis> retry_in;
    std::string error;  ///< For `kEffectsFailed`.
};

struct Renew {
    RunRef run;
    Millis lease;
    bool look = false;  ///< Moves no lease: whether the run is still ours, and a cancel asked for.
};
struct Renewed {
    bool kept = false;  ///< False: stop the run now.
    bool lock_kept = true;
    bool cancel = false;  ///< Somebody asked for a cancel.
};

/// A step's intent, before it runs. Refused when the name was used in this run already.
struct StepIntent {
    RunRef run;
    std::string name;
    std::string call;  ///< Unique for each call, the same when the request is repeated.
    bool has_probe = false;
    bool probe_said_no = false;  ///< The open step was asked about: it did not happen.
};
struct StepIntentReply {
    enum class Kind : std::uint8_t {
        kRun,
        kDone,       ///< `result` was recorded by an earlier run.
        kAsk,        ///< An earlier run left it open: ask the step's own probe.
        kHold,       ///< Nobody can tell what the earlier run did: leave with outcome `kHold`.
        kUsedTwice,  ///< The name was used in this run already.
        kSuperseded,
    } kind = Kind::kRun;
    std::string result;
};
struct StepResult {
    RunRef run;
    std::string name;
    std::string result;
};

/// What the probe said about the unknown run.
struct Answer {
    RunRef run;
    Envelope job;
    KindPolicy policy;
    enum class Kind : std::uint8_t { kHappened, kDidNot, kCannotTell } kind = Kind::kCannotTell;
    std::string result;
    bool resolves_job =
        false;  ///< The handler has neither steps nor a commit: the answer ends the job.
};

/// Continuous recovery: lapsed claims of known kinds, stalled lines, due promotions.
struct Recover {
    std::string ns;
    std::string worker;
    std::vector<std::string> kinds;
    std::map<std::string, KindPolicy> policies;
    std::int64_t after_seq = 0;
    bool may_take_over = false;
    std::size_t limit = 200;
    /// Jobs of these kinds belong to their callers (`once`): nobody would ever claim what a dead
    /// one leaves, so it ends.
    std::vector<std::string> unclaimed_kinds;
};
struct Recovered {
    std::size_t jobs = 0;
    std::int64_t next_seq = 0;  ///< 0: the pass reached the end.
};

struct Heartbeat {
    WorkerRow worker;  ///< Its times are the store's to set.
    Millis lease;
    bool leave = false;
};

/// `Done` of a `Heartbeat` and `StepResult`; `Settled` of an `Answer` that ended the job.
using StoreCommand =
    std::variant<Begin, Settle, Renew, StepIntent, StepResult, Answer, Recover, Heartbeat>;
using StoreReply = std::variant<BeginReply, Settled, Renewed, StepIntentReply, Recovered, Done>;

class StorePort {
 public:
    virtual ~StorePort() = default;
    struct Call {
        StoreCommand command;
        std::function<void(Result<StoreReply>)> done;
    };
    virtual void submit(std::vector<Call> calls) = 0;
};

// ---- locks
// -----------------------------------------------------------------------------------------

struct LockAcquire {
    std::string ns, name, owner, token;
    Millis ttl;
    std::uint32_t permits = 0;  ///< 0: a lock; else one permit of a semaphore that has so many.
    /// For a handler's lock as in `Begin`. A lock client has no history with the store: to it a
    /// lock whose time is over is free.
    bool may_take_over = true;
};
struct LockRenew {
    std::string ns, name, token;
    Millis ttl;
    bool permit = false;
};
struct LockRelease {
    std::string ns, name, token;
    bool permit = false;
};
struct LockReply {
    enum class Kind : std::uint8_t { kAcquired, kBusy, kLost, kReleased } kind = Kind::kBusy;
    std::uint64_t fence = 0;
    std::string holder;  ///< For `kBusy`: who has it.
    Millis remaining{};  ///< For `kBusy`: of the holder's lease.
};
using LockCommand = std::variant<LockAcquire, LockRenew, LockRelease>;

class LockPort {
 public:
    virtual ~LockPort() = default;
    struct Call {
        LockCommand command;
        std::function<void(Result<LockReply>)> done;
    };
    virtual void submit(std::vector<Call> calls) = 0;
    /// Whether these locks are the store's own lock rows, so that begin takes them by itself.
    [[nodiscard]] virtual bool in_store() const = 0;
};

}  // namespace sekali::engine
