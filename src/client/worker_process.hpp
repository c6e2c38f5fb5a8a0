#pragma once

#include <functional>
#include <map>
#include <string>

#include "client/worker_plan.hpp"
#include "observe/log.hpp"
#include "sekali/worker.hpp"

namespace sekali::client {

/// What `sekali work` and `worker_main` were told.
struct WorkerProcessPlan {
    std::string url;
    WorkerOptions options;
    HandlerOptions overrides;
    std::map<std::string, KindSettings, std::less<>> settings;
    /// Workers under a supervisor; 0: one worker, in this very process.
    int processes = 0;
    std::function<void(Worker&)> register_handlers;  ///< Empty: there are none in this program.
    MakeHttpRunner make_http;
    observe::LogOptions log;
};

/// Runs workers with their guards until they are stopped or drained; to be called from a process
/// with one thread and no open store. Blocks. Returns the exit status. Throws `Failure` for what a
/// worker in this very process cannot start with.
///
/// SIGTERM and SIGINT: the first one ends gracefully, the second at once. A process with a handler
/// that does not end is replaced by a new one of the same program.
[[nodiscard]] int run_worker_processes(const WorkerProcessPlan& plan);

}  // namespace sekali::client
