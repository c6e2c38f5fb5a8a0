#include <fmt/format.h>

#include <limits>
#include <random>

#include "base/backoff.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "cli/command_table.hpp"
#include "cli/context.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr OptionSpec kOptions[] = {
    {.name = "attempt",
     .value = "N",
     .help = "the failed attempt; default is each one up to the limit",
     .kind = kInteger,
     .repeated = true,
     .min = 1},
    {.name = "base",
     .value = "D",
     .help = "delay after the first attempt; default 1s",
     .kind = kDuration},
    {.name = "factor",
     .value = "X",
     .help = "what each attempt multiplies it by, 1 to 100; default 2",
     .kind = kDecimal,
     .min = 1,
     .max = 100},
    {.name = "cap", .value = "D", .help = "longest delay; default 10m", .kind = kDuration},
    {.name = "jitter",
     .value = "X",
     .help = "share of the delay, 0 to 1, that is taken away at random; default 0.25",
     .kind = kDecimal,
     .min = 0,
     .max = 1},
};
constexpr PositionalSpec kPositionals[] = {
    {.name = "N", .help = "more attempts", .kind = kText, .required = false, .repeated = true},
};

RetryPolicy policy_of(const Arguments& args) {
    RetryPolicy policy;
    policy.base = args.duration("base").value_or(policy.base);
    policy.factor = args.decimal("factor").value_or(policy.factor);
    policy.cap = args.duration("cap").value_or(policy.cap);
    policy.jitter = args.decimal("jitter").value_or(policy.jitter);
    if (policy.cap < policy.base) {
        throw Failure(base::usage_error(
            fmt::format("--cap {} is less than --base {}", base::format_duration(policy.cap),
                        base::format_duration(policy.base)),
            "the cap is the longest delay, and the base the first one"));
    }
    return policy;
}

std::vector<std::uint64_t> attempts_of(const Arguments& args, const RetryPolicy& policy) {
    std::vector<std::uint64_t> attempts;
    std::vector<std::string> words = args.all("attempt");
    words.insert(words.end(), args.positionals().begin(), args.positionals().end());
    for (const std::string& word : words) {
        constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
        attempts.push_back(base::parse_count("--attempt", word, 1, kLast).value());
    }
    for (std::uint64_t n = 1; words.empty() && n < policy.max_attempts; ++n)
        attempts.push_back(n);
    return attempts;
}

int run(CommandContext& context) {
    const RetryPolicy policy = policy_of(context.args);
    std::mt19937_64 generator(std::stoull(base::random_hex(8), nullptr, 16));
    std::uniform_real_distribution<double> random(0.0, 1.0);
    TextTable table({"ATTEMPT", "THEN WAITS"});
    std::string document;
    base::JsonWriter json(document);
    json.begin_object().field("items").begin_array();
    for (const std::uint64_t attempt : attempts_of(context.args, policy)) {
        const auto delay = backoff_delay(policy, attempt, random(generator));
        json.begin_object().field("attempt", attempt).field("delay_ms", delay.count()).end_object();
        table.add({std::to_string(attempt), base::format_duration(delay)});
    }
    json.end_array().end_object();
    context.out.json() ? context.out.line(document) : context.out.bytes(table.render());
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kBackoffCommand = {
    .name = "backoff",
    .summary = "print a retry schedule",
    .about =
        "Prints how long a job waits after each failed attempt: base * factor^(attempt-1), at\n"
        "most cap, of which a random share of up to jitter is taken away.",
    .positionals = kPositionals,
    .options = kOptions,
    .examples =
        "  sekali backoff\n"
        "  sekali backoff --attempt 1 --attempt 20 --base 5s --cap 1h --jitter 0",
    .run = run,
};

}  // namespace sekali::cli
