#include "cli/outside_locks.hpp"

#include <fmt/format.h>

#include <utility>

#include "backends/redis/address.hpp"
#include "backends/redis/lock_admin.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/listing.hpp"
#include "cli/people.hpp"

namespace sekali::cli {
namespace {

using redis::LockView;

redis::LockAdmin admin_of(const OutsideLocks& locks) {
    const LockClientOptions& options = locks.options;
    return redis::LockAdmin::open(locks.url, {options.profile, options.prefix}).value();
}

void write_view(base::JsonWriter& json, const LockView& view) {
    json.begin_object().field("name", view.name).field("backend_key", view.key);
    json.field("owner", view.owner).field("token", view.owner).field("ttl_ms", view.left.count());
    json.field("holders", view.holders).field("fence", view.fence);
    json.field("job_id", nullptr).end_object();
}

std::string left_text(const LockView& view) {
    return view.left.count() < 0 ? "never" : base::format_duration(view.left);
}

}  // namespace

std::optional<OutsideLocks> outside_locks(const CommandContext& context) {
    const Arguments& args = context.args;
    auto url = args.text("lock-url");
    if (!url) url = args.text("url");
    const bool outside = url && redis::is_redis_url(*url);
    for (const std::string_view option : {"lock-prefix", "lock-profile"}) {
        if (outside || !args.from_call(option)) continue;
        throw Failure(base::usage_error(fmt::format("--{} is for locks on redis", option),
                                        "name it: --lock-url redis://HOST"));
    }
    if (!outside) return std::nullopt;
    redis::parse_address(*url).value();
    OutsideLocks locks{.url = *url, .options = {}};
    locks.options.ns = context.ns();
    locks.options.prefix = args.text("lock-prefix");
    if (args.text_or("lock-profile", "redisson") == "string") {
        locks.options.profile = LockProfile::kString;
    }
    return locks;
}

Error free_lock(std::string_view name) {
    return {.code = ErrorCode::kNotFound,
            .message = fmt::format("lock {} is free", base::quoted(name)),
            .hint = "sekali locks list shows the ones that are held"};
}

int say_broken(CommandContext& context, std::string_view name, std::string_view consequence) {
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("name", name).field("status", "broken").end_object();
        context.out.line(document);
    } else {
        context.out.note(fmt::format("broke lock {}: {}", base::quoted(name), consequence));
    }
    return kExitDone;
}

int list_outside_locks(CommandContext& context, const OutsideLocks& locks) {
    std::vector<LockView> views = admin_of(locks).list(context.ns()).value();
    const auto name_of = [](const LockView& view) { return view.name; };
    return print_page(
        context.out, cut_page(std::move(views), context.args, name_of),
        {"LOCK", "OWNER", "HOLDERS", "FENCE", "LAPSES IN"}, write_view, [](const LockView& view) {
            return std::vector<std::string>{view.name, view.owner, std::to_string(view.holders),
                                            std::to_string(view.fence), left_text(view)};
        });
}

int show_outside_lock(CommandContext& context, const OutsideLocks& locks) {
    const std::string name = *context.args.positional(0);
    const auto view = admin_of(locks).show(context.ns(), name).value();
    if (!view) throw Failure(free_lock(name));
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        write_view(json, *view);
        context.out.line(document);
        return kExitDone;
    }
    context.out.line(fmt::format("name         {}", base::printable(view->name)));
    context.out.line(fmt::format("backend key  {}", base::printable(view->key)));
    context.out.line(fmt::format("owner        {}", base::printable(view->owner)));
    context.out.line(fmt::format("holders      {}", view->holders));
    context.out.line(fmt::format("fence        {}", view->fence));
    context.out.line(fmt::format("lapses in    {}", left_text(*view)));
    return kExitDone;
}

int break_outside_lock(CommandContext& context, const OutsideLocks& locks) {
    const std::string name = *context.args.positional(0);
    confirm(context, fmt::format("break lock {}", base::quoted(name)));
    if (!admin_of(locks).take_away(context.ns(), name).value()) throw Failure(free_lock(name));
    return say_broken(context, name, "its holder finds out at its next renewal");
}

}  // namespace sekali::cli
