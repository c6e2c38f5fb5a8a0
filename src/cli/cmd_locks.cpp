#include <fmt/format.h>

#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/listing.hpp"
#include "cli/outside_locks.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {
namespace {

constexpr PositionalSpec kOneLock[] = {{.name = "NAME",
                                        .help = "a lock key, or the name given to sekali lock",
                                        .kind = ValueKind::kKey}};

struct LockView {
    engine::LockRow row;
    engine::Millis ttl{};
};

/// Nothing for a lock that is free, or whose holder's lease or life is over.
std::optional<LockView> view_lock(engine::Tables& tables, engine::LockRow row) {
    const bool held = !row.owner.empty() && row.lease_until > tables.now() &&
                      tables.owner_fate(row.owner) != engine::OwnerFate::kDead;
    if (!held) return std::nullopt;
    const engine::Millis ttl = row.lease_until - tables.now();
    return LockView{std::move(row), ttl};
}

std::string backend_key(const engine::LockRow& row) {
    return row.ns + ":" + row.name;
}

void write_lock(base::JsonWriter& json, const LockView& view) {
    const engine::LockRow& row = view.row;
    std::optional<std::string> job_id;
    if (!row.job_id.empty()) job_id = row.job_id;
    json.begin_object().field("name", row.name).field("backend_key", backend_key(row));
    json.field("owner", row.owner).field("token", row.token).field("ttl_ms", view.ttl.count());
    json.field("holders", 1).field("fence", row.fence).field("job_id", job_id).end_object();
}

int list(CommandContext& context) {
    if (const auto outside = outside_locks(context)) return list_outside_locks(context, *outside);
    std::vector<LockView> locks;
    if (std::optional<Store> store = open_if_exists(context)) {
        store->read([&](engine::Tables& tables) {
            for (engine::LockRow& row : tables.held_locks(context.ns())) {
                if (auto view = view_lock(tables, std::move(row))) locks.push_back(*view);
            }
        });
    }
    const auto name_of = [](const LockView& view) { return view.row.name; };
    return print_page(context.out, cut_page(std::move(locks), context.args, name_of),
                      {"LOCK", "OWNER", "JOB", "FENCE", "LAPSES IN"}, write_lock,
                      [](const LockView& view) {
                          return std::vector<std::string>{
                              view.row.name, view.row.owner, view.row.job_id,
                              std::to_string(view.row.fence), base::format_duration(view.ttl)};
                      });
}

int show(CommandContext& context) {
    if (const auto outside = outside_locks(context)) return show_outside_lock(context, *outside);
    const std::string name = *context.args.positional(0);
    std::optional<Store> store = open_if_exists(context);
    if (!store) throw Failure(free_lock(name));
    const auto view = store->read([&](engine::Tables& tables) -> std::optional<LockView> {
        auto row = tables.lock(context.ns(), name);
        if (!row) return std::nullopt;
        return view_lock(tables, *std::move(row));
    });
    if (!view) throw Failure(free_lock(name));
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        write_lock(json, *view);
        context.out.line(document);
        return kExitDone;
    }
    const engine::LockRow& row = view->row;
    context.out.line(fmt::format("name         {}", base::printable(row.name)));
    context.out.line(fmt::format("backend key  {}", base::printable(backend_key(row))));
    context.out.line(fmt::format("owner        {}", row.owner));
    if (!row.job_id.empty()) context.out.line(fmt::format("job          {}", row.job_id));
    context.out.line(fmt::format("token        {}", row.token));
    context.out.line(fmt::format("fence        {}", row.fence));
    context.out.line(fmt::format("lapses in    {}", base::format_duration(view->ttl)));
    return kExitDone;
}

int break_one(CommandContext& context) {
    if (const auto outside = outside_locks(context)) return break_outside_lock(context, *outside);
    const std::string name = *context.args.positional(0);
    confirm(context, fmt::format("break lock {}", base::quoted(name)));
    Store store = open_store(context, OpenMode::kExisting);
    const std::string who = acting_person(context.args);
    const bool broken = store.transact([&](engine::Tables& tables) {
        const auto lock = tables.lock(context.ns(), name);
        if (lock && !lock->owner.empty()) {
            engine::JobRow nobody;
            nobody.job.ns = context.ns();
            engine::note(tables, engine::EventKind::kLockLost,
                         tables.job(lock->job_id).value_or(nobody), lock->owner,
                         fmt::format("lock {} broken by {}", name, who));
        }
        return engine::break_lock(tables, context.ns(), name);
    });
    if (!broken) throw Failure(free_lock(name));
    return say_broken(context, name, "its holder is told and can no longer commit");
}

}  // namespace

constinit const CommandSpec kLocksListCommand = {
    .name = "locks list",
    .summary = "locks that are held",
    .about = "Lists the locks of jobs and those of `sekali lock`, by name, a page at a time.",
    .options = kPageOptions,
    .examples = "  sekali locks list\n  sekali locks list --limit 20 --json",
    .run = list,
};

constinit const CommandSpec kLocksShowCommand = {
    .name = "locks show",
    .summary = "who holds a lock, and for how long",
    .about = "A lock that is free exits with 4.",
    .positionals = kOneLock,
    .examples = "  sekali locks show order:1001\n  sekali locks show deploy --json",
    .run = show,
};

constinit const CommandSpec kLocksBreakCommand = {
    .name = "locks break",
    .summary = "take a lock away from its holder",
    .about =
        "The next in line may have it at once. The holder's commit will be refused; what it\n"
        "does outside until it notices nothing can stop.",
    .positionals = kOneLock,
    .options = kWhoOptions,
    .examples = "  sekali locks break order:1001 --yes",
    .run = break_one,
};

}  // namespace sekali::cli
