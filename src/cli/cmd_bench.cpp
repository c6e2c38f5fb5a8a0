#include "bench/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "backends/postgres/options.hpp"
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
     .help = "what is measured; default: postgres where --url is one, else sqlite; redis: the "
             "locks of --lock-url",
     .kind = kChoice,
     .choices = "sqlite|postgres|redis"},
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

/// Only what the call names is measured, because it is loaded for minutes.
std::string postgres_url(const CommandContext& context) {
    const Arguments& args = context.args;
    const auto backend = args.text("backend");
    if (backend && *backend != "postgres") return {};
    const auto url = args.from_call("url") ? args.text("url") : std::nullopt;
    if (url && postgres::is_postgres_url(*url)) return *url;
    if (!backend) return {};
    throw Failure(base::usage_error("--backend postgres measures the database of --url",
                                    "name one: --url postgresql://HOST/DATABASE"));
}

void refuse_options_of_sqlite(const CommandContext& context) {
    for (const std::string_view option : {"folder", "sync", "scale"}) {
        if (!context.args.from_call(option)) continue;
        throw Failure(base::usage_error(fmt::format("--{} is for --backend sqlite", option)));
    }
}

int run(CommandContext& context) {
    if (context.args.text_or("backend", "sqlite") == "redis") return run_locks(context);
    bench::BenchOptions options;
    options.postgres = postgres_url(context);
    if (!options.postgres.empty()) refuse_options_of_sqlite(context);
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
        "take turns with sekali's. Everything lies in a new folder below DIR, which is removed, or "
        "in\n"
        "new schemas of the PostgreSQL database of --url, which are dropped.",
    .options = kOptions,
    .examples =
        "  sekali bench\n"
        "  sekali bench --json --folder /var/lib/app > bench.json\n"
        "  sekali bench --scale\n"
        "  sekali bench --json --url postgresql://localhost/app\n"
        "  sekali bench --backend redis --lock-url redis://127.0.0.1",
    .run = run,
};

}  // namespace sekali::cli
