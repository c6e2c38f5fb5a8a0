#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sekali/lock.hpp"

namespace sekali::redis {

using sekali::LockProfile;

/// The keys and the channel of one lock.
struct LockNames {
    std::string key;
    std::string fence;    ///< A number that grows with each grant.
    std::string channel;  ///< Told of each release.
};

/// The keys and the channel of one semaphore, as Redisson's RPermitExpirableSemaphore.
struct PermitNames {
    std::string key;      ///< The number of free permits.
    std::string holders;  ///< A sorted set of permit ids by the end of their lives.
    std::string channel;
};

[[nodiscard]] LockNames lock_names(LockProfile profile, std::string key);
[[nodiscard]] PermitNames permit_names(std::string key);

/// The slot of a key in a Redis Cluster: CRC-16/XMODEM of its hash tag, modulo 16384, as the
/// cluster specification says.
[[nodiscard]] std::uint16_t cluster_slot(std::string_view key);

}  // namespace sekali::redis
