#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client_core.hpp"
#include "client/worker_plan.hpp"
#include "sekali/worker.hpp"

namespace sekali::internal {

/// What has been registered with a `Worker`.
class WorkerCore {
 public:
    WorkerCore(Client opened, WorkerOptions chosen)
        : client(std::move(opened)), options(std::move(chosen)) {}

    Client client;
    WorkerOptions options;
    std::map<std::string, client::LocalHandler, std::less<>> handlers;
    std::vector<Middleware> middleware;
};

/// The way from the rooms below to a `Worker` and back.
class WorkerAccess {
 public:
    [[nodiscard]] static Worker make(std::unique_ptr<WorkerCore> core) {
        return Worker(std::move(core));
    }
    [[nodiscard]] static WorkerCore& core(Worker& worker) { return *worker.core_; }
};

}  // namespace sekali::internal
