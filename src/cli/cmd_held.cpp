#include <fmt/format.h>

#include "base/errors.hpp"
#include "base/limits.hpp"
#include "cli/command_table.hpp"
#include "cli/job_actions.hpp"
#include "cli/shared_options.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr PositionalSpec kJobs[] = {
    {.name = "ID", .help = "job ids, instead of filters", .required = false, .repeated = true}};
constexpr auto kListOptions = join_options(kFilterOptions, kPageOptions);
constexpr std::array<OptionSpec, 3> kAnswers{{
    {.name = "succeeded", .value = "RESULT", .help = "it happened, and this is its result"},
    {.name = "rerun", .help = "it did not happen, or may happen again: run it", .kind = kFlag},
    {.name = "dead", .help = "it must not run again", .kind = kFlag},
}};
constexpr auto kResolveOptions = join_options(kAnswers, kFilterOptions, kBulkOptions, kWhoOptions);

int list(CommandContext& context) {
    return list_command(context, engine::JobState::kHeld);
}

engine::Resolution resolution_of(const Arguments& args) {
    const int answers = (args.has("succeeded") ? 1 : 0) + (args.flag("rerun") ? 1 : 0) +
                        (args.flag("dead") ? 1 : 0);
    if (answers != 1) {
        throw Failure(base::usage_error(
            answers == 0 ? "held resolve needs the answer" : "held resolve takes one answer",
            "one of --succeeded RESULT, --rerun, --dead"));
    }
    engine::Resolution resolution;
    if (const auto result = args.text("succeeded")) {
        if (result->size() > base::kMaxResultBytes) {
            throw Failure(base::usage_error(fmt::format("--succeeded has {} bytes (allowed: {})",
                                                        result->size(), base::kMaxResultBytes)));
        }
        resolution.kind = engine::Resolution::Kind::kSucceeded;
        resolution.result = base::make_storable(*result, base::kMaxResultBytes);
    } else if (args.flag("dead")) {
        resolution.kind = engine::Resolution::Kind::kDead;
    }
    return resolution;
}

int resolve(CommandContext& context) {
    const engine::Resolution resolution = resolution_of(context.args);
    return job_action_command(
        context, {.verb = "resolve",
                  .done = "resolved",
                  .state = engine::JobState::kHeld,
                  .tells_state = true,
                  .apply = [&](engine::Tables& tables, std::string_view id, std::string_view who) {
                      return engine::resolve_held(tables, id, resolution, who);
                  }});
}

}  // namespace

constinit const CommandSpec kHeldListCommand = {
    .name = "held list",
    .summary = "jobs whose last run nobody knows the outcome of",
    .about =
        "Lists jobs that wait for an answer: an earlier run began and ended without one, and\n"
        "the kind's policy forbids another run before somebody has looked.",
    .options = kListOptions,
    .examples = "  sekali held list\n  sekali held list --json",
    .run = list,
};

constinit const CommandSpec kHeldResolveCommand = {
    .name = "held resolve",
    .summary = "say what became of a held job",
    .about =
        "Look in the outside system first (its key is the job's step key), then answer. With an\n"
        "open step, RESULT is that step's and the job runs on; else it is the job's own.",
    .positionals = kJobs,
    .options = kResolveOptions,
    .examples =
        "  sekali held resolve ID --succeeded '{\"charge\":\"ch_1\"}'\n"
        "  sekali held resolve ID --rerun --as ana\n"
        "  sekali held resolve --kind payment.charge --rerun --dry-run",
    .run = resolve,
};

}  // namespace sekali::cli
