#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "process/run_command.hpp"
#include "process/signals.hpp"

namespace sekali::cli {

/// Runs the command behind `--` and watches it: for `lock` and `once`. One at a time in a process.
class Foreground {
 public:
    /// `to_stderr`: what the command prints goes to stderr, because stdout holds a JSON document.
    explicit Foreground(bool to_stderr);
    Foreground(const Foreground&) = delete;
    Foreground& operator=(const Foreground&) = delete;
    ~Foreground();

    /// Does something that blocks; a signal that comes in meanwhile asks it to stop by the token.
    /// `each` is called now and then on another thread, with the time it has taken so far.
    void wait(const std::function<void(std::stop_token)>& work,
              const std::function<void(std::chrono::milliseconds)>& each);
    /// The signal that ended the waiting; 0: none.
    [[nodiscard]] int interrupted_by() const { return interrupted_by_; }

    /// Runs the command; ends it once `lost` fires. Throws `Failure` when nothing could be run.
    process::CommandResult run(process::CommandOptions options, const std::stop_token& lost);

 private:
    process::SignalSource signals_;
    process::CommandStop stop_;
    int interrupted_by_ = 0;
    int saved_stdout_ = -1;
};

/// This process's environment with more variables.
[[nodiscard]] std::vector<std::string> environment_with(
    const std::vector<std::string>& assignments);

}  // namespace sekali::cli
