#include "bench/bench.hpp"

#include <unistd.h>

#include "base/errors.hpp"
#include "bench/lock_bench.hpp"
#include "bench/report.hpp"
#include "cli/command_table.hpp"
#include "cli/context.hpp"
#include "cli/outside_locks.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr OptionSpec kOptions[] = {
    {.name = "backend",
     .value = "NAME",
     .help = "what is measured; default sqlite; redis: the locks of --lock-url",
     .kind = kChoice,
     .choices = "sqlite|redis"},
    {.name = "jobs",
     .value = "N",
     .help = "jobs in each round; default 20000",
     .kind = kInteger,
     .min = 1000,
     .max = 1'000'000},
    {.name = "folder",
     .value = "DIR",
     .help = "where the databases lie meanwhile; default is the current folder"},
    {.name = "sync",
     .value = "full|normal",
     .help = "what a commit waits for; default full",
     .kind = kChoice,
     .choices = "full|normal"},
    {.name = "scale",
     .help = "also what a job costs beside up to a million others; some minutes, 4 GiB",
     .kind = kFlag},
};

int run_locks(CommandContext& context) {
    const auto outside = outside_locks(context);
    if (!outside) {
        throw Failure(base::usage_error("--backend redis measures the locks of a server",
                                        "name one: --lock-url redis://127.0.0.1"));
    }
    const bench::LockBenchResult result =
        bench::run_lock_bench(outside->url, [&context](std::string_view what) {
            if (Output::is_terminal(STDERR_FILENO)) context.out.note(std::string(what) + " …");
        });
    if (context.out.json()) {
        context.out.line(bench::to_json(result));
    } else {
        context.out.bytes(bench::to_text(result));
    }
    return kExitDone;
}

int run(CommandContext& context) {
    if (context.args.text_or("backend", "sqlite") == "redis") return run_locks(context);
    bench::BenchOptions options;
    options.parent = context.args.text_or("folder", ".");
    options.jobs = context.args.integer("jobs").value_or(options.jobs);
    options.scale = context.args.flag("scale");
    if (context.args.text_or("sync", "full") == "normal") {
        options.synchronous = sqlite::Synchronous::kNormal;
    }
    if (Output::is_terminal(STDERR_FILENO)) {
        options.progress = [&context](std::string_view what) {
            context.out.note(std::string(what) + " …");
        };
    }
    const bench::BenchResult result = bench::run_bench(options);
    if (context.out.json()) {
        context.out.line(bench::to_json(result));
    } else {
        context.out.bytes(bench::to_text(result));
    }
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kBenchCommand = {
    .name = "bench",
    .summary = "throughput and latency, beside the raw limit of this machine",
    .about =
        "Measures bulk enqueue, the drain of each safety level, the wake-up of a worker, an idle\n"
        "worker and `sekali enqueue` as a process. The raw limit is the same rows written by bare\n"
        "prepared statements into the same schema, by the best of several batches, in rounds that\n"
        "take turns with sekali's. Everything lies in a new folder below DIR, which is removed.",
    .options = kOptions,
    .examples =
        "  sekali bench\n"
        "  sekali bench --json --folder /var/lib/app > bench.json\n"
        "  sekali bench --scale\n"
        "  sekali bench --backend redis --lock-url redis://127.0.0.1",
    .run = run,
};

}  // namespace sekali::cli
