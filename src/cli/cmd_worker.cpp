#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/listing.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr std::array<OptionSpec, 4> kFilters{{
    {.name = "state",
     .value = "STATE",
     .help = "only workers in this state",
     .kind = kChoice,
     .choices = "live|quiet|stopping|lapsed|dead"},
    {.name = "kind", .value = "KIND", .help = "only those that handle it", .kind = kName},
    {.name = "queue", .value = "QUEUE", .help = "only those that serve it", .kind = kName},
    {.name = "key",
     .value = "KEY",
     .help = "only those that run a job of this idempotency key",
     .kind = kKey},
}};
constexpr auto kListOptions = join_options(kFilters, kPageOptions);

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

std::vector<std::string> table_row(const WorkerView& view) {
    return {view.row.id,
            std::string(view.state),
            view.row.host,
            std::to_string(view.row.pid),
            fmt::format("{}/{}", view.running, view.row.concurrency),
            fmt::format("{}", fmt::join(view.row.queues, ",")),
            fmt::format("{}", fmt::join(view.row.kinds, ",")),
            observe::shown_time(view.row.started_at)};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Workers that have a job of this idempotency key.
std::set<std::string> owners_of(engine::Tables& tables, const std::string& ns,
                                const std::string& key) {
    std::set<std::string> owners;
    for (const std::string& kind : tables.kinds_of_key(ns, key)) {
        for (const engine::JobRow& row : tables.jobs_of_key(ns, kind, key)) {
            if (row.state == engine::JobState::kRunning) owners.insert(row.owner);
        }
    }
    return owners;
}

std::vector<WorkerView> read_chosen(engine::Tables& tables, const CommandContext& context) {
    std::vector<WorkerView> workers = read_workers(tables, context.ns());
    const Arguments& args = context.args;
    std::optional<std::set<std::string>> owners;
    if (const auto key = args.text("key")) owners = owners_of(tables, context.ns(), *key);
    const auto state = args.text("state");
    const auto kind = args.text("kind");
    const auto queue = args.text("queue");
    std::erase_if(workers, [&](const WorkerView& view) {
        return (state && view.state != *state) || (kind && !contains(view.row.kinds, *kind)) ||
               (queue && !contains(view.row.queues, *queue)) ||
               (owners && !owners->contains(view.row.id));
    });
    return workers;
}

int list(CommandContext& context) {
    std::vector<WorkerView> workers;
    if (std::optional<Store> store = open_if_exists(context)) {
        workers = store->read([&](engine::Tables& tables) { return read_chosen(tables, context); });
    }
    const auto page = cut_page(std::move(workers), context.args,
                               [](const WorkerView& view) { return view.row.id; });
    return print_page(context.out, page,
                      {"WORKER", "STATE", "HOST", "PID", "RUNNING", "QUEUES", "KINDS", "SINCE"},
                      write_worker, table_row);
}

}  // namespace

constinit const CommandSpec kWorkerListCommand = {
    .name = "worker list",
    .summary = "who is alive, and how much runs there",
    .about =
        "A worker is live, stopping, lapsed (it has not been heard of for longer than its\n"
        "lease) or dead (its process is proven gone); recovery forgets it once its jobs are\n"
        "taken care of.",
    .options = kListOptions,
    .examples = "  sekali worker list\n  sekali worker list --state live --queue mail --json",
    .run = list,
};

}  // namespace sekali::cli
