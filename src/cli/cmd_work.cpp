#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "cli/address.hpp"
#include "cli/command_table.hpp"
#include "cli/context.hpp"
#include "cli/work_settings.hpp"

namespace sekali::cli {
namespace {

int run(CommandContext& context) {
    const client::WorkerProcessPlan plan = work_plan(context);
    if (Output::is_terminal(plan.log.fd)) {
        context.out.note("Ctrl-C once to finish what runs, twice to stop at once");
    }
    const int status = client::run_worker_processes(plan);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("status", status == kExitDone ? "done" : "unsettled");
        json.field("drained", status == kExitDone && plan.options.drain).end_object();
        context.out.line(document);
    }
    return status;
}

}  // namespace

const CommandSpec kWorkCommand = {
    .name = "work",
    .summary = "run workers",
    .about =
        "Takes jobs and runs their handlers: commands (--exec), HTTP services (--http). The\n"
        "payload is the command's standard input, its standard output the result. Exit status 0\n"
        "is success, 75 says that nothing was applied (retry), 65 that no retry can help; any\n"
        "other is retried. SIGTERM or Ctrl-C finishes what runs; a second one stops at once.\n"
        "SIGUSR1 takes nothing more and lets what runs go on.",
    .options = work_options(),
    .examples =
        "  sekali work --exec 'payment.charge=./charge.sh'\n"
        "  sekali work --processes 4 --exec 'mail.send=./send.sh' --on-unknown mail.send=hold\n"
        "  sekali work --drain --exec 'report=sh -c \"make report | gzip\"'",
    .run = run,
};

}  // namespace sekali::cli
