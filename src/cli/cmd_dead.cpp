#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/job_actions.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using engine::JobState;

constexpr PositionalSpec kOneJob[] = {{.name = "ID", .help = "the dead job's id"}};
constexpr PositionalSpec kJobs[] = {
    {.name = "ID", .help = "job ids, instead of filters", .required = false, .repeated = true}};
constexpr auto kListOptions = join_options(kFilterOptions, kPageOptions);
constexpr auto kActOptions = join_options(kFilterOptions, kBulkOptions, kWhoOptions);

struct DeadLetter {
    observe::JobView job;
    std::vector<engine::StepRow> steps;
};

std::optional<DeadLetter> read_letter(engine::Tables& tables, const std::string& ns,
                                      const std::string& id) {
    auto job = observe::find_job(tables, ns, id);
    if (!job) return std::nullopt;
    const engine::Envelope& envelope = job->row.job;
    DeadLetter letter;
    letter.steps = tables.steps({envelope.ns, envelope.kind, envelope.key});
    letter.job = *std::move(job);
    return letter;
}

void print_letter(Output& out, const DeadLetter& letter) {
    if (out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object();
        observe::write_item_fields(json, letter.job);
        json.field("steps").begin_array();
        for (const engine::StepRow& step : letter.steps) {
            json.begin_object().field("name", step.name).field("done", step.done).field("result");
            observe::write_result(json, step.result);
            json.end_object();
        }
        json.end_array().end_object();
        out.line(document);
        return;
    }
    const engine::JobRow& row = letter.job.row;
    const auto line = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) out.line(fmt::format("{:<13} {}", name, base::printable(value)));
    };
    line("id", row.job.id);
    line("kind", row.job.kind);
    line("key", row.job.key);
    line("reason", row.reason);
    line("error", row.error);
    line("attempts", std::to_string(row.attempts));
    line("crashes", std::to_string(row.crashes));
    line("enqueued at", observe::shown_time(row.enqueued_at));
    if (row.finished_at) line("dead since", observe::shown_time(*row.finished_at));
    for (const engine::StepRow& step : letter.steps)
        line("step", step.name + (step.done ? ": done" : ": begun, not answered"));
}

int show(CommandContext& context) {
    const std::string id = *context.args.positional(0);
    engine::AdminReply reply;
    reply.kind = engine::AdminReply::Kind::kNotFound;
    std::optional<Store> store = open_if_exists(context);
    if (!store) throw Failure(refusal_of(reply, "show", id));
    const auto letter =
        store->read([&](engine::Tables& tables) { return read_letter(tables, context.ns(), id); });
    if (!letter) throw Failure(refusal_of(reply, "show", id));
    if (letter->job.row.state != JobState::kDead) {
        reply.kind = engine::AdminReply::Kind::kWrongState;
        reply.row = letter->job.row;
        throw Failure(refusal_of(reply, "show as dead", id));
    }
    print_letter(context.out, *letter);
    return kExitDone;
}

int list(CommandContext& context) {
    return list_command(context, JobState::kDead);
}

int retry(CommandContext& context) {
    return job_action_command(context, {.verb = "retry",
                                        .done = "retried",
                                        .state = JobState::kDead,
                                        .apply = engine::retry_dead});
}

int drop(CommandContext& context) {
    return job_action_command(context, {.verb = "drop",
                                        .done = "dropped",
                                        .state = JobState::kDead,
                                        .destructive = true,
                                        .bulk_destructive = true,
                                        .apply = engine::drop_dead});
}

}  // namespace

constinit const CommandSpec kDeadListCommand = {
    .name = "dead list",
    .summary = "jobs that ran out of attempts or cannot succeed",
    .about = "Lists dead letters, oldest first, with what killed them.",
    .options = kListOptions,
    .examples = "  sekali dead list\n  sekali dead list --kind payment.charge --json",
    .run = list,
};

constinit const CommandSpec kDeadShowCommand = {
    .name = "dead show",
    .summary = "one dead letter, with the steps that were done",
    .positionals = kOneJob,
    .examples = "  sekali dead show 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d",
    .run = show,
};

constinit const CommandSpec kDeadRetryCommand = {
    .name = "dead retry",
    .summary = "make dead jobs live again",
    .about =
        "The job keeps its id, its idempotency key, its history and the steps that were done,\n"
        "and gets a new set of attempts. If its key has succeeded meanwhile it ends as a\n"
        "duplicate.",
    .positionals = kJobs,
    .options = kActOptions,
    .examples =
        "  sekali dead retry 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d\n"
        "  sekali dead retry --kind payment.charge --rate 5/s --as ana",
    .run = retry,
};

constinit const CommandSpec kDeadDropCommand = {
    .name = "dead drop",
    .summary = "forget dead jobs",
    .about = "Removes dead letters with their payloads. Their keys' records and history stay.",
    .positionals = kJobs,
    .options = kActOptions,
    .examples =
        "  sekali dead drop 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d --yes\n"
        "  sekali dead drop --kind mail.send --dry-run",
    .run = drop,
};

}  // namespace sekali::cli
