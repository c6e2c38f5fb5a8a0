#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/lock_names.hpp"
#include "backends/redis/server.hpp"
#include "engine/ports.hpp"

namespace sekali::redis {

struct LockSettings {
    LockProfile profile = LockProfile::kRedisson;
    /// Before every name; `sekali:NS:lock:` where nothing is set.
    std::optional<std::string> prefix{};
};

/// The locks of a Redis. The token of a grant is what the wire calls its owner, so that nobody
/// needs more than the token to free it. Thread-safe.
class LockPort final : public engine::LockPort {
 public:
    LockPort(std::shared_ptr<Server> server, LockSettings settings)
        : server_(std::move(server)), settings_(std::move(settings)) {}

    void submit(std::vector<Call> calls) override;
    /// Asks for one lock; where there is no connection by `send_by` it is not asked for.
    void acquire(const engine::LockAcquire& command, TimePoint send_by,
                 std::function<void(Result<engine::LockReply>)> done);
    [[nodiscard]] bool in_store() const override { return false; }

    [[nodiscard]] Server& server() const { return *server_; }
    [[nodiscard]] const LockSettings& settings() const { return settings_; }
    /// What the name is called in Redis.
    [[nodiscard]] std::string key_of(std::string_view ns, std::string_view name) const;
    /// Where a release of it is told.
    [[nodiscard]] std::string channel_of(const engine::LockAcquire& request) const;

 private:
    using Done = std::function<void(Result<engine::LockReply>)>;
    struct Renewals;

    [[nodiscard]] redis::Call acquisition(const engine::LockAcquire& command, Done done) const;
    [[nodiscard]] redis::Call release(const engine::LockRelease& command, Done done) const;
    [[nodiscard]] redis::Call renew_permit(const engine::LockRenew& command, Done done) const;

    std::shared_ptr<Server> server_;
    const LockSettings settings_;
};

}  // namespace sekali::redis
