#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace sekali::process {

/// A descriptor of this process and its number in the child. Sources must be above every target.
struct FdMapping {
    int source = -1;
    int target = -1;
};

struct LaunchPlan {
    std::span<const std::string> argv;  ///< Not empty; a program without `/` is searched in PATH.
    std::span<const std::string> env;   ///< The whole environment.
    std::string cwd;                    ///< Empty: the caller's own.
    std::vector<FdMapping> fds;
    bool only_mapped_fds = false;       ///< Nothing above the highest target is inherited.
    bool keep_ignored_signals = false;  ///< As `nohup` needs; else every signal is at its default.
    int terminal_fd = -1;               ///< Terminal that the child's group gets; -1: none.
};

struct Launched {
    pid_t pid = -1;       ///< Also the number of its own process group; -1: nothing was run.
    int errno_value = 0;  ///< Why not.
};

/// Runs a program as a child in its own process group, and tells when it does not run.
///
/// The child shares the memory until it has called exec, so that no page of a large process is
/// copied and no lock of another thread is needed; it is killed when the calling thread dies.
/// Thread-safe. Blocks until the program runs.
[[nodiscard]] Launched launch(const LaunchPlan& plan);

}  // namespace sekali::process
