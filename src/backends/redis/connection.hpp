#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/endpoints.hpp"
#include "backends/redis/loop.hpp"
#include "backends/redis/tls.hpp"

namespace sekali::redis {

/// A socket, with TLS where the address asks for it. Only on the loop's thread.
class Connection {
 public:
    /// Called on the loop's thread; after `closed` nothing more is. None of them may destroy the
    /// connection, which may be closed in each.
    struct Listener {
        std::function<void()> opened;
        std::function<void(std::string_view bytes)> received;
        std::function<void(const Error& why)> closed;
    };

    /// Tries one endpoint after the other, each for `patience`. `tls` may be null.
    Connection(Loop& loop, std::vector<Endpoint> endpoints, std::shared_ptr<ssl_ctx_st> tls,
               Millis patience, Listener listener);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void send(std::string_view bytes);
    /// Without a call of `closed`.
    void close();

 private:
    void try_next(const Error& last);
    void on_ready(std::uint32_t events);
    void connected();
    void read();
    void flush();
    void close_socket();
    void end(const Error& why);

    Loop& loop_;
    std::vector<Endpoint> endpoints_;
    std::size_t next_endpoint_ = 0;
    std::shared_ptr<ssl_ctx_st> tls_context_;
    const Millis patience_;
    Listener listener_;
    int socket_ = -1;
    bool connecting_ = false;
    bool ended_ = false;
    bool waits_to_write_ = false;
    std::unique_ptr<TlsStream> tls_;
    std::string output_;
    std::size_t sent_ = 0;
    std::optional<Loop::TimerId> timer_;
    /// Outlived by callbacks that find it gone.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sekali::redis
