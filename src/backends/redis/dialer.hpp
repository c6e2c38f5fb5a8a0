#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/connection.hpp"
#include "backends/redis/locator.hpp"
#include "backends/redis/loop.hpp"

namespace sekali::redis {

/// Keeps one connection to wherever the locator says the server is; after a failure it waits, each
/// time longer, and dials again. Only on the loop's thread.
class Dialer {
 public:
    struct Listener {
        std::function<void()> opened;
        std::function<void(std::string_view bytes)> received;
        /// Also for a try that came to nothing.
        std::function<void(const Error& why)> closed;
    };

    Dialer(Loop& loop, Locator& locator, std::shared_ptr<ssl_ctx_st> tls, Millis patience,
           Listener listener);
    ~Dialer();
    Dialer(const Dialer&) = delete;
    Dialer& operator=(const Dialer&) = delete;

    /// Begins to dial unless it has or is about to; and from then on always does.
    void start();
    void send(std::string_view bytes) {
        if (connection_) connection_->send(bytes);
    }
    /// The server works: the next failure is tried again at once.
    void works() { failures_ = 0; }
    /// Closes the connection and dials again. `closed` is not called.
    void redial();

 private:
    void dial();
    void located(Result<std::vector<Endpoint>> endpoints);
    void failed(const Error& why);
    void retire();
    void wait();

    Loop& loop_;
    Locator& locator_;
    std::shared_ptr<ssl_ctx_st> tls_;
    const Millis patience_;
    Listener listener_;
    bool started_ = false;
    unsigned failures_ = 0;
    std::shared_ptr<Connection> connection_;
    std::optional<Loop::TimerId> timer_;
    std::minstd_rand random_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sekali::redis
