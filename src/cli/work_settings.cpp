#include "cli/work_settings.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/limits.hpp"
#include "base/shell_words.hpp"
#include "base/text.hpp"
#include "cli/address.hpp"
#include "cli/outside_locks.hpp"
#include "client/http_runner.hpp"
#include "observe/log.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr std::uint64_t kLeastLeaseMs = 500;

constexpr OptionSpec kOptions[] = {
    {
        .name = "queues",
        .value = "A,B",
        .help = "queues to serve; default is `default` alone",
        .kind = kNames,
        .origin = Origin::kSetting,
    },
    {
        .name = "concurrency",
        .value = "N",
        .help = "handlers at the same time, per process; default is processors x 2",
        .kind = kInteger,
        .origin = Origin::kSetting,
        .min = 1,
        .max = 4096,
    },
    {
        .name = "processes",
        .value = "N",
        .help = "worker processes under a supervisor; default is this one alone",
        .kind = kInteger,
        .origin = Origin::kSetting,
        .min = 1,
        .max = 1024,
    },
    {
        .name = "exec",
        .value = "KIND=CMD",
        .help = "handle a kind by a command",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "http",
        .value = "KIND=URL",
        .help = "handle a kind by POST requests",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "drain",
        .help = "end when nothing is left to run",
        .kind = kFlag,
        .origin = Origin::kFile,
    },
    {
        .name = "on-unknown",
        .value = "KIND=WHAT",
        .help = "rerun, hold, probe:CMD, or probe (each step asks its own), when nobody knows what "
                "a run did",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "effects",
        .value = "KIND=WHERE",
        .help = "outside, steps or commit: where its effects happen",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "on-busy",
        .value = "KIND=WHAT",
        .help = "wait, skip or fail, when its lock is held",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "on-lock-unavailable",
        .value = "KIND=WHAT",
        .help = "wait, fail or proceed, when --lock-url is out of reach",
        .origin = Origin::kFile,
        .repeated = true,
    },
    {
        .name = "lock-ttl",
        .value = "D",
        .help = "life of a lock without renewal; default 30s",
        .kind = kDuration,
        .origin = Origin::kSetting,
        .min = kLeastLeaseMs,
    },
    {
        .name = "lease",
        .value = "D",
        .help = "life of a claim without renewal; default 15s",
        .kind = kDuration,
        .origin = Origin::kSetting,
        .min = kLeastLeaseMs,
    },
    {
        .name = "timeout",
        .value = "D",
        .help = "longest run; default 5m",
        .kind = kDuration,
        .origin = Origin::kSetting,
    },
    {
        .name = "grace",
        .value = "D",
        .help = "from a stop request to the forced end; default 25s",
        .kind = kDuration,
        .origin = Origin::kSetting,
    },
    {
        .name = "max-crashes",
        .value = "N",
        .help = "crashes until a job is dead; default 3",
        .kind = kInteger,
        .origin = Origin::kSetting,
        .min = 1,
        .max = 1000,
    },
    {
        .name = "retry-base",
        .value = "D",
        .help = "first retry delay; default 1s",
        .kind = kDuration,
        .origin = Origin::kSetting,
    },
    {
        .name = "retry-factor",
        .value = "X",
        .help = "what each attempt multiplies it by; default 2",
        .kind = kDecimal,
        .origin = Origin::kSetting,
        .min = 1,
        .max = 100,
    },
    {
        .name = "retry-cap",
        .value = "D",
        .help = "longest retry delay; default 10m",
        .kind = kDuration,
        .origin = Origin::kSetting,
    },
    {
        .name = "log-level",
        .value = "LEVEL",
        .help = "least important lines that are logged; default info",
        .kind = kChoice,
        .origin = Origin::kSetting,
        .choices = "debug|info|warning|error",
    },
    {
        .name = "log-hash-keys",
        .help = "logs keys as hashes",
        .kind = kFlag,
        .origin = Origin::kSetting,
    },
};

/// `KIND=REST` of a flag.
std::pair<std::string, std::string> split_kind(std::string_view flag, const std::string& value) {
    const std::size_t at = value.find('=');
    if (at == std::string::npos || at + 1 == value.size()) {
        throw Failure(
            base::usage_error(fmt::format("--{} {} must be KIND=…", flag, base::quoted(value))));
    }
    std::string kind = value.substr(0, at);
    base::check_name(fmt::format("the kind of --{}", flag), kind).value();
    return {std::move(kind), value.substr(at + 1)};
}

[[noreturn]] void refuse_choice(std::string_view field, std::string_view value,
                                std::string_view choices) {
    throw Failure(base::usage_error(
        fmt::format("{} must be {}, not {}", field, choices, base::quoted(value))));
}

Effects read_effects(std::string_view field, std::string_view value) {
    if (const auto effects = engine::parse_effects(value)) return *effects;
    refuse_choice(field, value, "outside, steps or commit");
}

OnLockUnavailable read_on_lock_unavailable(std::string_view field, std::string_view value) {
    if (const auto policy = engine::parse_on_lock_unavailable(value)) return *policy;
    refuse_choice(field, value, "wait, fail or proceed");
}

OnBusy read_on_busy(std::string_view field, std::string_view value) {
    if (const auto on_busy = engine::parse_on_busy(value)) return *on_busy;
    refuse_choice(field, value, "wait, skip or fail");
}

void read_on_unknown(std::string_view field, std::string_view value,
                     client::KindSettings& settings) {
    constexpr std::string_view kProbe = "probe:";
    settings.probe.clear();
    if (const auto policy = engine::parse_on_unknown(value)) {
        settings.options.on_unknown = *policy;
    } else if (value.starts_with(kProbe)) {
        settings.options.on_unknown = OnUnknown::kProbe;
        settings.probe = base::split_command(value.substr(kProbe.size())).value();
    } else {
        refuse_choice(field, value, "rerun, hold or probe:CMD");
    }
}

void set_handler(client::KindSettings& settings, std::string_view field, std::string_view exec) {
    settings.exec = base::split_command(exec).value();
    settings.http.clear();
    if (settings.exec.empty()) {
        throw Failure(base::usage_error(fmt::format("{} names no command", field)));
    }
}

std::optional<std::chrono::milliseconds> duration_of(const std::optional<std::string>& text,
                                                     std::string_view field) {
    if (!text) return std::nullopt;
    return base::parse_duration(field, *text, base::DurationRule::kZeroAllowed).value();
}

std::optional<std::uint64_t> count_of(const std::optional<std::string>& text,
                                      std::string_view field) {
    if (!text) return std::nullopt;
    return base::parse_count(field, *text, 1, std::numeric_limits<std::uint64_t>::max()).value();
}

std::optional<double> decimal_of(const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    return std::stod(*text);
}

/// What the file's section of one kind says; its values have been checked.
client::KindSettings file_settings(const Arguments& args, const std::string& kind) {
    const auto of = [&](std::string_view key) { return args.of_kind(kind, key); };
    client::KindSettings settings;
    HandlerOptions& options = settings.options;
    options.timeout = duration_of(of("timeout"), "timeout");
    options.grace = duration_of(of("grace"), "grace");
    options.lock_ttl = duration_of(of("lock_ttl"), "lock_ttl");
    options.keep = duration_of(of("keep"), "keep");
    options.max_crashes = count_of(of("max_crashes"), "max_crashes");
    options.retry.base = duration_of(of("retry_base"), "retry_base");
    options.retry.cap = duration_of(of("retry_cap"), "retry_cap");
    options.retry.factor = decimal_of(of("retry_factor"));
    options.retry.jitter = decimal_of(of("retry_jitter"));
    options.retry.max_attempts = count_of(of("max_attempts"), "max_attempts");
    options.retry.max_age = duration_of(of("max_age"), "max_age");
    if (const auto value = of("effects")) options.effects = read_effects("effects", *value);
    if (const auto value = of("on_busy")) options.on_busy = read_on_busy("on_busy", *value);
    if (const auto value = of("on_lock_unavailable")) {
        options.on_lock_unavailable = read_on_lock_unavailable("on_lock_unavailable", *value);
    }
    if (const auto value = of("on_unknown")) read_on_unknown("on_unknown", *value, settings);
    if (const auto value = of("record")) {
        options.record = *value == "none" ? Record::kNone : Record::kKept;
    }
    if (const auto value = of("exec")) set_handler(settings, "exec", *value);
    if (const auto value = of("http")) settings.http = *value;
    return settings;
}

/// What is said of every kind: `taken` decides which of the values count.
template <typename Taken>
HandlerOptions general_options(const Arguments& args, Taken&& taken) {
    const auto duration = [&](std::string_view name) {
        return taken(name) ? args.duration(name) : std::nullopt;
    };
    HandlerOptions options;
    options.timeout = duration("timeout");
    options.grace = duration("grace");
    options.lock_ttl = duration("lock-ttl");
    if (taken("max-crashes")) options.max_crashes = args.integer("max-crashes");
    options.retry.base = duration("retry-base");
    options.retry.cap = duration("retry-cap");
    if (taken("retry-factor")) options.retry.factor = args.decimal("retry-factor");
    return options;
}

/// `KIND=REST` of each use of a flag; a kind is named once.
std::map<std::string, std::string> by_kind(const Arguments& args, std::string_view flag) {
    std::map<std::string, std::string> found;
    for (const std::string& value : args.all(flag)) {
        auto [kind, rest] = split_kind(flag, value);
        if (found.emplace(kind, std::move(rest)).second) continue;
        throw Failure(base::usage_error(fmt::format("--{} names the kind {} twice", flag, kind)));
    }
    return found;
}

/// Who handles a kind. A flag wins over what the file says of the other way.
void apply_handlers(const Arguments& args, client::WorkerProcessPlan& plan) {
    const auto commands = by_kind(args, "exec");
    const auto urls = by_kind(args, "http");
    const bool same_place = args.from_call("exec") == args.from_call("http");
    const auto apply_commands = [&] {
        for (const auto& [kind, command] : commands)
            set_handler(plan.settings[kind], "--exec", command);
    };
    const bool urls_win = args.from_call("http");
    if (urls_win) apply_commands();
    for (const auto& [kind, url] : urls) {
        if (same_place && commands.contains(kind)) {
            throw Failure(base::usage_error(
                fmt::format("the kind {} is given to --exec and to --http", kind), "choose one"));
        }
        plan.settings[kind].exec.clear();
        plan.settings[kind].http = url;
    }
    if (!urls_win) apply_commands();
}

/// Flags of one kind win over its section of the file.
void apply_flags(const Arguments& args, client::WorkerProcessPlan& plan) {
    apply_handlers(args, plan);
    for (const auto& [kind, what] : by_kind(args, "on-unknown"))
        read_on_unknown("--on-unknown", what, plan.settings[kind]);
    for (const auto& [kind, where] : by_kind(args, "effects"))
        plan.settings[kind].options.effects = read_effects("--effects", where);
    for (const auto& [kind, what] : by_kind(args, "on-lock-unavailable")) {
        plan.settings[kind].options.on_lock_unavailable =
            read_on_lock_unavailable("--on-lock-unavailable", what);
    }
    for (const auto& [kind, what] : by_kind(args, "on-busy"))
        plan.settings[kind].options.on_busy = read_on_busy("--on-busy", what);
}

observe::LogOptions log_options(const Arguments& args) {
    observe::LogOptions options;
    options.format = observe::log_format_for(options.fd);
    options.hash_keys = args.flag("log-hash-keys");
    options.least =
        observe::parse_log_level(args.text_or("log-level", "info")).value_or(options.least);
    return options;
}

}  // namespace

std::span<const OptionSpec> work_options() {
    return kOptions;
}

client::WorkerProcessPlan work_plan(const CommandContext& context) {
    const Arguments& args = context.args;
    client::WorkerProcessPlan plan;
    plan.url = store_address(args, context.environment).full_url();
    plan.options.ns = context.ns();
    if (args.has("queues")) plan.options.queues = args.names("queues");
    plan.options.concurrency = args.integer("concurrency").value_or(0);
    plan.options.lease = args.duration("lease").value_or(plan.options.lease);
    plan.options.grace = args.duration("grace").value_or(plan.options.grace);
    plan.options.drain = args.flag("drain");
    if (const auto locks = outside_locks(context)) {
        plan.options.lock_url = locks->url;
        plan.options.lock_profile = locks->options.profile;
        plan.options.lock_prefix = locks->options.prefix;
    }
    plan.processes = static_cast<int>(args.integer("processes").value_or(0));
    plan.log = log_options(args);
    plan.make_http = [](const auto& urls, std::shared_ptr<client::Inbox> inbox,
                        std::size_t requests) {
        return std::make_unique<client::HttpRunner>(urls, std::move(inbox), requests);
    };

    // A flag or a variable that speaks of all kinds wins over the file's section of one.
    const HandlerOptions spoken = general_options(args, [&](std::string_view name) {
        return args.from_call(name) || context.environment(env_name(name)).has_value();
    });
    for (const auto& [kind, section] : args.config().kinds) {
        client::KindSettings settings = file_settings(args, kind);
        settings.options = client::merged(spoken, settings.options);
        plan.settings.emplace(kind, std::move(settings));
    }
    apply_flags(args, plan);
    plan.overrides = general_options(args, [&](std::string_view name) { return args.has(name); });
    return plan;
}

}  // namespace sekali::cli
