#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/backend.hpp"
#include "client/exec_runner.hpp"
#include "client/local_runner.hpp"
#include "client/shell_log.hpp"
#include "client/worker_plan.hpp"
#include "client/worker_shell.hpp"
#include "observe/log.hpp"
#include "process/guard.hpp"

namespace sekali::client {

/// Everything that one worker is made of.
struct RuntimeParts {
    std::string worker;  ///< Its identity: a nonce of this process.
    WorkerOptions options;
    HandlerOptions overrides;  ///< What flags and settings say of every kind.
    std::map<std::string, KindSettings, std::less<>> settings;
    std::map<std::string, LocalHandler, std::less<>> handlers;
    std::vector<Middleware> middleware;
    std::shared_ptr<Backend> backend;
    process::Guard* guard = nullptr;  ///< Needed for commands; outlives the runtime.
    MakeHttpRunner make_http;         ///< Needed for HTTP handlers.
    std::shared_ptr<const observe::LogWriter> log;
};

struct RuntimeExit {
    engine::action::Exit exit;
    bool stuck = false;       ///< A handler's thread is still there.
    bool guard_lost = false;  ///< This process can start no child any more.
};

/// One worker: its machine, its shell and its runners.
class WorkerRuntime {
    struct Passkey {};

 public:
    /// Errors: `kUsage` for options out of range and a kind without or with two handlers.
    [[nodiscard]] static Result<std::unique_ptr<WorkerRuntime>> create(RuntimeParts parts);
    WorkerRuntime(Passkey, RuntimeParts parts);
    ~WorkerRuntime();
    WorkerRuntime(const WorkerRuntime&) = delete;
    WorkerRuntime& operator=(const WorkerRuntime&) = delete;

    /// Works until it was stopped or is drained; once. Blocks.
    [[nodiscard]] RuntimeExit run();
    /// All thread-safe.
    void quiet() { shell_->quiet(); }
    void stop() { shell_->stop(); }
    void stop_now() { shell_->stop_now(); }

 private:
    Result<void> assemble();
    Result<void> add_kind(const std::string& kind);
    void make_runners();

    RuntimeParts parts_;
    std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    std::atomic<bool> guard_lost_ = false;
    ShellLog shell_log_;
    engine::WorkerConfig config_;
    std::map<std::string, LocalKind, std::less<>> local_kinds_;
    std::map<std::string, ExecKind, std::less<>> exec_kinds_;
    std::shared_ptr<LocalRunner> local_;
    std::map<std::string, std::string, std::less<>> http_kinds_;
    std::unique_ptr<ExecRunner> exec_;
    std::unique_ptr<Runner> http_;
    std::unique_ptr<engine::LockPort> outside_locks_;  ///< Empty: locks are the store's.
    std::unique_ptr<WorkerShell> shell_;
};

}  // namespace sekali::client
