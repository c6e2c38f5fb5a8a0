#pragma once

#include <map>
#include <string>

#include "client/run.hpp"
#include "client/worker_shell.hpp"
#include "observe/log.hpp"

namespace sekali::client {

/// Writes what a worker does into its log.
class ShellLog final : public ShellObserver {
 public:
    /// The writer must outlive it.
    ShellLog(const observe::LogWriter& log, std::string worker)
        : log_(log), worker_(std::move(worker)) {}

    void handler_started(const engine::action::StartHandler& start) override;
    void stop_asked(engine::RunId run, engine::StopReason reason) override;
    void run_closed(const engine::action::RunClosed& closed) override;
    void recycling(const engine::action::Recycle& recycle) override;
    void store_answers(bool answers) override;

    /// A line of a handler about its own run. Thread-safe.
    void handler_line(const internal::Run& run, LogSeverity severity,
                      std::string_view message) const;

 private:
    struct Running {
        engine::RunRef ref;
        std::string queue;
    };
    /// Empty for a run without a lock key.
    [[nodiscard]] std::string token_of(const engine::RunRef& ref, engine::RunId run) const;
    [[nodiscard]] observe::LogFields fields_of(const engine::RunRef& ref,
                                               const std::string& lock_token) const;

    const observe::LogWriter& log_;
    std::string worker_;
    std::map<engine::RunId, Running> running_;
};

}  // namespace sekali::client
