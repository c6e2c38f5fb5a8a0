#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/job_actions.hpp"
#include "cli/listing.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;
using observe::JobView;

constexpr PositionalSpec kOneSlot[] = {
    {.name = "KEY", .help = "the unique key, or the id of the job that holds it"}};
constexpr std::array<OptionSpec, 1> kKindOption{{
    {.name = "kind", .value = "KIND", .help = "the kind that the key belongs to", .kind = kName},
}};
constexpr std::array<OptionSpec, 4> kListFilters{{
    kFilterOptions[0],
    kFilterOptions[1],
    kFilterOptions[2],
    {.name = "key", .value = "KEY", .help = "only this unique or idempotency key", .kind = kKey},
}};
constexpr auto kListOptions = join_options(kListFilters, kPageOptions);
constexpr auto kFreeOptions = join_options(kKindOption, kWhoOptions);

/// Walks jobs until `wanted` of them hold a slot (of this key, where one is given); `filter.after`
/// is where to go on.
std::vector<JobView> slot_holders(engine::Tables& tables, engine::JobFilter& filter,
                                  std::size_t wanted, const std::optional<std::string>& key = {}) {
    std::vector<JobView> holders;
    do {
        filter.limit = wanted - holders.size();
        engine::Page<JobView> page = observe::list_jobs(tables, filter);
        for (JobView& view : page.items) {
            const engine::Envelope& job = view.row.job;
            const bool wanted_key = !key || job.unique_key == *key || job.key == *key;
            if (view.row.slot_held && wanted_key) holders.push_back(std::move(view));
        }
        filter.after = std::move(page.next);
    } while (!filter.after.empty() && holders.size() < wanted);
    return holders;
}

void write_slot(base::JsonWriter& json, const JobView& view) {
    const engine::JobRow& row = view.row;
    const bool until_start = row.job.unique_until == engine::UniqueUntil::kStart;
    json.begin_object().field("unique_key", row.job.unique_key).field("kind", row.job.kind);
    json.field("id", row.job.id).field("queue", row.job.queue);
    json.field("state", engine::to_string(view.state));
    json.field("until", until_start ? "start" : "end");
    json.field("enqueued_at", observe::shown_time(row.enqueued_at)).end_object();
}

int list(CommandContext& context) {
    engine::JobFilter filter = job_filter(context);
    std::vector<JobView> holders;
    if (std::optional<Store> store = open_if_exists(context)) {
        const std::size_t wanted = filter.limit;
        const std::optional<std::string> key = std::exchange(filter.key, std::nullopt);
        holders = store->read(
            [&](engine::Tables& tables) { return slot_holders(tables, filter, wanted, key); });
    } else {
        filter.after.clear();
    }
    const engine::Page<JobView> page{std::move(holders), std::move(filter.after)};
    return print_page(context.out, page, {"UNIQUE KEY", "KIND", "JOB", "STATE", "SINCE"},
                      write_slot, [](const JobView& view) {
                          return std::vector<std::string>{
                              view.row.job.unique_key, view.row.job.kind, view.row.job.id,
                              std::string(engine::to_string(view.state)),
                              observe::shown_time(view.row.enqueued_at)};
                      });
}

/// The holder's id; empty when the slot is free.
std::string find_holder(engine::Tables& tables, const std::string& ns, const std::string& key,
                        const std::optional<std::string>& kind) {
    constexpr std::size_t kPage = 1000;
    if (base::is_uuid(key) && observe::find_job(tables, ns, key)) return key;
    if (kind) {
        const auto holder = tables.unique_holder(ns, *kind, key);
        return holder ? holder->job.id : "";
    }
    engine::JobFilter filter;
    filter.ns = ns;
    std::vector<JobView> found;
    do {
        for (JobView& view : slot_holders(tables, filter, kPage, key)) {
            if (view.row.job.unique_key == key) found.push_back(std::move(view));
        }
    } while (!filter.after.empty());
    if (found.size() > 1) {
        throw Failure(base::usage_error(
            fmt::format("the unique key {} is held in {} kinds", base::quoted(key), found.size()),
            fmt::format("choose one with --kind {}", found.front().row.job.kind)));
    }
    return found.empty() ? "" : found.front().row.job.id;
}

int free_slot(CommandContext& context) {
    const std::string key = *context.args.positional(0);
    confirm(context, fmt::format("free the unique key {}", base::quoted(key)));
    const std::string who = acting_person(context.args);
    Store store = open_store(context, OpenMode::kExisting);
    std::string id;
    const engine::AdminReply reply = store.transact([&](engine::Tables& tables) {
        id = find_holder(tables, context.ns(), key, context.args.text("kind"));
        engine::AdminReply none;
        none.kind = engine::AdminReply::Kind::kNotFound;
        return id.empty() ? none : engine::free_unique(tables, id, who);
    });
    if (reply.kind != engine::AdminReply::Kind::kDone) {
        throw Failure({.code = ErrorCode::kNotFound,
                       .message = fmt::format("nobody holds the unique key {}", base::quoted(key)),
                       .hint = "sekali unique list shows who holds which"});
    }
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("id", id).field("unique_key", reply.row->job.unique_key);
        json.field("status", "freed").end_object();
        context.out.line(document);
    } else {
        context.out.line(id);
        context.out.flush();
        context.out.note("freed; the job itself stays as it is");
    }
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kUniqueListCommand = {
    .name = "unique list",
    .summary = "who holds which unique key",
    .options = kListOptions,
    .examples = "  sekali unique list --kind report.build",
    .run = list,
};

constinit const CommandSpec kUniqueFreeCommand = {
    .name = "unique free",
    .summary = "free a unique key without ending its job",
    .about =
        "Another job of the same unique key may then be enqueued beside the one that is there.",
    .positionals = kOneSlot,
    .options = kFreeOptions,
    .examples = "  sekali unique free report:daily --kind report.build --yes",
    .run = free_slot,
};

}  // namespace sekali::cli
