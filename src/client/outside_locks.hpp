#pragma once

#include <memory>

#include "client/backend.hpp"
#include "engine/ports.hpp"
#include "sekali/worker.hpp"

namespace sekali::client {

/// The locks of a worker whose lock keys are taken in a Redis too. Jobs that found one busy stand
/// in line in the store; the release wakes the first of them, whoever held the lock.
[[nodiscard]] Result<std::unique_ptr<engine::LockPort>> open_outside_locks(
    const WorkerOptions& options, std::shared_ptr<Backend> backend);

}  // namespace sekali::client
