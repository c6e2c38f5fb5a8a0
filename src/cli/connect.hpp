#pragma once

#include <cstdint>
#include <optional>

#include "cli/address.hpp"
#include "cli/context.hpp"
#include "cli/store.hpp"

namespace sekali::cli {

/// What a command needs of its store.
enum class OpenMode : std::uint8_t {
    kMigrate,   ///< Makes and upgrades it.
    kCreate,    ///< As above where it is a file; says on stderr where when nobody chose that.
    kExisting,  ///< Reads and writes what is there.
    kReadOnly,
};

[[nodiscard]] bool exists(const StoreAddress& address);

/// Where the store of a command is that makes one where there is none: its folder is there behind
/// the call, and stderr says where that is when nobody chose it. Throws `Failure`.
[[nodiscard]] StoreAddress prepare_store(CommandContext& context);

/// Opens the store that the flags, the environment and the file name. Throws `Failure`: `kNotFound`
/// where there is none yet and the command does not make one.
[[nodiscard]] Store open_store(CommandContext& context, OpenMode mode);

/// As `kReadOnly`, but nothing where there is no store yet, which holds no jobs.
[[nodiscard]] std::optional<Store> open_if_exists(CommandContext& context);

}  // namespace sekali::cli
