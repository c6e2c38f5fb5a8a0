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

using enum ValueKind;

constexpr PositionalSpec kOneJob[] = {{.name = "ID", .help = "the job's id"}};
constexpr PositionalSpec kJobs[] = {
    {.name = "ID", .help = "job ids, instead of filters", .required = false, .repeated = true}};

constexpr std::array<OptionSpec, 1> kShowOptions{{
    {.name = "payload",
     .help = "prints the payload, byte for byte, and nothing else",
     .kind = kFlag},
}};
constexpr auto kListOptions = join_options(kFilterOptions, kPageOptions);
constexpr auto kActOptions = join_options(kFilterOptions, kBulkOptions, kWhoOptions);

Error no_job(std::string_view id) {
    engine::AdminReply reply;
    reply.kind = engine::AdminReply::Kind::kNotFound;
    return refusal_of(reply, "show", id);
}

std::string shown_text(const observe::JobView& view, std::string_view state) {
    const engine::JobRow& row = view.row;
    std::string out;
    const auto line = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) out += fmt::format("{:<13} {}\n", name, base::printable(value));
    };
    line("id", row.job.id);
    line("kind", row.job.kind);
    line("queue", row.job.queue);
    line("state", state);
    line("waiting for", view.waiting_for);
    line("key", row.job.key);
    line("lock key", row.job.lock_key);
    line("unique key", row.job.unique_key);
    line("attempts", fmt::format("{}, crashes {}, deliveries {}, epoch {}", row.attempts,
                                 row.crashes, row.deliveries, row.epoch));
    line("priority", std::to_string(row.job.priority));
    line("enqueued at", observe::shown_time(row.enqueued_at));
    line("run at", observe::shown_time(row.run_at));
    if (row.finished_at) line("finished at", observe::shown_time(*row.finished_at));
    line("worker", row.owner);
    line("reason", row.reason);
    line("error", row.error);
    line("result", row.result);
    return out;
}

int show(CommandContext& context) {
    const std::string id = *context.args.positional(0);
    std::optional<Store> store = open_if_exists(context);
    if (!store) throw Failure(no_job(id));
    const bool payload = context.args.flag("payload");
    std::string bytes;
    const auto view = store->read([&](engine::Tables& tables) {
        auto found = observe::find_job(tables, context.ns(), id);
        if (found && payload) bytes = tables.payload(id);
        return found;
    });
    if (!view) throw Failure(no_job(id));
    if (payload) {
        context.out.bytes(bytes);
    } else if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        observe::write_item(json, *view);
        context.out.line(document);
    } else {
        context.out.bytes(shown_text(*view, engine::to_string(view->state)));
    }
    return kExitDone;
}

int list(CommandContext& context) {
    return list_command(context);
}

int cancel(CommandContext& context) {
    return job_action_command(
        context, {.verb = "cancel",
                  .done = "cancelled",
                  .state = std::nullopt,
                  .bulk_destructive = true,
                  .apply = [](engine::Tables& tables, std::string_view id, std::string_view who) {
                      return engine::cancel_job(tables, id, who, "cancelled");
                  }});
}

int retry(CommandContext& context) {
    return job_action_command(context, {.verb = "retry",
                                        .done = "retried",
                                        .state = engine::JobState::kScheduled,
                                        .apply = engine::retry_now});
}

}  // namespace

constinit const CommandSpec kJobShowCommand = {
    .name = "job show",
    .summary = "one job, with all that is known of it",
    .about =
        "Shows a job by its id, live or ended. `explain` also finds it by its key, and tells "
        "what\nhappened to it.",
    .positionals = kOneJob,
    .options = kShowOptions,
    .examples =
        "  sekali job show 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d\n"
        "  sekali job show ID --payload | jq .",
    .run = show,
};

constinit const CommandSpec kJobListCommand = {
    .name = "job list",
    .summary = "jobs by state, kind, queue or key",
    .about =
        "Lists jobs, oldest first, a page at a time. A ready job of a paused queue is shown as\n"
        "waiting (for `pause`), and so is one whose kind no live worker of its queue handles\n"
        "(for `handler`).",
    .options = kListOptions,
    .examples =
        "  sekali job list --state waiting\n"
        "  sekali job list --queue mail --limit 20 --json",
    .run = list,
};

constinit const CommandSpec kJobCancelCommand = {
    .name = "job cancel",
    .summary = "end jobs before they run; ask running ones to stop",
    .about =
        "A job that waits ends as cancelled at once. A running one is asked: its handler is told\n"
        "to stop, and a commit that comes first wins. A held job is not cancelled but resolved.",
    .positionals = kJobs,
    .options = kActOptions,
    .examples =
        "  sekali job cancel 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d\n"
        "  sekali job cancel --queue mail --state scheduled --dry-run",
    .run = cancel,
};

constinit const CommandSpec kJobRetryCommand = {
    .name = "job retry",
    .summary = "run a waiting retry or a delayed job now",
    .about =
        "Takes the delay away from a scheduled job. Its attempts stay as they are. For dead jobs\n"
        "see `dead retry`, for held ones `held resolve`.",
    .positionals = kJobs,
    .options = kActOptions,
    .examples =
        "  sekali job retry 0199c3c1-6f2e-7d0a-b9a1-0d9a4c1f2e3d\n"
        "  sekali job retry --kind payment.charge --rate 5/s",
    .run = retry,
};

}  // namespace sekali::cli
