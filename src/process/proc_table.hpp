#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace sekali::process {

struct ProcessEntry {
    pid_t pid = 0;
    pid_t parent = 0;
};

/// The processes that `/proc` shows, each read at its own moment.
[[nodiscard]] std::vector<ProcessEntry> list_processes();

/// Children of `root`, their children, and so on.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root,
                                                const std::vector<ProcessEntry>& processes);

/// The environment that a process was started with, each variable ended by NUL. Empty for a zombie
/// and where it may not be read.
[[nodiscard]] std::string read_environment(pid_t pid);

/// Whether such an environment has exactly this `NAME=VALUE`.
[[nodiscard]] bool environment_has(std::string_view environment, std::string_view variable);

/// Whether the calling process has more than its one thread.
[[nodiscard]] bool has_other_threads();

}  // namespace sekali::process
