#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/worker_machine.hpp"

namespace sekali::engine {

template <typename T, typename Variant>
inline constexpr bool kIsOneOf = false;
template <typename T, typename... Options>
inline constexpr bool kIsOneOf<T, std::variant<Options...>> = (std::is_same_v<T, Options> || ...);

class HalfRandom final : public Random {
 public:
    double next() override { return 0.5; }
};

inline WorkerConfig small_config(std::size_t concurrency = 2) {
    WorkerConfig config;
    config.worker = "w1";
    config.concurrency = concurrency;
    config.queue.joint = config.queue.custody = true;
    config.kinds["mail"] = {};
    KindSetup killable;
    killable.killable = true;
    config.kinds["exec"] = killable;
    return config;
}

inline JobRow ready_job(std::string id, std::string kind = "mail") {
    JobRow row;
    row.job.id = id;
    row.job.key = std::move(id);
    row.job.kind = std::move(kind);
    row.job.payload = "{}";
    row.state = JobState::kRunning;
    row.deliveries = 1;
    return row;
}

inline Error lost_reply() {
    return {.code = ErrorCode::kUnreachable, .applied = Applied::kMaybe, .retryable = true};
}
inline Error store_down() {
    return {.code = ErrorCode::kUnreachable, .applied = Applied::kNo, .retryable = true};
}

inline Outcome outcome_of(Outcome::Kind kind) {
    Outcome outcome;
    outcome.kind = kind;
    return outcome;
}

inline Settled settled_as(JobState state) {
    Settled settled;
    settled.state = state;
    return settled;
}

/// A worker's machine on a table: the test is its ports, its handlers and its clock. Heartbeats and
/// recovery are answered at once while `upkeep` is well; everything else waits for the test.
class MachineRig {
 public:
    explicit MachineRig(WorkerConfig config = small_config())
        : config_(config), machine_(std::move(config), random_) {}

    void fire(Event event) {
        for (Action& action : machine_.on(std::move(event), now))
            accept(std::move(action));
        while (!upkeep_.empty()) {
            const Tag tag = upkeep_.front();
            upkeep_.pop_front();
            const StoreReply reply =
                recoveries_[tag] ? StoreReply{Recovered{}} : StoreReply{Done{}};
            for (Action& action : machine_.on(store_answer(tag, reply), now))
                accept(std::move(action));
        }
    }

    /// Lets time pass, with every tick that the machine asked for on the way.
    void advance(Millis by) {
        const LocalTime end = now + by;
        int ticks = 0;
        while (timer && *timer <= end && !exited()) {
            ASSERT_LT(++ticks, 5000) << "the machine spins";
            now = std::max(now, *timer);
            timer.reset();
            fire(event::Tick{});
        }
        now = end;
    }

    template <typename T>
    std::vector<T> all() const {
        std::vector<T> found;
        for (const Action& action : log) {
            if (const auto* wanted = std::get_if<T>(&action)) found.push_back(*wanted);
        }
        return found;
    }
    template <typename T>
    std::size_t count() const {
        return all<T>().size();
    }
    template <typename T>
    T only() const {
        const auto found = all<T>();
        EXPECT_EQ(found.size(), 1U);
        return found.empty() ? T{} : found.front();
    }

    /// The oldest unanswered command of that type, taken out; its tag is 0 when there is none.
    template <typename T>
    std::pair<Tag, T> next() {
        for (auto entry = open.begin(); entry != open.end(); ++entry) {
            if (const T* command = find_command<T>(*entry)) {
                std::pair<Tag, T> result{tag_of(*entry), *command};
                open.erase(entry);
                return result;
            }
        }
        return {};
    }
    template <typename T>
    std::size_t waiting() const {
        return static_cast<std::size_t>(
            std::count_if(open.begin(), open.end(),
                          [](const Action& action) { return find_command<T>(action) != nullptr; }));
    }

    void reply_store(Tag tag, Result<StoreReply> reply) {
        ASSERT_NE(tag, 0U) << "no such command was sent";
        fire(store_answer(tag, std::move(reply)));
    }
    void reply_queue(Tag tag, Result<QueueReply> reply) {
        ASSERT_NE(tag, 0U) << "no such command was sent";
        fire(event::QueueAnswered{tag, std::move(reply)});
    }
    void reply_lock(Tag tag, Result<LockReply> reply) {
        ASSERT_NE(tag, 0U) << "no such command was sent";
        fire(event::LockAnswered{tag, std::move(reply)});
    }

    /// Answers the claim that is open.
    void deliver(const std::vector<JobRow>& rows, bool more = false) {
        Claimed claimed;
        for (const JobRow& row : rows)
            claimed.deliveries.push_back({row});
        claimed.more = more;
        reply_queue(next<Claim>().first, QueueReply{claimed});
    }
    void begin_next(std::uint64_t epoch = 1) {
        Started started;
        started.epoch = epoch;
        started.attempt = 1;
        reply_store(next<Begin>().first, StoreReply{BeginReply{started}});
    }
    /// Start, claim and begin of one job; its run.
    RunId run_one(const JobRow& row) {
        if (count<action::SubmitQueue>() == 0) fire(event::Start{});
        deliver({row});
        begin_next();
        const auto starts = all<action::StartHandler>();
        EXPECT_FALSE(starts.empty());
        return starts.empty() ? 0 : starts.back().run;
    }
    void end(RunId run, Outcome::Kind kind) { fire(event::HandlerEnded{run, outcome_of(kind)}); }
    void settle_next(const Settled& settled) {
        reply_store(next<Settle>().first, StoreReply{settled});
    }
    void renew_next(bool kept, bool lock_kept = true, bool cancel = false) {
        reply_store(next<Renew>().first, StoreReply{Renewed{kept, lock_kept, cancel}});
    }
    /// Time in which every renewal is granted.
    void advance_renewing(Millis by) {
        const LocalTime end = now + by;
        while (now < end) {
            advance(std::min(Millis{100}, end - now));
            while (waiting<Renew>() > 0)
                renew_next(true);
        }
    }
    [[nodiscard]] bool exited() const { return count<action::Exit>() > 0; }
    [[nodiscard]] WorkerStatus status() const { return machine_.status(); }

    LocalTime now{std::chrono::hours{1}};
    std::optional<LocalTime> timer;
    std::vector<Action> log;
    std::deque<Action> open;  ///< Commands that nobody has answered.
    bool upkeep_works = true;

 private:
    static event::StoreAnswered store_answer(Tag tag, Result<StoreReply> reply) {
        return {tag, std::move(reply)};
    }
    template <typename T>
    static const T* find_command(const Action& action) {
        if constexpr (kIsOneOf<T, QueueCommand>) {
            const auto* submit = std::get_if<action::SubmitQueue>(&action);
            return submit == nullptr ? nullptr : std::get_if<T>(&submit->command);
        } else if constexpr (kIsOneOf<T, LockCommand>) {
            const auto* submit = std::get_if<action::SubmitLock>(&action);
            return submit == nullptr ? nullptr : std::get_if<T>(&submit->command);
        } else {
            const auto* submit = std::get_if<action::SubmitStore>(&action);
            return submit == nullptr ? nullptr : std::get_if<T>(&submit->command);
        }
    }
    static Tag tag_of(const Action& action) {
        if (const auto* submit = std::get_if<action::SubmitQueue>(&action)) return submit->tag;
        if (const auto* submit = std::get_if<action::SubmitLock>(&action)) return submit->tag;
        return std::get<action::SubmitStore>(action).tag;
    }

    void accept(Action action) {
        if (const auto* set = std::get_if<action::SetTimer>(&action)) timer = set->at;
        const auto* store = std::get_if<action::SubmitStore>(&action);
        const bool is_upkeep =
            store != nullptr && (std::holds_alternative<Heartbeat>(store->command) ||
                                 std::holds_alternative<Recover>(store->command));
        if (is_upkeep && upkeep_works) {
            recoveries_[store->tag] = std::holds_alternative<Recover>(store->command);
            upkeep_.push_back(store->tag);
        } else if (store != nullptr || std::holds_alternative<action::SubmitQueue>(action) ||
                   std::holds_alternative<action::SubmitLock>(action)) {
            open.push_back(action);
        }
        log.push_back(std::move(action));
    }

    HalfRandom random_;
    WorkerConfig config_;
    std::map<Tag, bool> recoveries_;
    std::deque<Tag> upkeep_;
    WorkerMachine machine_;
};

}  // namespace sekali::engine
