#pragma once

#include <chrono>

#include "process/unique_fd.hpp"

namespace sekali::process {

struct GuardServerOptions {
    UniqueFd socket;
    UniqueFd worker_pidfd;  ///< May be invalid where the kernel has none.
    int alive_fd = -1;
    std::chrono::milliseconds leftover_grace{};
};

/// The guard process: to be called in the fresh child of a fork. Serves its worker until that dies
/// or closes the socket, kills every descendant, and exits.
[[noreturn]] void run_guard_server(GuardServerOptions options);

}  // namespace sekali::process
