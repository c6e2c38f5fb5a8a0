#include <fmt/format.h>

#include <limits>

#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "observe/status.hpp"

namespace sekali::cli {
namespace {

observe::Status read_numbers(CommandContext& context) {
    std::optional<Store> store = open_if_exists(context);
    if (!store) return {};
    return store->read([&](engine::Tables& tables) {
        constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
        return observe::read_status(tables, context.ns(), kAll);
    });
}

int run(CommandContext& context) {
    const observe::Status status = read_numbers(context);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        observe::write_status(json, status, context.ns());
        context.out.line(document);
        return kExitDone;
    }
    std::uint64_t running = 0;
    std::uint64_t waiting = 0;
    std::uint64_t scheduled = 0;
    for (const observe::QueueStatus& queue : status.queues) {
        running += queue.running;
        waiting += queue.waiting;
        scheduled += queue.scheduled;
    }
    context.out.line(fmt::format("workers    {}", status.workers));
    context.out.line(fmt::format("running    {}", running));
    context.out.line(fmt::format("ready      {}, the oldest for {}", status.ready(),
                                 base::format_duration(status.oldest_age())));
    context.out.line(fmt::format("waiting    {}", waiting));
    context.out.line(fmt::format("scheduled  {}", scheduled));
    context.out.line(fmt::format("held       {}", status.held));
    context.out.line(fmt::format("dead       {}", status.dead));
    for (const std::string& queue : status.unserved())
        context.out.line(fmt::format("queue {} has jobs and no live worker", base::quoted(queue)));
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kStatusCommand = {
    .name = "status",
    .summary = "the numbers now",
    .about =
        "Counts jobs by state, live workers, dead letters and held jobs, and names the queues\n"
        "that have jobs and nobody who serves them. `check` turns these numbers into an exit\n"
        "status.",
    .examples = "  sekali status\n  sekali status --json",
    .run = run,
};

}  // namespace sekali::cli
