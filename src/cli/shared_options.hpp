#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "cli/spec.hpp"

// Flags that several commands take, in one wording.
namespace sekali::cli {

inline constexpr std::array<OptionSpec, 4> kFilterOptions{{
    {.name = "state",
     .value = "STATE",
     .help = "only jobs in this state",
     .kind = ValueKind::kChoice,
     .choices = "scheduled|ready|waiting|running|held|succeeded|duplicate|dead|cancelled"},
    {.name = "kind", .value = "KIND", .help = "only this kind", .kind = ValueKind::kName},
    {.name = "queue", .value = "QUEUE", .help = "only this queue", .kind = ValueKind::kName},
    {.name = "key",
     .value = "KEY",
     .help = "only this idempotency key, exactly",
     .kind = ValueKind::kKey},
}};

inline constexpr std::array<OptionSpec, 2> kPageOptions{{
    {.name = "limit",
     .value = "N",
     .help = "at most so many; default 100",
     .kind = ValueKind::kInteger,
     .min = 1,
     .max = 10'000},
    {.name = "after", .value = "NEXT", .help = "goes on behind the `next` of an earlier page"},
}};

inline constexpr std::array<OptionSpec, 2> kWhoOptions{{
    {.name = "as", .value = "NAME", .help = "who did it, for the history; default is the login"},
    {.name = "yes", .help = "does not ask first", .kind = ValueKind::kFlag},
}};

inline constexpr std::array<OptionSpec, 2> kBulkOptions{{
    {.name = "dry-run", .help = "tells what it would do", .kind = ValueKind::kFlag},
    {.name = "rate", .value = "N", .help = "at most so many jobs a second, e.g. 5 or 5/s"},
}};

/// The flags of a command from several lists.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto join_options(const std::array<OptionSpec, Sizes>&... lists) {
    std::array<OptionSpec, (Sizes + ...)> all{};
    std::size_t at = 0;
    const auto take = [&](const auto& list) {
        for (const OptionSpec& option : list)
            all[at++] = option;
    };
    (take(lists), ...);
    return all;
}

}  // namespace sekali::cli
