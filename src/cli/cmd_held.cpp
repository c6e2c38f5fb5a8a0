#include <fmt/format.h>

#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/job_actions.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr PositionalSpec kOneJob[] = {{.name = "ID", .help = "the held job's id"}};
constexpr auto kListOptions = join_options(kFilterOptions, kPageOptions);
constexpr std::array<OptionSpec, 3> kAnswers{{
    {.name = "succeeded", .value = "RESULT", .help = "it happened, and this is its result"},
    {.name = "rerun", .help = "it did not happen, or may happen again: run it", .kind = kFlag},
    {.name = "dead", .help = "it must not run again", .kind = kFlag},
}};
constexpr auto kResolveOptions = join_options(kAnswers, kWhoOptions);

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
    const std::string id = *context.args.positional(0);
    const engine::Resolution resolution = resolution_of(context.args);
    const std::string who = acting_person(context.args);
    Store store = open_store(context, OpenMode::kExisting);
    const engine::AdminReply reply = store.transact([&](engine::Tables& tables) {
        engine::AdminReply missing;
        missing.kind = engine::AdminReply::Kind::kNotFound;
        if (!observe::find_job(tables, context.ns(), id)) return missing;
        return engine::resolve_held(tables, id, resolution, who);
    });
    if (reply.kind != engine::AdminReply::Kind::kDone) {
        throw Failure(refusal_of(reply, "resolve", id));
    }
    const std::string_view state = engine::to_string(reply.row->state);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("id", id).field("status", "resolved").field("state", state);
        json.end_object();
        context.out.line(document);
    } else {
        context.out.line(id);
        context.out.flush();
        context.out.note(fmt::format("resolved job {}: it is {} now", id, state));
    }
    return kExitDone;
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
    .positionals = kOneJob,
    .options = kResolveOptions,
    .examples =
        "  sekali held resolve ID --succeeded '{\"charge\":\"ch_1\"}'\n"
        "  sekali held resolve ID --rerun --as ana",
    .run = resolve,
};

}  // namespace sekali::cli
