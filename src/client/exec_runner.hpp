#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/child_env.hpp"
#include "client/inbox.hpp"
#include "client/runner.hpp"
#include "process/exec_outcome.hpp"
#include "process/guard.hpp"

namespace sekali::client {

/// How one kind is run as a child process.
struct ExecKind {
    std::vector<std::string> handler;
    std::vector<std::string> probe;  ///< Empty: it cannot be asked.
};

/// Runs handlers and probes as children of the guard.
class ExecRunner final : public Runner {
 public:
    /// The guard must outlive the runner and be closed before the runner ends. `on_guard_lost` is
    /// called on the guard's thread when this process can start nothing any more.
    ExecRunner(process::Guard& guard, std::map<std::string, ExecKind, std::less<>> kinds,
               StoreAddress store, std::shared_ptr<Inbox> inbox,
               std::function<void()> on_guard_lost);

    void start(engine::action::StartHandler request) override;
    void probe(engine::action::AskProbe request) override;
    void ask_stop(engine::RunId run, engine::StopReason reason) override;
    void kill(engine::RunId run) override;
    void complete_commit(engine::RunId, const engine::Settled&) override {}

    /// What the guard tells; called on its thread.
    void on_guard_event(process::GuardEvent event);

 private:
    enum class Role : std::uint8_t { kHandler, kProbe };
    struct Child {
        engine::RunId run = 0;
        Role role = Role::kHandler;
        process::StopRecord stop;
        std::optional<process::ChildExited> exited;  ///< Set while its group still lives.
    };
    struct Launch {
        engine::RunId run = 0;
        Role role = Role::kHandler;
        std::vector<std::string> argv;
    };

    void launch(Launch what, const engine::RunRef& ref, const engine::Delivery& delivery,
                const engine::Started& started, engine::LocalTime deadline);
    void on_exit(process::ChildExited exited);
    void on_gone(process::ChildId id, bool all_gone);
    void on_spawn_failure(const process::SpawnFailed& failed);
    void lose_all(bool all_gone);
    void finish(const Child& child, process::ChildExited exited, bool all_gone);

    process::Guard& guard_;
    std::map<std::string, ExecKind, std::less<>> kinds_;
    StoreAddress store_;
    std::shared_ptr<Inbox> inbox_;
    std::function<void()> on_guard_lost_;

    std::mutex mutex_;
    std::map<process::ChildId, Child> children_;
};

}  // namespace sekali::client
