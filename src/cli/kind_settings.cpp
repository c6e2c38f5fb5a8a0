#include "cli/arguments.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr std::uint64_t kLeastLockTtlMs = 500;

constexpr OptionSpec kKindSettings[] = {
    {.name = "exec", .value = "CMD", .help = "the command that handles it", .kind = kText},
    {.name = "http", .value = "URL", .help = "the address that handles it", .kind = kText},
    {.name = "timeout", .value = "D", .help = "longest run", .kind = kDuration},
    {.name = "grace", .value = "D", .help = "from SIGTERM to SIGKILL", .kind = kDuration},
    {.name = "lock-ttl",
     .value = "D",
     .help = "life of a lock without renewal",
     .kind = kDuration,
     .min = kLeastLockTtlMs},
    {.name = "on-busy",
     .value = "WHAT",
     .help = "when the lock is held by another",
     .kind = kChoice,
     .choices = "wait|skip|fail"},
    {.name = "on-lock-unavailable",
     .value = "WHAT",
     .help = "when the locks' server is out of reach",
     .kind = kChoice,
     .choices = "wait|fail|proceed"},
    {.name = "effects",
     .value = "WHERE",
     .help = "where its effects happen",
     .kind = kChoice,
     .choices = "outside|steps|commit"},
    {.name = "on-unknown", .value = "WHAT", .help = "rerun, hold or probe:CMD", .kind = kText},
    {.name = "record",
     .value = "HOW",
     .help = "whether an idempotency record is kept",
     .kind = kChoice,
     .choices = "kept|none"},
    {.name = "max-crashes",
     .value = "N",
     .help = "crashes until it is dead",
     .kind = kInteger,
     .min = 1,
     .max = 1000},
    {.name = "max-attempts",
     .value = "N",
     .help = "attempts until it is dead",
     .kind = kInteger,
     .min = 1,
     .max = 1'000'000'000},
    {.name = "max-age",
     .value = "D",
     .help = "from enqueue until no retry is made",
     .kind = kDuration},
    {.name = "retry-base", .value = "D", .help = "first retry delay", .kind = kDuration},
    {.name = "retry-factor",
     .value = "X",
     .help = "growth of the delay",
     .kind = kDecimal,
     .min = 1,
     .max = 100},
    {.name = "retry-cap", .value = "D", .help = "longest retry delay", .kind = kDuration},
    {.name = "retry-jitter",
     .value = "X",
     .help = "share of the delay that is random",
     .kind = kDecimal,
     .min = 0,
     .max = 1},
    {.name = "keep", .value = "D", .help = "retention of its records", .kind = kDuration},
    {.name = "fingerprint", .value = "RULE", .help = "what tells payloads apart", .kind = kText},
    {.name = "queue", .value = "NAME", .help = "where it is enqueued", .kind = kName},
    {.name = "priority",
     .value = "0..9",
     .help = "larger goes first",
     .kind = kInteger,
     .min = 0,
     .max = 9},
    {.name = "unique-until",
     .value = "WHEN",
     .help = "how long it keeps its unique key",
     .kind = kChoice,
     .choices = "start|end"},
    {.name = "unique-for",
     .value = "D",
     .help = "bound of last resort of a unique key",
     .kind = kDuration},
};

}  // namespace

std::span<const OptionSpec> kind_settings() {
    return kKindSettings;
}

}  // namespace sekali::cli
