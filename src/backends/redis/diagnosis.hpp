#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/redis/call.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// What a server says about how well it keeps what it was given.
struct Diagnosis {
    std::string server;              ///< Version.
    bool replica = false;            ///< It follows another, so it takes no writes.
    std::uint64_t memory_limit = 0;  ///< In bytes; 0: none.
    std::string eviction_policy;     ///< What it does at the limit.
    std::uint64_t evicted = 0;       ///< Keys, since its start.
    bool append_only = false;
    std::string append_fsync;  ///< Empty: it does not say (CONFIG is not allowed).
    bool snapshots = false;
    bool snapshots_known = false;
    std::uint64_t replicas = 0;
    Millis clock_ahead{};  ///< Of the server's clock, to this host's.
};

/// Asks it; writes nothing. Blocks. Errors: as `open_server`, and what the server says.
[[nodiscard]] Result<Diagnosis> diagnose(std::string_view url);

}  // namespace sekali::redis
