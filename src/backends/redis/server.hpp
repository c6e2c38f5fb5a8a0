#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/redis/call.hpp"
#include "backends/redis/loop.hpp"

namespace sekali::redis {

/// What a subscription has to tell, on the loop's thread.
struct ChannelEvent {
    enum class Kind : std::uint8_t {
        kSubscribed,  ///< From now on messages arrive; again after every loss of the connection.
        kMessage,
        kLost,  ///< Messages may be missed until the next `kSubscribed`.
    } kind = Kind::kSubscribed;
    std::string message{};
};

/// A Redis: one server, the one that Sentinel names, or a cluster.
class Server {
 public:
    virtual ~Server() = default;

    /// Ends: calls without an answer get an error, later ones at once. Not to be called on the
    /// loop's thread. A second call does nothing.
    virtual void close() = 0;

    /// Sends calls in order; each is answered once. Thread-safe.
    virtual void submit(std::vector<Call> calls) = 0;
    [[nodiscard]] virtual Loop& loop() = 0;

    using Told = std::function<void(const ChannelEvent&)>;
    /// One listener for each channel. Both only on the loop's thread.
    virtual void subscribe(const std::string& channel, Told told) = 0;
    virtual void unsubscribe(const std::string& channel) = 0;

    /// `SPUBLISH` in a cluster that has it, so that a message does not go to every node.
    [[nodiscard]] virtual std::string publish_command() const = 0;
    /// Whether the keys of one script must share a slot.
    [[nodiscard]] virtual bool has_slots() const = 0;
};

}  // namespace sekali::redis
