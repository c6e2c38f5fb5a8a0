#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/inbox.hpp"
#include "client/runner.hpp"
#include "engine/ports.hpp"
#include "engine/tables.hpp"
#include "engine/worker_machine.hpp"

namespace sekali::client {

/// The three ports of one worker; they must outlive its shell.
struct Ports {
    engine::QueuePort& queue;
    engine::StorePort& store;
    engine::LockPort& locks;
    engine::Executor& changes;  ///< Tells when something may have become ready.
};

/// Told what happens, on the pump's thread; must not block for long.
class ShellObserver {
 public:
    virtual ~ShellObserver() = default;
    virtual void handler_started(const engine::action::StartHandler& start) = 0;
    virtual void stop_asked(engine::RunId run, engine::StopReason reason) = 0;
    virtual void run_closed(const engine::action::RunClosed& closed) = 0;
    virtual void recycling(const engine::action::Recycle& recycle) = 0;
    /// The store was lost, or answers again.
    virtual void store_answers(bool answers) = 0;
};

/// Drives one worker machine with real threads: one pump owns the machine, its inbox gets what
/// ports, runners, the change watcher and signals have to say, its actions go back to them.
class WorkerShell {
 public:
    /// `runners` has one runner for each kind of the configuration; everything given must outlive
    /// the shell. `inbox` is where the runners send their events.
    WorkerShell(engine::WorkerConfig config, Ports ports,
                std::map<std::string, Runner*, std::less<>> runners, ShellObserver& observer,
                std::shared_ptr<Inbox> inbox);
    ~WorkerShell();
    WorkerShell(const WorkerShell&) = delete;
    WorkerShell& operator=(const WorkerShell&) = delete;

    /// Works until the machine exits; once. Blocks.
    [[nodiscard]] engine::action::Exit run();

    /// No new claims, what runs may finish; a second call changes nothing. Thread-safe.
    void stop();
    /// Ends at once. Thread-safe.
    void stop_now();
    /// Claims nothing more; what runs goes on. Thread-safe.
    void quiet();

 private:
    struct Performer;

    void handle(std::vector<engine::Event> events, engine::LocalTime now);
    void perform(std::vector<engine::Action> actions);
    void submit_gathered();
    void watch_changes(const std::stop_token& stop);
    void update_idle();
    [[nodiscard]] Runner& runner_for(engine::RunId run, const engine::Delivery& delivery);
    [[nodiscard]] Runner* runner_of(engine::RunId run) const;

    const bool joint_queue_;
    const bool locks_in_store_;
    Ports ports_;
    std::map<std::string, Runner*, std::less<>> runners_;
    ShellObserver& observer_;
    std::shared_ptr<Inbox> inbox_;
    std::unique_ptr<engine::Random> random_;
    const std::size_t concurrency_;
    engine::WorkerMachine machine_;
    std::size_t under_way_ = 0;  ///< Runs between claim and durable end.

    std::map<engine::RunId, Runner*> running_;
    std::vector<engine::QueuePort::Call> queue_calls_;
    std::vector<engine::StorePort::Call> store_calls_;
    std::vector<engine::LockPort::Call> lock_calls_;
    std::optional<engine::LocalTime> timer_;
    std::optional<engine::action::Exit> exit_;
    std::optional<bool> store_answers_;

    std::mutex idle_mutex_;
    std::condition_variable_any idle_changed_;
    bool idle_ = false;
};

}  // namespace sekali::client
