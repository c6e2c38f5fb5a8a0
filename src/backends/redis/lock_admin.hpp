#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/lock_port.hpp"
#include "backends/redis/open.hpp"

namespace sekali::redis {

/// A lock or semaphore that is held.
struct LockView {
    std::string name;
    std::string key;    ///< In Redis.
    std::string owner;  ///< Of a semaphore the one whose permit ends first.
    std::uint64_t fence = 0;
    Millis left{};  ///< Negative: without end.
    std::uint64_t holders = 0;
};

/// What people ask about the locks of a Redis. Blocks.
class LockAdmin {
 public:
    /// Errors: as `open_server`.
    [[nodiscard]] static Result<LockAdmin> open(std::string_view url, LockSettings settings);

    /// Nothing when it is free.
    [[nodiscard]] Result<std::optional<LockView>> show(std::string_view ns, std::string_view name);
    /// Those of the namespace, in no order. `kUsage` without a prefix, because then any key might
    /// be a lock.
    [[nodiscard]] Result<std::vector<LockView>> list(std::string_view ns);
    /// Takes the lock away from its holder; false when it was free.
    [[nodiscard]] Result<bool> take_away(std::string_view ns, std::string_view name);

 private:
    explicit LockAdmin(OpenServer opened, LockSettings settings);
    [[nodiscard]] Call show_call(std::string key) const;

    OpenServer opened_;
    std::unique_ptr<LockPort> port_;
};

}  // namespace sekali::redis
