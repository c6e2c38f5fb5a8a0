#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/command_session.hpp"
#include "backends/redis/dialer.hpp"
#include "backends/redis/locator.hpp"
#include "backends/redis/server.hpp"
#include "backends/redis/subscriber_session.hpp"

namespace sekali::redis {

/// One server: a connection for requests of all threads, and one for subscriptions once there are
/// any. Calls wait for a connection until their deadline.
class Client final : public Server {
 public:
    /// `loop` must outlive the client. Connects with the first call.
    Client(Loop& loop, const Address& address, std::shared_ptr<ssl_ctx_st> tls,
           bool sharded_channels = false);
    /// Closes it. Only where it was closed before may it be the loop's thread.
    ~Client() override;

    void close() override;
    void submit(std::vector<Call> calls) override;
    [[nodiscard]] Loop& loop() override { return loop_; }
    void subscribe(const std::string& channel, Told told) override;
    void unsubscribe(const std::string& channel) override;
    [[nodiscard]] std::string publish_command() const override {
        return sharded_channels_ ? "SPUBLISH" : "PUBLISH";
    }
    [[nodiscard]] bool has_slots() const override { return sharded_channels_; }

 private:
    void take_inbox();
    void pump();
    void expire_waiting(TimePoint now);
    void arm();
    void command_opened();
    void command_closed(const Error& why);
    void finish_command_session();
    void answer(CommandSession& session);

    void pump_subscriber();
    void subscriber_opened();
    void drop_subscriber();
    void tell(std::string_view channel, const ChannelEvent& event);

    Loop& loop_;
    const Login login_;
    const Millis timeout_;
    const bool sharded_channels_;

    std::mutex mutex_;
    std::vector<Call> inbox_;
    bool closed_ = false;

    // Only on the loop's thread.
    std::deque<Call> waiting_;
    Error last_failure_;
    std::unique_ptr<CommandSession> session_;
    std::unique_ptr<SubscriberSession> subscriber_;
    bool subscribed_ = false;  ///< The session has been told of all channels.
    std::map<std::string, std::shared_ptr<Told>, std::less<>> channels_;
    std::optional<Loop::TimerId> timer_;
    std::unique_ptr<Locator> locator_;
    std::unique_ptr<Dialer> command_dialer_;
    std::unique_ptr<Dialer> subscriber_dialer_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sekali::redis
