#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/context.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {

/// Who to name in the history: `--as`, else the login name.
[[nodiscard]] std::string acting_person(const Arguments& args);

/// Asks on a terminal whether to go on; elsewhere `--yes` must have been given. Throws `Failure`:
/// `kUsage` without it, `kCancelled` when the answer is no.
void confirm(CommandContext& context, std::string_view question);

/// Jobs a second that `--rate` allows; nothing: as fast as it goes. Throws `Failure` (`kUsage`).
[[nodiscard]] std::optional<std::uint64_t> parse_rate(const Arguments& args);

/// Why the operation was refused, in words, as an error with its exit status. `doing` is what was
/// asked for: `cancel`, `retry`, …
[[nodiscard]] Error refusal_of(const engine::AdminReply& reply, std::string_view doing,
                               std::string_view id);

}  // namespace sekali::cli
