#include "backends/redis/subscriber_session.hpp"

#include "backends/redis/errors.hpp"

namespace sekali::redis {
namespace {

/// A peer that is gone without a word is noticed after this and the patience for an answer.
constexpr Millis kBetweenSigns{5000};

}  // namespace

SubscriberSession::SubscriberSession(const Login& login, bool sharded, TimePoint now,
                                     Millis patience)
    : handshake_(login),
      sharded_(sharded),
      patience_(patience),
      output_(handshake_.requests()),
      silent_until_(now + patience) {}

void SubscriberSession::subscribe(std::string_view channel) {
    append_request(output_, {sharded_ ? "SSUBSCRIBE" : "SUBSCRIBE", channel});
}

void SubscriberSession::unsubscribe(std::string_view channel) {
    append_request(output_, {sharded_ ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", channel});
}

void SubscriberSession::received(std::string_view bytes, TimePoint now) {
    if (failure_) return;
    reader_.feed(bytes);
    while (!failure_) {
        auto reply = reader_.next();
        if (!reply.ok()) return fail(reply.error());
        if (!reply->has_value()) break;
        take(std::move(**reply));
    }
    if (handshake_.finished()) {
        asked_ = false;
        ask_at_ = now + kBetweenSigns;
    }
}

void SubscriberSession::take(Reply reply) {
    if (!handshake_.finished()) {
        if (auto fine = handshake_.take(reply); !fine) fail(fine.error());
        return;
    }
    if (reply.is_error()) return fail(from_reply(reply.text));
    if (reply.items.size() != 3) return;  // a sign of life
    const std::string_view what = reply.items[0].text;
    std::string& channel = reply.items[1].text;
    if (what == "message" || what == "smessage") {
        events_.push_back({.kind = SubscriberEvent::Kind::kMessage,
                           .channel = std::move(channel),
                           .message = std::move(reply.items[2].text)});
    } else if (what == "subscribe" || what == "ssubscribe") {
        events_.push_back(
            {.kind = SubscriberEvent::Kind::kSubscribed, .channel = std::move(channel)});
    } else if (what == "sunsubscribe" && reply.items[2].type == Reply::Type::kInteger) {
        // A slot that moves away takes its sharded channels with it without being asked; being
        // subscribed again finds the new node. Where it was asked for nobody listens any more.
        events_.push_back({.kind = SubscriberEvent::Kind::kMessage, .channel = std::move(channel)});
    }
}

void SubscriberSession::advance(TimePoint now) {
    if (failure_ || next_deadline() > now) return;
    if (asked_) return fail(unreachable("its connection for messages is silent"));
    append_request(output_, {"PING"});
    asked_ = true;
    silent_until_ = now + patience_;
}

}  // namespace sekali::redis
