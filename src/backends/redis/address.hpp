#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::redis {

enum class Topology : std::uint8_t { kSingle, kSentinel, kCluster };

struct HostPort {
    std::string host;
    std::uint16_t port = 0;
    bool operator==(const HostPort&) const = default;
};

/// Where a Redis is and how one logs in.
struct Address {
    Topology topology = Topology::kSingle;
    bool tls = false;
    std::vector<HostPort> hosts;  ///< One for a single server; empty for a unix socket.
    std::string unix_path;
    std::string user;  ///< Empty: the server's default user.
    std::string password;
    int db = 0;
    std::string master;  ///< Sentinel's name of the group.
    std::string ca_file;
    std::string cert_file;
    std::string key_file;
    /// Longest wait for a reply.
    std::chrono::milliseconds timeout{2000};

    bool operator==(const Address&) const = default;
    /// For people: without user, password and parameters.
    [[nodiscard]] std::string printable() const;
};

[[nodiscard]] bool is_redis_url(std::string_view url);

/// Reads `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`, `rediss://…` (TLS), `redis+unix:/PATH`,
/// `redis+sentinel://HOST,HOST/NAME[/DB]`, `redis+cluster://HOST,HOST`; user and password are
/// percent-encoded. Parameters: `db`, `timeout`, `tls`, `ca`, `cert`, `key`. Errors: `kUsage`; the
/// message holds nothing of the URL but its scheme and the names of parameters.
[[nodiscard]] Result<Address> parse_address(std::string_view url);

}  // namespace sekali::redis
