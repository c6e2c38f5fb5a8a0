#pragma once

#include "backends/redis/address.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// Asks one Sentinel after the other where the primary of the address's group is. Blocks for up to
/// the address's timeout for each that does not answer.
[[nodiscard]] Result<HostPort> find_primary(const Address& address);

}  // namespace sekali::redis
