#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

struct WorkerView {
    engine::WorkerRow row;
    std::string_view state;
    std::uint64_t running = 0;
};

std::string_view state_of(engine::Tables& tables, const engine::WorkerRow& row) {
    const engine::OwnerFate fate = tables.owner_fate(row.id);
    if (fate == engine::OwnerFate::kDead) return "dead";
    if (row.lease_until <= tables.now()) return "lapsed";
    return row.stopping ? "stopping" : "live";
}

std::vector<WorkerView> read_workers(engine::Tables& tables, const std::string& ns) {
    std::vector<WorkerView> workers;
    for (engine::WorkerRow& row : tables.workers(ns)) {
        WorkerView view;
        view.state = state_of(tables, row);
        view.running = tables.count_begun(row.id);
        view.row = std::move(row);
        workers.push_back(std::move(view));
    }
    return workers;
}

void write_names(base::JsonWriter& json, std::string_view field,
                 const std::vector<std::string>& names) {
    json.field(field).begin_array();
    for (const std::string& name : names)
        json.value(name);
    json.end_array();
}

void write_worker(base::JsonWriter& json, const WorkerView& view) {
    const engine::WorkerRow& row = view.row;
    json.begin_object().field("id", row.id).field("state", view.state).field("host", row.host);
    json.field("pid", row.pid);
    write_names(json, "queues", row.queues);
    write_names(json, "kinds", row.kinds);
    json.field("concurrency", row.concurrency).field("running", view.running);
    json.field("started_at", observe::shown_time(row.started_at));
    json.field("lease_until", observe::shown_time(row.lease_until)).end_object();
}

int list(CommandContext& context) {
    std::vector<WorkerView> workers;
    if (std::optional<Store> store = open_if_exists(context)) {
        workers =
            store->read([&](engine::Tables& tables) { return read_workers(tables, context.ns()); });
    }
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("items").begin_array();
        for (const WorkerView& view : workers)
            write_worker(json, view);
        json.end_array().field("next", nullptr).end_object();
        context.out.line(document);
        return kExitDone;
    }
    TextTable table({"WORKER", "STATE", "HOST", "PID", "RUNNING", "QUEUES", "KINDS", "SINCE"});
    for (const WorkerView& view : workers) {
        table.add({view.row.id, std::string(view.state), view.row.host,
                   std::to_string(view.row.pid),
                   fmt::format("{}/{}", view.running, view.row.concurrency),
                   fmt::format("{}", fmt::join(view.row.queues, ",")),
                   fmt::format("{}", fmt::join(view.row.kinds, ",")),
                   observe::shown_time(view.row.started_at)});
    }
    if (!workers.empty()) context.out.bytes(table.render());
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kWorkerListCommand = {
    .name = "worker list",
    .summary = "who is alive, and how much runs there",
    .about =
        "A worker is live, stopping, lapsed (it has not been heard of for longer than its\n"
        "lease) or dead (its process is proven gone); recovery forgets it once its jobs are\n"
        "taken care of.",
    .examples = "  sekali worker list",
    .run = list,
};

}  // namespace sekali::cli
