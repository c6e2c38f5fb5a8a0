#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "keep",
     .value = "D",
     .help = "retention of ended jobs, attempts and events; default 30d",
     .kind = ValueKind::kDuration},
};

engine::PruneReply prune_all(Store& store, const std::string& ns, engine::Millis keep) {
    constexpr std::size_t kAtOnce = 1000;
    engine::PruneReply sum;
    while (true) {
        const engine::PruneReply part = store.transact(
            [&](engine::Tables& tables) { return engine::prune(tables, ns, keep, kAtOnce); });
        sum.records += part.records;
        sum.history += part.history;
        if (part.records == 0 && part.history == 0) return sum;
    }
}

int run(CommandContext& context) {
    constexpr engine::Millis kDefault = std::chrono::hours(24) * 30;
    Store store = open_store(context, OpenMode::kExisting);
    const engine::PruneReply pruned =
        prune_all(store, context.ns(), context.args.duration("keep").value_or(kDefault));
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("records", pruned.records).field("history", pruned.history);
        json.end_object();
        context.out.line(document);
    } else {
        context.out.note(fmt::format("pruned {} records and {} rows of history", pruned.records,
                                     pruned.history));
    }
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kPruneCommand = {
    .name = "prune",
    .summary = "apply retention",
    .about =
        "Removes idempotency records whose own retention has passed (set by `keep` when they\n"
        "ended), and ended jobs, attempts and events older than --keep. A record whose key has\n"
        "a live, held or dead job stays.",
    .options = kOptions,
    .examples = "  sekali prune\n  sekali prune --keep 7d",
    .run = run,
};

}  // namespace sekali::cli
