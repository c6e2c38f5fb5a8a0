#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "process/signals.hpp"
#include "process/unique_fd.hpp"
#include "sekali/result.hpp"

namespace sekali::process {

/// Lets another thread end a foreground command (lock lost). Outlives the `run_command` call.
class CommandStop {
 public:
    [[nodiscard]] static Result<CommandStop> create();
    /// SIGTERM to the command and its descendants, SIGKILL after the grace. Thread-safe,
    /// idempotent.
    void request() const;
    /// Readable once it was requested.
    [[nodiscard]] int fd() const { return event_.get(); }

 private:
    explicit CommandStop(UniqueFd event) : event_(std::move(event)) {}
    UniqueFd event_;
};

struct CommandOptions {
    std::vector<std::string> argv;  ///< Not empty.
    std::vector<std::string> env;   ///< The whole environment.
    bool capture_stdout = false;    ///< Keep stdout as well as passing it on.
    std::size_t stdout_cap = 64 * 1024;
    std::chrono::milliseconds grace{25'000};  ///< Of `CommandStop`.
};

struct CommandResult {
    /// As `env` gives it: the command's own status, 126 cannot be run, 127 not found, 128+n killed
    /// by signal n.
    int exit_status = 0;
    int ended_by_signal = 0;  ///< The signal that killed it; 0: it ended by itself.
    bool started =
        false;  ///< False with 126 and 127 of ours, and when stopped before: nothing ran.
    bool stopped = false;      ///< `CommandStop` was requested before it ended.
    std::string error;         ///< Why it was not started.
    std::string stdout_bytes;  ///< With `capture_stdout`: the first `stdout_cap` bytes.
    std::uint64_t stdout_total = 0;
};

/// Runs a command in the foreground, with this process's standard streams, process group and other
/// inherited descriptors, and waits for it.
///
/// What `signals` delivers meanwhile is passed on to the command and its descendants, but for what
/// the terminal sends to the whole group anyway. After a stop, returns only when no descendant is
/// left; after an end of its own accord, what the command left in the background stays. The command
/// is killed when the calling thread dies. Makes the process a child subreaper; it must have no
/// other children. Blocks; one call at a time. Fails, with nothing run, when descriptors are short.
[[nodiscard]] Result<CommandResult> run_command(const CommandOptions& options,
                                                const CommandStop& stop, SignalSource& signals);

}  // namespace sekali::process
