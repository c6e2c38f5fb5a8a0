#pragma once

#include <functional>

#include "sekali/worker.hpp"

namespace sekali {

/// The `main` of a program that is a worker: takes every flag of `sekali work` (`--help` lists
/// them), and `register_handlers` adds the handlers of this program.
///
/// It is called once in each worker process, before that takes jobs. Installs handlers for SIGTERM
/// and SIGINT: the first one ends gracefully, the second at once. To be called before any thread is
/// started. Blocks; returns the exit status for `main`.
[[nodiscard]] int worker_main(int argc, char** argv,
                              const std::function<void(Worker&)>& register_handlers);

}  // namespace sekali
