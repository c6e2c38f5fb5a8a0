#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backends/redis/call.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// What a new connection says first.
struct Login {
    std::string user{};
    std::string password{};
    int db = 0;
    bool primary_only = false;  ///< Refuse a replica, which a Sentinel may still have named.
};

/// The requests that come before all others, and the check of their replies. No I/O.
class Handshake {
 public:
    explicit Handshake(const Login& login);

    /// All requests at once.
    [[nodiscard]] const std::string& requests() const { return requests_; }
    [[nodiscard]] bool finished() const { return at_ == steps_.size(); }
    /// The next reply. An error ends the connection; it holds nothing of the password, which some
    /// servers repeat.
    [[nodiscard]] Result<void> take(const Reply& reply);

 private:
    enum class Step : std::uint8_t { kAuth, kSelect, kRole, kPing };
    std::string requests_;
    std::vector<Step> steps_;
    std::size_t at_ = 0;
};

}  // namespace sekali::redis
