#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "engine/ports.hpp"
#include "engine/worker_machine.hpp"
#include "sekali/lock.hpp"

namespace sekali::client {

/// Where the locks of a `LockClient` are. Thread-safe.
class LockService {
 public:
    struct Grant {
        engine::LockReply reply;
        engine::LocalTime asked;  ///< From before the request that was granted.
    };

    virtual ~LockService() = default;
    [[nodiscard]] virtual engine::LockPort& port() = 0;
    /// Unique for each grant.
    [[nodiscard]] virtual std::string new_token() = 0;
    /// Takes the lock, waiting for as long as it is said to: without end for an empty `wait`.
    /// Blocks. Errors as `LockClient::acquire`.
    [[nodiscard]] virtual Result<Grant> acquire(engine::LockAcquire request,
                                                std::optional<engine::Millis> wait,
                                                const std::stop_token& stop) = 0;
    /// How much of a life is certain, counted by this host's clock from before it was asked for.
    [[nodiscard]] virtual engine::Millis certain(engine::Millis life) const = 0;
};

/// The locks of a store with rows; of the default one for an empty URL.
[[nodiscard]] Result<std::shared_ptr<LockService>> open_store_locks(std::string_view url);

/// The locks of a Redis.
[[nodiscard]] Result<std::shared_ptr<LockService>> open_redis_locks(
    std::string_view url, const LockClientOptions& options);

}  // namespace sekali::client
