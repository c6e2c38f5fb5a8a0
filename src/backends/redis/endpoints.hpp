#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/redis/address.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// A place that a socket connects to.
struct Endpoint {
    sockaddr_storage address{};
    socklen_t size = 0;
    std::string host;  ///< As it was written, for certificates.
};

/// What can be told without asking anybody: a unix socket or a numeric address; nothing for a
/// name. Errors: `kUsage` for a path that is too long.
[[nodiscard]] Result<std::optional<std::vector<Endpoint>>> endpoints_at_once(
    const std::string& unix_path, const HostPort& host);

/// Every address that a name has. Blocks for as long as the resolver does.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const HostPort& host);

}  // namespace sekali::redis
