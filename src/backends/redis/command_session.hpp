#pragma once

#include <deque>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/redis/call.hpp"
#include "backends/redis/handshake.hpp"
#include "backends/redis/reply_reader.hpp"

namespace sekali::redis {

/// One connection that carries requests, as a state machine without I/O: bytes, calls and time go
/// in; bytes and answers come out.
///
/// Replies belong to requests by their order alone. So a session in which one reply is overdue or
/// senseless has failed as a whole: its connection must be closed, and no byte that comes later may
/// reach it.
class CommandSession {
 public:
    using Answer = std::pair<Call::Done, Result<Reply>>;

    /// Until `deadline` the handshake must be over.
    CommandSession(const Login& login, TimePoint deadline);

    /// Calls may be sent as soon as the handshake is over.
    [[nodiscard]] bool ready() const { return !failure_ && handshake_.finished(); }
    void send(Call call);
    void received(std::string_view bytes);
    /// Fails the session when a reply is overdue.
    void advance(TimePoint now);
    /// The connection is gone: what was sent may have been applied.
    void fail(const Error& why);

    /// Set once the session is over; the connection is to be closed.
    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
    /// When `advance` is to be called at the latest.
    [[nodiscard]] std::optional<TimePoint> next_deadline();
    /// The bytes to send since the last call.
    [[nodiscard]] std::string take_output() { return std::exchange(output_, {}); }
    [[nodiscard]] std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }
    [[nodiscard]] std::size_t in_flight() const { return pending_.size(); }

 private:
    struct Pending {
        Call call;
        bool asking_reply = false;  ///< The `+OK` of ASKING, which nobody waits for.
        bool reloaded = false;
    };

    void write(const Call& call, bool by_text);
    void take(Reply reply);
    void answer(Pending pending, Reply reply);

    Handshake handshake_;
    const TimePoint handshake_deadline_;
    ReplyReader reader_;
    std::string output_;
    std::deque<Pending> pending_;
    /// Of pending calls by deadline; those before `first_number_` are answered.
    using Due = std::pair<TimePoint, std::uint64_t>;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::uint64_t first_number_ = 0;
    /// Scripts that this connection has sent whole, so that the server knows them.
    std::unordered_set<const Script*> sent_whole_;
    std::vector<Answer> answers_;
    std::optional<Error> failure_;
};

}  // namespace sekali::redis
