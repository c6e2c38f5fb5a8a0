#include "sekali/worker_main.hpp"

#include <filesystem>
#include <string>

#include "cli/app.hpp"
#include "cli/context.hpp"
#include "cli/work_settings.hpp"

namespace sekali {
namespace {

/// The command's function has no other way to what `worker_main` was given; one call a process.
const std::function<void(Worker&)>* handlers = nullptr;

int run(cli::CommandContext& context) {
    client::WorkerProcessPlan plan = cli::work_plan(context);
    plan.register_handlers = *handlers;
    return client::run_worker_processes(plan);
}

}  // namespace

int worker_main(int argc, char** argv, const std::function<void(Worker&)>& register_handlers) {
    handlers = &register_handlers;
    const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename() : "worker";
    const cli::CommandSpec command{.name = "work",
                                   .summary = "run this program's handlers",
                                   .options = cli::work_options(),
                                   .run = run,
                                   .program = program};
    return cli::run_single(command, {argv + (argc > 0 ? 1 : 0), argv + argc},
                           cli::process_environment());
}

}  // namespace sekali
