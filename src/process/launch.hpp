#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "process/unique_fd.hpp"

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
    bool own_group = false;             ///< A process group of its own, with the number of its pid.
    bool keep_ignored_signals = false;  ///< As `nohup` needs; else every signal is at its default.
};

struct Launched {
    pid_t pid = -1;       ///< -1: nothing was run.
    int errno_value = 0;  ///< Why not.
    UniqueFd pidfd;       ///< Readable once it has ended.
};

/// Runs a program as a child, and tells when it does not run.
///
/// The child shares the memory until it has called exec, so that no page of a large process is
/// copied and no lock of another thread is needed; it is killed when the calling thread dies.
/// Thread-safe. Blocks until the program runs.
[[nodiscard]] Launched launch(const LaunchPlan& plan);

}  // namespace sekali::process
