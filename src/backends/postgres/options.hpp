#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "engine/tables.hpp"

namespace sekali::postgres {

struct PostgresOptions {
    /// For libpq as it is: `postgres://…` or `postgresql://…`, without sekali's own parameters.
    std::string connection;
    std::string schema = "sekali";
    /// Creates and upgrades the schema; else it must be there.
    bool migrate = false;
    bool read_only = false;
    /// How long a server that does not answer is waited for, before a request is given up.
    engine::Millis patience{std::chrono::seconds{20}};
    engine::Millis connect_deadline{std::chrono::seconds{10}};
    /// One round trip, the waiting for rows that others have locked included.
    engine::Millis statement_deadline{std::chrono::seconds{30}};
    engine::Millis lock_deadline{std::chrono::seconds{5}};
    /// That what workers ask for shares.
    std::size_t connections = 2;

    // For tests.
    std::function<engine::StoreTime()> clock;  ///< Instead of the server's clock.
    std::function<engine::OwnerFate(std::string_view worker)> fate;
};

/// Reads `postgres://…?schema=NAME&…`: takes sekali's parameters out, leaves libpq's. Throws
/// `Failure` with `kUsage`.
[[nodiscard]] PostgresOptions parse_url(std::string_view url);

/// The URL without its password, for people to read.
[[nodiscard]] std::string without_secrets(std::string_view url);

[[nodiscard]] bool is_postgres_url(std::string_view url);

}  // namespace sekali::postgres
