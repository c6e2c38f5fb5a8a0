#pragma once

#include <array>

#include "cli/context.hpp"
#include "cli/spec.hpp"
#include "client/worker_process.hpp"

namespace sekali::cli {

/// The flags of `sekali work`, which every program made by `worker_main` takes, too.
[[nodiscard]] std::span<const OptionSpec> work_options();

/// What flags, environment and configuration file say of how to work. Throws `Failure` (`kUsage`).
[[nodiscard]] client::WorkerProcessPlan work_plan(const CommandContext& context);

}  // namespace sekali::cli
