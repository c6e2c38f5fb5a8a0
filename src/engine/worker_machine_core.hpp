#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/lease_keeper.hpp"
#include "engine/worker_machine.hpp"

// The inside of the worker's state machine. Its bodies are in worker_machine*.cpp, a file a
// concern.
namespace sekali::engine {

class WorkerMachine::Core {
 public:
    Core(WorkerConfig config, Random& random);
    std::vector<Action> on(std::vector<Event> events, LocalTime now);
    [[nodiscard]] WorkerStatus status() const;

 private:
    enum class Stage : std::uint8_t {
        kWaiting,    ///< Claimed; waits for its turn.
        kLocking,    ///< Asks the outside lock service.
        kBeginning,  ///< Asks the store; a lost reply means asking again, whatever else happens.
        kProbing,    ///< Its probe runs.
        kAnswering,  ///< Tells the store what the probe said.
        kRunning,    ///< Its handler runs, perhaps inside a commit.
        kStuck,     ///< Its handler outlived the grace; the leases are kept until the exit is near.
        kSettling,  ///< Tells the store how it ended, until the store has answered.
        kLingering,  ///< Committed; its handler has not returned yet.
        kCount_,
    };

    /// The one command of a run that its next stage waits for.
    struct Request {
        Tag tag = 0;                        ///< In flight; 0: none.
        std::optional<LocalTime> retry_at;  ///< It failed and is sent again then.
        std::uint32_t failures = 0;
        std::optional<LocalTime> first_sent;
    };

    struct HeldLock {
        std::string name;
        std::string token;
        std::uint64_t fence = 0;
        Lease lease;
        bool granted = false;  ///< False: asked for, so that it has to be released all the same.
        bool extra = false;    ///< Taken by the handler, not by the claim.
    };

    struct Run {
        RunId id = 0;
        Stage stage = Stage::kWaiting;
        const KindSetup* setup = nullptr;
        JobRow row;           ///< Without its payload.
        std::string payload;  ///< Until the handler has it.
        RunRef ref;
        LocalTime claimed_at{};
        Request request;
        std::string lock_token;
        bool lock_refused = false;
        bool lock_out_of_reach = false;
        bool maybe_begun = false;  ///< A begin may have been applied unheard.
        std::optional<Lease>
            record_lease;  ///< Renewed by the store; with a joint queue the claim too.
        std::optional<Lease> delivery_lease;  ///< Renewed by a queue that is not the store.
        std::vector<HeldLock> locks;          ///< Of the lock port.
        bool leases_over = false;             ///< One was lost: none is renewed any more.
        std::optional<StopReason> lost;       ///< Before there was anything to stop.
        std::optional<Started> started;
        LocalTime begun_at{};
        LocalTime handler_at{};             ///< When its handler or probe was started.
        std::optional<LocalTime> deadline;  ///< Its timeout.
        std::optional<LocalTime> hold_until;
        std::optional<LocalTime> look_at;
        std::optional<StopReason> stop;
        std::optional<LocalTime> kill_at;
        bool killed = false;
        bool alive = false;       ///< Its handler or probe has not ended.
        bool handled = false;     ///< Its handler has been started.
        bool committing = false;  ///< Its handler waits for `CompleteCommit`.
        std::optional<Settle> settle;
        std::optional<Answer> answer;
        std::optional<Outcome> outcome;
        std::optional<Settled> settled;
        std::optional<BeginReply> refused;
        std::optional<LocalTime> wake;  ///< As it stands among the wakes of all.
    };

    /// What is left to tell the queue and the lock service when a run is over, one after the other.
    /// Failing at it changes no outcome, so it ends after one lease.
    struct Errand {
        std::vector<std::variant<QueueCommand, LockCommand>> steps;
        std::size_t next = 0;
        Request request;
        LocalTime give_up_at{};
    };

    struct Waiter {
        enum class Purpose : std::uint8_t {
            kClaim,
            kRun,
            kRenew,
            kLook,
            kExtend,
            kRenewLock,
            kErrand,
            kHeartbeat,
            kLeave,
            kRecover,
        } purpose{};
        std::uint64_t subject = 0;    ///< Run or errand; for a claim its credit.
        std::uint64_t epoch = 0;      ///< Of the run when it was sent.
        std::string lock_token = {};  ///< For `kRenewLock`.
        LocalTime sent{};
    };
    using Purpose = Waiter::Purpose;

    // worker_machine.cpp: events, time, sending
    void handle(event::Start&);
    void handle(event::Tick&) {}  // whatever is due is done after every event
    void handle(event::QueueAnswered& answered);
    void handle(event::StoreAnswered& answered);
    void handle(event::LockAnswered& answered);
    void handle(event::HandlerEnded& ended);
    void handle(event::CommitRequested& request);
    void handle(event::LockTaken& taken);
    void handle(event::ProbeEnded& ended);
    void handle(event::QuietRequested&);
    void handle(event::ChangeSeen&) { something_ready(); }
    void handle(event::StopRequested&);
    void handle(event::StopNow&);
    void advance();
    void advance_runs();
    void set_timer();
    [[nodiscard]] std::optional<LocalTime> first_wake();
    void wake_at(Run& run, std::optional<LocalTime> at);
    std::optional<Waiter> take(Tag tag);
    template <typename T>
    void note_answer(const Waiter& waiter, const Result<T>& reply);
    Tag expect(Waiter waiter);
    Tag send(QueueCommand&& command, Waiter waiter);
    Tag send(StoreCommand&& command, Waiter waiter);
    Tag send(LockCommand&& command, Waiter waiter);
    void sent(Run& run, Tag tag);
    void retry_later(Request& request);
    [[nodiscard]] Millis backoff(std::uint32_t failures);
    Run* find(RunId id);
    void enter(Run& run, Stage stage);
    [[nodiscard]] std::size_t& staged(Stage stage) {
        return staged_.at(static_cast<std::size_t>(stage));
    }
    [[nodiscard]] std::size_t staged(Stage stage) const {
        return staged_.at(static_cast<std::size_t>(stage));
    }
    template <typename T>
    void act(T action) {
        actions_.emplace_back(std::move(action));
    }
    [[nodiscard]] bool joint() const { return config_.queue.joint; }

    // worker_machine_claims.cpp: credit, turns, suspects
    void something_ready();
    void claim();
    void claim_answered(const Waiter& waiter, const Result<QueueReply>& reply);
    void take_delivery(const Delivery& delivery, LocalTime asked);
    void claim_has_begun(Run& run, const BeginReply& reply, LocalTime asked);
    [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> known_claims() const;
    void take_turns();
    void take_turns_alone(const Run* suspect);
    void give_back(Run& run, std::optional<Millis> delay);
    void give_back_idle();
    [[nodiscard]] LocalTime idle_claim_at(const Run& run) const;
    void note_run_time(Millis time);
    [[nodiscard]] std::size_t credit() const;
    [[nodiscard]] std::size_t active() const;
    [[nodiscard]] bool may_claim() const;
    [[nodiscard]] const Run* waiting_suspect() const;

    // worker_machine_begin.cpp: lock, begin, probe
    void take_up(Run& run);
    void send_lock(Run& run);
    void lock_answered(Run& run, const LockReply& reply);
    void lock_failed(Run& run);
    void send_begin(Run& run);
    void begin_failed(Run& run, const Error& error);
    void begin_answered(Run& run, BeginReply reply);
    void begun(Run& run, Started started);
    void refused(Run& run, BeginReply reply);
    void start_handler(Run& run);
    void ask_probe(Run& run);
    void send_answer(Run& run);
    void answer_answered(Run& run, const StoreReply& reply);
    void hand_back(Run& run, StopReason reason);

    // worker_machine_runs.cpp: stop, commit, settle, close
    void ask_stop(Run& run, StopReason reason);
    bool stuck(Run& run);
    void settle(Run& run, Outcome outcome);
    void send_settle(Run& run);
    void settle_answered(Run& run, const Settled& settled);
    void commit_answered(Run& run, const Settled& settled);
    void settle_stuck();
    void tell_outside(Run& run);
    void close(Run& run);
    bool advance_limits(Run& run);
    void resend(Run& run);
    void store_answered_run(Run& run, Result<StoreReply> reply);
    [[nodiscard]] Settle make_settle(const Run& run, Outcome outcome);
    [[nodiscard]] Outcome outcome_after_stop(const Run& run, Outcome outcome) const;

    // worker_machine_leases.cpp: renewals and their deadlines
    void advance_leases(Run& run);
    void renew_due(Run& run);
    void renew_answered(const Waiter& waiter, const Result<StoreReply>& reply);
    void extend_answered(const Waiter& waiter, const Result<QueueReply>& reply);
    void lock_renew_answered(const Waiter& waiter, const Result<LockReply>& reply);
    void lose(Run& run, StopReason reason);
    [[nodiscard]] bool keeps_leases(const Run& run) const;
    [[nodiscard]] std::optional<LocalTime> next_wake(const Run& run) const;

    // worker_machine_upkeep.cpp: errands, heartbeat, recovery, the way out
    void add_errand(Errand errand);
    void add_lock_releases(const Run& run, Errand& errand);
    void send_errand(std::uint64_t id, Errand& errand);
    void advance_errands();
    void errand_answered(const Waiter& waiter, bool ok);
    void heartbeat(bool leave);
    void recover();
    void recover_answered(const Result<StoreReply>& reply);
    void begin_stop(Millis grace);
    void give_back_unstarted();
    void begin_stop(LocalTime stop_at, LocalTime kill_at, LocalTime exit_by);
    void advance_stop();
    void advance_exit();
    void exit();

    static constexpr Millis kBetweenLooks{1000};  // for a cancel, while a handler runs
    static constexpr Millis kExitPatience{2000};  // for the last answers, once nothing runs

    WorkerConfig config_;
    Random& random_;
    LocalTime now_{};
    std::vector<Action> actions_;
    std::optional<LocalTime> timer_;
    std::set<std::pair<LocalTime, RunId>> wakes_;  ///< Of the runs that ask for one.
    std::vector<RunId> touched_;                   ///< Their wakes may have changed.
    Tag last_tag_ = 0;
    std::uint64_t last_id_ = 0;
    std::map<Tag, Waiter> waiters_;
    std::map<RunId, Run> runs_;
    /// How many runs each stage has: events are many, and so may the runs be.
    std::array<std::size_t, static_cast<std::size_t>(Stage::kCount_)> staged_{};
    std::map<std::uint64_t, Errand> errands_;
    StoreTrust trust_;
    bool started_ = false;
    bool exited_ = false;

    std::size_t claims_in_flight_ = 0;
    std::size_t credit_in_flight_ = 0;
    bool change_while_claiming_ = false;
    LocalTime claim_at_{};          ///< When to look for work again.
    LocalTime claim_not_before_{};  ///< After a failure or an empty look.
    std::uint32_t claim_failures_ = 0;
    /// A claim that has begun runs may have been applied without an answer. Such runs must not look
    /// as if they had vanished, so it is repeated until it is answered.
    bool claim_is_lost_ = false;
    RunId solo_ = 0;   ///< The suspect that runs alone; 0: none.
    Millis run_time_;  ///< Smoothed, from begin to durable end.

    LocalTime heartbeat_at_{};
    LocalTime recover_at_{};
    bool heartbeat_in_flight_ = false;
    bool recover_in_flight_ = false;
    std::int64_t recover_after_ = 0;

    bool stopping_ = false;
    bool quiet_ = false;
    bool drained_ = false;
    bool recycle_ = false;
    LocalTime stop_at_{}, kill_at_{}, exit_by_{};  ///< While stopping.
    bool stop_asked_ = false;
    std::optional<LocalTime> leave_by_;
    bool left_ = false;
};

}  // namespace sekali::engine
