#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "observe/status.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr OptionSpec kOptions[] = {
    {.name = "max-age",
     .value = "D",
     .help = "longest time that a ready job may have waited",
     .kind = kDuration},
    {.name = "max-ready", .value = "N", .help = "most ready jobs", .kind = kInteger},
    {.name = "max-held", .value = "N", .help = "most held jobs", .kind = kInteger},
    {.name = "max-dead", .value = "N", .help = "most dead jobs", .kind = kInteger},
    {.name = "max-unserved",
     .value = "N",
     .help = "most queues that have jobs and no live worker",
     .kind = kInteger},
    {.name = "min-workers", .value = "N", .help = "fewest live workers", .kind = kInteger},
};

observe::CheckLimits limits_of(const Arguments& args) {
    observe::CheckLimits limits;
    limits.max_age = args.duration("max-age");
    limits.max_ready = args.integer("max-ready");
    limits.max_held = args.integer("max-held");
    limits.max_dead = args.integer("max-dead");
    limits.max_unserved = args.integer("max-unserved");
    limits.min_workers = args.integer("min-workers");
    return limits;
}

observe::Status read_numbers(CommandContext& context, const observe::CheckLimits& limits) {
    std::optional<Store> store = open_if_exists(context);
    if (!store) return {};
    // One more than is allowed tells all that the check needs.
    const std::uint64_t dead = limits.max_dead ? *limits.max_dead + 1 : 0;
    return store->read(
        [&](engine::Tables& tables) { return observe::read_status(tables, context.ns(), dead); });
}

int run(CommandContext& context) {
    const observe::CheckLimits limits = limits_of(context.args);
    const auto results = observe::check_status(read_numbers(context, limits), limits);
    if (results.empty()) {
        throw Failure(base::usage_error("check needs something to check",
                                        "e.g. sekali check --max-age 60s --max-dead 0"));
    }
    const bool ok = std::all_of(results.begin(), results.end(), [](const auto& r) { return r.ok; });
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("ok", ok).field("checks").begin_array();
        for (const observe::CheckResult& result : results) {
            json.begin_object().field("check", result.check).field("value", result.value);
            json.field("limit", result.limit).field("unit", result.unit);
            json.field("ok", result.ok).end_object();
        }
        json.end_array().end_object();
        context.out.line(document);
    } else {
        for (const observe::CheckResult& result : results) {
            context.out.line(fmt::format("{:<7} {:<13} {} {}, limit {}",
                                         result.ok ? "ok" : "FAILED", result.check, result.value,
                                         result.unit, result.limit));
        }
    }
    return ok ? kExitDone : kExitCheckFailed;
}

}  // namespace

constinit const CommandSpec kCheckCommand = {
    .name = "check",
    .summary = "exit 1 when a number is beyond its limit, for probes and alerts",
    .options = kOptions,
    .examples =
        "  sekali check --max-age 60s --max-dead 0\n"
        "  sekali check --max-held 0 --min-workers 1 --json",
    .run = run,
};

}  // namespace sekali::cli
