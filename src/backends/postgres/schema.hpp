#pragma once

#include <cstdint>
#include <string>

#include "backends/postgres/connection.hpp"

namespace sekali::postgres {

/// The version that this build works with.
[[nodiscard]] std::int64_t newest_schema();

/// Creates the schema or brings it to this build's version, many at once if need be. Throws
/// `SqlFailure`.
void migrate(Connection& connection, const std::string& schema);

/// Refuses a schema that this build cannot work with. Throws `Failure`.
void require_version(Connection& connection, const std::string& schema);

}  // namespace sekali::postgres
