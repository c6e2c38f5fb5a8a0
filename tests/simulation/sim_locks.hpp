#pragma once

#include <map>
#include <set>
#include <string>

#include "engine/ports.hpp"

namespace sekali::sim {

using engine::Millis;

/// A lock service outside the store, as a Redis is: it expires by its own clock, forgets everything
/// when it restarts, and goes back to what its replica knew when it fails over.
class LockService {
 public:
    explicit LockService(double clock_rate) : clock_rate_(clock_rate) {}

    [[nodiscard]] engine::LockReply execute(const engine::LockCommand& command, Millis now);
    /// Whether this token was asked for here; a release is its last word.
    [[nodiscard]] bool knows(const engine::LockCommand& command) const;
    /// The replica has caught up.
    void replicate() { replica_ = grants_; }
    void restart() { grants_.clear(); }
    void fail_over() { grants_ = replica_; }

 private:
    struct Grant {
        std::string owner;
        std::string token;
        Millis until{};  ///< By the service's clock.
    };
    engine::LockReply acquire(const engine::LockAcquire& request, Millis now);
    engine::LockReply renew(const engine::LockRenew& request, Millis now);
    engine::LockReply release(const engine::LockRelease& request, Millis now);
    [[nodiscard]] Grant* live(const std::string& name, Millis now);

    double clock_rate_;
    std::map<std::string, Grant> grants_;
    std::map<std::string, Grant> replica_;
    std::set<std::string> tokens_;
};

}  // namespace sekali::sim
