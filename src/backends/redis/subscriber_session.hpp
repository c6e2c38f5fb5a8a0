#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/call.hpp"
#include "backends/redis/handshake.hpp"
#include "backends/redis/reply_reader.hpp"

namespace sekali::redis {

/// What a subscribed connection has to tell.
struct SubscriberEvent {
    enum class Kind : std::uint8_t { kSubscribed, kMessage } kind = Kind::kSubscribed;
    std::string channel;
    std::string message{};
};

/// One connection that is subscribed to channels, as a state machine without I/O.
class SubscriberSession {
 public:
    /// `sharded` channels live on the node that has their slot (Redis 7 and newer, in a cluster).
    SubscriberSession(const Login& login, bool sharded, TimePoint now, Millis patience);

    [[nodiscard]] bool ready() const { return !failure_ && handshake_.finished(); }
    void subscribe(std::string_view channel);
    void unsubscribe(std::string_view channel);
    void received(std::string_view bytes, TimePoint now);
    /// Asks for a sign of life, and fails the session where none comes.
    void advance(TimePoint now);
    void fail(const Error& why) {
        if (!failure_) failure_ = why;
    }

    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
    [[nodiscard]] TimePoint next_deadline() const { return asked_ ? silent_until_ : ask_at_; }
    [[nodiscard]] std::string take_output() { return std::exchange(output_, {}); }
    [[nodiscard]] std::vector<SubscriberEvent> take_events() { return std::exchange(events_, {}); }

 private:
    void take(Reply reply);

    Handshake handshake_;
    const bool sharded_;
    const Millis patience_;
    ReplyReader reader_;
    std::string output_;
    std::vector<SubscriberEvent> events_;
    bool asked_ = true;  ///< Something is to come; at first the handshake.
    TimePoint silent_until_;
    TimePoint ask_at_{};
    std::optional<Error> failure_;
};

}  // namespace sekali::redis
