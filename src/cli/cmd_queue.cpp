#include <fmt/format.h>

#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/job_actions.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"
#include "observe/status.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr PositionalSpec kOneQueue[] = {{.name = "QUEUE", .help = "its name", .kind = kName}};
constexpr std::array<OptionSpec, 1> kListOptions{{
    {.name = "queue", .value = "QUEUE", .help = "only this one", .kind = kName},
}};
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

struct QueueList {
    engine::StoreTime now{};
    std::vector<observe::QueueStatus> queues;
};

QueueList read_list(CommandContext& context) {
    std::optional<Store> store = open_if_exists(context);
    if (!store) return {};
    QueueList list = store->read([&](engine::Tables& tables) {
        return QueueList{tables.now(), observe::read_queues(tables, context.ns())};
    });
    if (const auto only = context.args.text("queue")) {
        std::erase_if(list.queues, [&](const auto& queue) { return queue.name != *only; });
    }
    return list;
}

int list(CommandContext& context) {
    const QueueList found = read_list(context);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("items").begin_array();
        for (const observe::QueueStatus& queue : found.queues)
            observe::write_queue(json, queue, found.now);
        json.end_array().field("next", nullptr).end_object();
        context.out.line(document);
        return kExitDone;
    }
    TextTable table({"QUEUE", "PAUSED", "SCHEDULED", "READY", "WAITING", "RUNNING", "HELD",
                     "WORKERS", "OLDEST READY"});
    for (const observe::QueueStatus& queue : found.queues) {
        table.add({queue.name, queue.paused ? "yes" : "", std::to_string(queue.scheduled),
                   std::to_string(queue.ready), std::to_string(queue.waiting),
                   std::to_string(queue.running), std::to_string(queue.held),
                   std::to_string(queue.live_workers),
                   queue.oldest_ready_at ? observe::shown_time(*queue.oldest_ready_at) : ""});
    }
    if (!found.queues.empty()) context.out.bytes(table.render());
    return kExitDone;
}

int set_paused(CommandContext& context, bool paused) {
    const std::string name = *context.args.positional(0);
    Store store = open_store(context, OpenMode::kExisting);
    store.transact(
        [&](engine::Tables& tables) { engine::pause_queue(tables, context.ns(), name, paused); });
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
    .options = kListOptions,
    .examples = "  sekali queue list",
    .run = list,
};

constinit const CommandSpec kQueuePauseCommand = {
    .name = "queue pause",
    .summary = "let no job of a queue start",
    .about =
        "Jobs that run go on; jobs may still be enqueued. A queue may be paused before it has\n"
        "jobs.",
    .positionals = kOneQueue,
    .examples = "  sekali queue pause mail",
    .run = pause,
};

constinit const CommandSpec kQueueResumeCommand = {
    .name = "queue resume",
    .summary = "let the jobs of a paused queue start again",
    .positionals = kOneQueue,
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
