#include <fmt/format.h>

#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/job_actions.hpp"
#include "cli/listing.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"
#include "observe/status.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr PositionalSpec kOneQueue[] = {{.name = "QUEUE", .help = "its name", .kind = kName}};
constexpr auto kListOptions = join_options(kFilterOptions, kPageOptions);
constexpr std::array<OptionSpec, 3> kPurgeFilters{{
    {.name = "state",
     .value = "STATE",
     .help = "only jobs in this state",
     .kind = kChoice,
     .choices = "scheduled|ready|waiting"},
    {.name = "kind", .value = "KIND", .help = "only this kind", .kind = kName},
    {.name = "key", .value = "KEY", .help = "only this idempotency key", .kind = kKey},
}};
constexpr auto kPurgeOptions = join_options(kPurgeFilters, kBulkOptions, kWhoOptions);

constexpr std::array<OptionSpec, 1> kSwitchOptions{{kWhoOptions[0]}};

struct QueueList {
    engine::StoreTime now{};
    std::vector<observe::QueueStatus> queues;
};

/// The flags that choose jobs choose the queues that have such a job.
bool has_such_jobs(engine::Tables& tables, engine::JobFilter filter, const std::string& queue) {
    if (!filter.state && !filter.kind && !filter.key) return true;
    filter.queue = queue;
    filter.after.clear();
    filter.limit = 1;
    do {
        engine::Page<observe::JobView> page = observe::list_jobs(tables, filter);
        if (!page.items.empty()) return true;
        filter.after = std::move(page.next);
    } while (!filter.after.empty());
    return false;
}

QueueList read_list(CommandContext& context) {
    const engine::JobFilter filter = job_filter(context);
    std::optional<Store> store = open_if_exists(context);
    if (!store) return {};
    return store->read([&](engine::Tables& tables) {
        QueueList list{tables.now(), observe::read_queues(tables, context.ns())};
        std::erase_if(list.queues, [&](const auto& queue) {
            const bool named = !filter.queue || queue.name == *filter.queue;
            return !named || !has_such_jobs(tables, filter, queue.name);
        });
        return list;
    });
}

std::vector<std::string> table_row(const observe::QueueStatus& queue) {
    return {queue.name,
            queue.paused ? "yes" : "",
            std::to_string(queue.scheduled),
            std::to_string(queue.ready),
            std::to_string(queue.waiting),
            std::to_string(queue.running),
            std::to_string(queue.held),
            std::to_string(queue.live_workers),
            queue.oldest_ready_at ? observe::shown_time(*queue.oldest_ready_at) : ""};
}

int list(CommandContext& context) {
    QueueList found = read_list(context);
    using observe::QueueStatus;
    const auto page = cut_page(std::move(found.queues), context.args,
                               [](const QueueStatus& queue) { return queue.name; });
    return print_page(
        context.out, page,
        {"QUEUE", "PAUSED", "SCHEDULED", "READY", "WAITING", "RUNNING", "HELD", "WORKERS",
         "OLDEST READY"},
        [&](base::JsonWriter& json, const QueueStatus& queue) {
            observe::write_queue(json, queue, found.now);
        },
        table_row);
}

int set_paused(CommandContext& context, bool paused) {
    const std::string name = *context.args.positional(0);
    const std::string who = acting_person(context.args);
    Store store = open_store(context, OpenMode::kExisting);
    store.transact([&](engine::Tables& tables) {
        engine::pause_queue(tables, context.ns(), name, paused, who);
    });
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("queue", name).field("paused", paused).end_object();
        context.out.line(document);
    } else {
        context.out.note(fmt::format(
            "queue {} {}", base::quoted(name),
            paused ? "is paused: no job of it starts; those that run go on" : "goes on"));
    }
    return kExitDone;
}

int pause(CommandContext& context) {
    return set_paused(context, true);
}
int resume(CommandContext& context) {
    return set_paused(context, false);
}

int purge(CommandContext& context) {
    return purge_queue(context, *context.args.positional(0));
}

}  // namespace

constinit const CommandSpec kQueueListCommand = {
    .name = "queue list",
    .summary = "queues, how much is in them and who serves them",
    .about =
        "Lists queues by name. The flags that choose jobs choose the queues that have such a job;\n"
        "the numbers stay those of the whole queue.",
    .options = kListOptions,
    .examples = "  sekali queue list\n  sekali queue list --state held --json",
    .run = list,
};

constinit const CommandSpec kQueuePauseCommand = {
    .name = "queue pause",
    .summary = "let no job of a queue start",
    .about =
        "Jobs that run go on; jobs may still be enqueued. A queue may be paused before it has\n"
        "jobs.",
    .positionals = kOneQueue,
    .options = kSwitchOptions,
    .examples = "  sekali queue pause mail --as ana",
    .run = pause,
};

constinit const CommandSpec kQueueResumeCommand = {
    .name = "queue resume",
    .summary = "let the jobs of a paused queue start again",
    .positionals = kOneQueue,
    .options = kSwitchOptions,
    .examples = "  sekali queue resume mail",
    .run = resume,
};

constinit const CommandSpec kQueuePurgeCommand = {
    .name = "queue purge",
    .summary = "cancel every job of a queue that has not begun",
    .about =
        "Jobs that are scheduled, ready or waiting end as cancelled, with reason `purged`, and\n"
        "free their unique keys. Jobs that run or are held stay.",
    .positionals = kOneQueue,
    .options = kPurgeOptions,
    .examples = "  sekali queue purge mail --dry-run\n  sekali queue purge mail --yes",
    .run = purge,
};

}  // namespace sekali::cli
