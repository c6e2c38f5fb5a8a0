#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/model.hpp"
#include "engine/ports.hpp"
#include "sekali/result.hpp"

// The worker of section 4 as a state machine without I/O: events in, actions out. It owns no
// thread, clock, socket or randomness, so a shell with threads and a seeded simulator drive the
// same code.
namespace sekali::engine {

/// A worker's own steady clock. It is compared with itself only. The shell should read a clock that
/// goes on while the host sleeps, so that a suspended worker knows that its leases are over.
struct LocalClock {
    using duration = Millis;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<LocalClock>;
    static constexpr bool is_steady = true;
};
using LocalTime = LocalClock::time_point;

using Tag = std::uint64_t;    ///< Pairs a command with its answer; never used twice.
using RunId = std::uint64_t;  ///< One claim of one job in this worker; never used twice.

/// The token under which a run of a worker holds its lock.
[[nodiscard]] std::string lock_token_of(std::string_view worker, RunId run);

/// How one kind is worked by this worker.
struct KindSetup {
    KindPolicy policy;
    /// Whether `KillRun` ends it for certain: a child process can be killed, a thread cannot.
    bool killable = false;
    OnLockUnavailable on_lock_unavailable = OnLockUnavailable::kWait;
    std::optional<Millis> max_hold;  ///< Longest time that its lock is renewed.
};

struct WorkerConfig {
    std::string worker;  ///< Holds a random nonce of this process.
    std::string ns = "default";
    std::string host;
    std::int64_t pid = 0;
    std::vector<std::string> queues{"default"};
    std::map<std::string, KindSetup> kinds;  ///< Those with a handler here.
    std::size_t concurrency = 1;
    /// Claims kept at hand beyond the free slots, while runs are short; they are given back when no
    /// slot gets free soon.
    std::size_t prefetch = 0;
    Millis lease{std::chrono::seconds{15}};
    Millis idle_poll{std::chrono::seconds{1}};  ///< Longest time between two looks for work.
    Millis grace{std::chrono::seconds{25}};     ///< For what still runs after `StopRequested`.
    bool drain = false;                         ///< Exit when nothing is left to run.
    QueueTraits queue;
    bool locks_in_store = true;  ///< `LockPort::in_store()`: begin takes the lock row by itself.
};

/// Uniform numbers for jitter, in [0, 1). Seeded in simulation.
class Random {
 public:
    virtual ~Random() = default;
    virtual double next() = 0;
};

enum class StopReason : std::uint8_t { kTimeout, kCancel, kLeaseLost, kLockLost, kShutdown };
[[nodiscard]] std::string_view to_string(StopReason reason);

// ---- events
// ------------------------------------------------------------------------------------------

namespace event {

struct Start {};
/// The time of the last `SetTimer` has come. One too many, or one that is late, does no harm.
struct Tick {};
struct QueueAnswered {
    Tag tag = 0;
    Result<QueueReply> reply;
};
struct StoreAnswered {
    Tag tag = 0;
    Result<StoreReply> reply;
};
struct LockAnswered {
    Tag tag = 0;
    Result<LockReply> reply;
};
/// The handler has returned, or its process and all that it started are gone. Sent once for each
/// `StartHandler`, also after `AskStop` and `KillRun`, and after a commit.
struct HandlerEnded {
    RunId run = 0;
    Outcome outcome;
};
/// The handler calls `ctx.commit` and waits for `CompleteCommit`; at most one at a time for each
/// run. `effects` is called until then, from the port's thread, and not after it.
struct CommitRequested {
    RunId run = 0;
    std::function<Result<void>(Transaction&)> effects;
    std::string result;
};
/// `ctx.lock` was granted through the lock port. From here on the lock is renewed like the run's
/// own, its fence is checked by every commit, and it is released when the run is settled.
struct LockTaken {
    RunId run = 0;
    std::string name;
    std::string token;
    std::uint64_t fence = 0;
    Millis ttl{};
    LocalTime asked{};  ///< Before the request was sent.
};
/// The answer to `AskProbe`; once for each, also after `AskStop` and `KillRun`.
struct ProbeEnded {
    RunId run = 0;
    Answer::Kind answer = Answer::Kind::kCannotTell;
    std::string result;
};
/// Something may have become ready.
struct ChangeSeen {};
/// No new claims from now on; what runs goes on without a bound.
struct QuietRequested {};
/// First signal: no new claims; what runs may go on until the grace is over.
struct StopRequested {};
/// Second signal: end at once.
struct StopNow {};

}  // namespace event

using Event = std::variant<event::Start, event::Tick, event::QueueAnswered, event::StoreAnswered,
                           event::LockAnswered, event::HandlerEnded, event::CommitRequested,
                           event::LockTaken, event::ProbeEnded, event::ChangeSeen,
                           event::QuietRequested, event::StopRequested, event::StopNow>;

// ---- actions
// -----------------------------------------------------------------------------------------

namespace action {

// Commands go to the ports, all of one batch together; each is answered once by its tag.
struct SubmitQueue {
    Tag tag = 0;
    QueueCommand command;
};
struct SubmitStore {
    Tag tag = 0;
    StoreCommand command;
};
struct SubmitLock {
    Tag tag = 0;
    LockCommand command;
};
/// The begin is durable: run the handler. `ref` guards every write of its steps.
struct StartHandler {
    RunId run = 0;
    RunRef ref;
    Delivery delivery;
    Started started;
    LocalTime deadline{};  ///< When its timeout stops it.
};
/// Ask the kind's probe what an earlier run did. `StartHandler` follows when the job runs on.
struct AskProbe {
    RunId run = 0;
    RunRef ref;
    Delivery delivery;
    Started started;
    LocalTime deadline{};
};
/// Fire the stop token of the handler or probe, or send SIGTERM to its child's group. Once a run.
struct AskStop {
    RunId run = 0;
    StopReason reason{};
};
/// The grace is over: SIGKILL to the child's group. Sent for killable kinds only.
struct KillRun {
    RunId run = 0;
};
/// The answer to `CommitRequested`. After anything but `kApplied` and `kEffectsFailed` the handler
/// has lost its run: every later call of its context leaves it.
struct CompleteCommit {
    RunId run = 0;
    Settled settled;
};
/// The run is over and its slot is free; everything that a log line or a metric needs.
struct RunClosed {
    RunId run = 0;
    RunRef ref;
    std::uint64_t attempt = 0;          ///< 0: its handler never started.
    Millis duration{};                  ///< Of the handler.
    std::optional<Outcome> outcome;     ///< As sent to the store, if its handler ended.
    std::optional<Settled> settled;     ///< As answered by the store.
    std::optional<BeginReply> refused;  ///< Why no handler started.
    std::optional<StopReason> stopped;
};
/// Send `Tick` at `at`; replaces the earlier one.
struct SetTimer {
    LocalTime at{};
};
/// A handler that cannot be killed is alive after its grace: this process takes no more work, ends
/// like after `StopRequested`, and should be replaced. Its job stays claimed until `Exit` is near,
/// so that no second run starts while it lives.
struct Recycle {
    RunId run = 0;
    RunRef ref;
    std::string reason;  ///< `timed out, still running` and the like.
};
/// The last action. The process should end, also where a thread of a handler is still alive.
struct Exit {
    bool drained = false;       ///< Because nothing is left to run.
    bool recycle = false;       ///< Because of `Recycle`.
    std::size_t unsettled = 0;  ///< Runs whose end is not durable; recovery will find them.
};

}  // namespace action

using Action =
    std::variant<action::SubmitQueue, action::SubmitStore, action::SubmitLock, action::StartHandler,
                 action::AskProbe, action::AskStop, action::KillRun, action::CompleteCommit,
                 action::RunClosed, action::SetTimer, action::Recycle, action::Exit>;

struct WorkerStatus {
    std::size_t claimed = 0;     ///< Not begun yet.
    std::size_t running = 0;     ///< Handlers and probes.
    std::size_t settling = 0;    ///< Ended, but not durable yet.
    std::size_t stuck = 0;       ///< Handlers that outlived their grace.
    bool store_answers = false;  ///< The last answer of the store was no error.
    bool stopping = false;
    LocalTime may_take_over_until{};  ///< What lapsed may be taken over before this time.
};

/// Not thread-safe: one thread calls it, with times that never go back.
class WorkerMachine {
 public:
    /// `random` must outlive the machine.
    WorkerMachine(WorkerConfig config, Random& random);
    ~WorkerMachine();
    WorkerMachine(WorkerMachine&&) noexcept;
    WorkerMachine& operator=(WorkerMachine&&) noexcept;

    /// Never throws on what a port answers. After `Exit` every event is ignored.
    [[nodiscard]] std::vector<Action> on(Event event, LocalTime now);
    /// As above for several events of one moment; what is due then is done once, behind the last.
    [[nodiscard]] std::vector<Action> on(std::vector<Event> events, LocalTime now);
    [[nodiscard]] WorkerStatus status() const;

 private:
    class Core;
    std::unique_ptr<Core> core_;
};

}  // namespace sekali::engine
