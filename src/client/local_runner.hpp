#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/backend.hpp"
#include "client/handler_pool.hpp"
#include "client/inbox.hpp"
#include "client/run.hpp"
#include "client/runner.hpp"
#include "client/wake_line.hpp"

namespace sekali::client {

/// What a kind-level probe is told, and what it says.
using LocalProbe = std::function<std::optional<std::string>(const JobFacts&)>;

/// How one kind is run in this process.
struct LocalKind {
    std::function<Outcome(Context&)> handler;
    LocalProbe probe;  ///< Empty: it cannot be asked.
    engine::Millis lock_ttl{};
};

/// Where the log lines of handlers go.
using RunLog =
    std::function<void(const internal::Run& run, LogSeverity severity, std::string_view message)>;

/// Runs handlers on threads of this process.
class LocalRunner final : public Runner,
                          private internal::RunHost,
                          public std::enable_shared_from_this<LocalRunner> {
 public:
    /// `threads` handlers at most run at the same time. To be owned by a `std::shared_ptr`: a
    /// handler that never ends keeps what it uses alive.
    LocalRunner(std::map<std::string, LocalKind, std::less<>> kinds,
                std::shared_ptr<Backend> backend, std::shared_ptr<Inbox> inbox, std::size_t threads,
                RunLog log);
    ~LocalRunner() override;

    void start(engine::action::StartHandler request) override;
    void started_all() override { pool_.wake(); }
    void probe(engine::action::AskProbe request) override;
    void ask_stop(engine::RunId run, engine::StopReason reason) override;
    void kill(engine::RunId) override {}
    void may_take_over_until(engine::LocalTime time) override { take_over_until_ = time; }
    void complete_commit(engine::RunId run, const engine::Settled& settled) override;

    /// Tells commits that nobody answers any more that they are lost, then waits for the handlers;
    /// false when one is still there after `patience`.
    bool close(std::chrono::milliseconds patience);

 private:
    class Entry;
    class CommitGate;

    engine::Settled commit(engine::RunId run, Effects effects, std::string result) override;
    Result<engine::StoreReply> ask_store(engine::StoreCommand command) override;
    Result<engine::LockReply> ask_lock(engine::LockCommand command) override;
    [[nodiscard]] bool may_take_over() const override {
        return local_now() < take_over_until_.load();
    }
    void lock_taken(engine::event::LockTaken taken) override;
    void pause(engine::Millis time, const std::stop_token& stop) override;
    [[nodiscard]] engine::LocalTime now() const override { return local_now(); }
    bool reach(std::size_t fault_index) override;
    void log(const internal::Run& run, LogSeverity severity, std::string_view message) override;
    std::shared_ptr<Entry> find(engine::RunId run);
    void settle(const std::shared_ptr<CommitGate>& commit, const engine::Settled& settled);

    const std::map<std::string, LocalKind, std::less<>> kinds_;
    std::shared_ptr<Backend> backend_;
    std::shared_ptr<Inbox> inbox_;
    RunLog log_;
    std::atomic<engine::LocalTime> take_over_until_{};

    std::mutex mutex_;
    std::map<engine::RunId, std::shared_ptr<Entry>> entries_;
    WakeLine committed_;
    HandlerPool pool_;
};

}  // namespace sekali::client
