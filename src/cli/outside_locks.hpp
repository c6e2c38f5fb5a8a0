#pragma once

#include <optional>
#include <string>

#include "cli/context.hpp"
#include "sekali/lock.hpp"

namespace sekali::cli {

/// Locks that are not the store's own rows.
struct OutsideLocks {
    std::string url;
    LockClientOptions options;
};

/// The Redis that `--lock-url`, or for commands about locks alone `--url`, names; nothing where the
/// locks are in the store. Throws `Failure` with `kUsage`.
[[nodiscard]] std::optional<OutsideLocks> outside_locks(const CommandContext& context);

/// `locks list|show|break` of a Redis.
int list_outside_locks(CommandContext& context, const OutsideLocks& locks);
int show_outside_lock(CommandContext& context, const OutsideLocks& locks);
int break_outside_lock(CommandContext& context, const OutsideLocks& locks);

/// What a lock that nobody holds is answered with.
[[nodiscard]] Error free_lock(std::string_view name);

/// The answer of `locks break`; people are told the consequence for the holder as well. Returns the
/// exit status.
int say_broken(CommandContext& context, std::string_view name, std::string_view consequence);

}  // namespace sekali::cli
