#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.hpp"

namespace sekali::cli {

/// Where queue, store and locks are.
struct StoreAddress {
    std::string postgres;  ///< The whole URL of a PostgreSQL database; empty: it is SQLite.
    std::string path;      ///< Of the SQLite database.
    bool synchronous_full = true;
    bool is_default = false;  ///< Nobody chose it.

    bool operator==(const StoreAddress&) const = default;
    /// For people to read: it holds no secret.
    [[nodiscard]] std::string url() const;
    /// With how it is to be opened.
    [[nodiscard]] std::string full_url() const;
};

/// What the flags, the environment and the file say; without any of them a database in the state
/// folder of the user, so that cron and shell share keys. Throws `Failure` with `kUsage` for what
/// is not supported.
[[nodiscard]] StoreAddress store_address(const Arguments& args,
                                         const Arguments::Environment& environment);

/// Reads one URL; `field` is where it was written. Throws `Failure` with `kUsage`; the message
/// holds no secret.
[[nodiscard]] StoreAddress parse_store_url(std::string_view field, std::string_view url);

}  // namespace sekali::cli
