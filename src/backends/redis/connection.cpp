#include "backends/redis/connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backends/redis/errors.hpp"
#include "base/clock.hpp"

namespace sekali::redis {
namespace {

Error system_error(std::string_view what, int number) {
    return unreachable(fmt::format("{}: {}", what, std::strerror(number)));
}

int open_socket(const Endpoint& endpoint) {
    const int descriptor =
        ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && endpoint.address.ss_family != AF_UNIX) {
        const int on = 1;
        ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return descriptor;
}

}  // namespace

Connection::Connection(Loop& loop, std::vector<Endpoint> endpoints, std::shared_ptr<ssl_ctx_st> tls,
                       Millis patience, Listener listener)
    : loop_(loop),
      endpoints_(std::move(endpoints)),
      tls_context_(std::move(tls)),
      patience_(patience),
      listener_(std::move(listener)) {
    try_next(unreachable("its host has no address"));
}

Connection::~Connection() {
    close();
}

void Connection::close() {
    ended_ = true;
    close_socket();
}

void Connection::try_next(const Error& last) {
    close_socket();
    if (next_endpoint_ == endpoints_.size()) return end(last);
    const Endpoint& endpoint = endpoints_[next_endpoint_++];
    socket_ = open_socket(endpoint);
    if (socket_ < 0) return end(system_error("no socket", errno));
    const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
    const int status = ::connect(socket_, address, endpoint.size);
    // A unix socket whose queue is full says EAGAIN, for which there is nothing to wait.
    if (status != 0 && errno != EINPROGRESS) {
        return try_next(system_error("cannot connect", errno));
    }
    connecting_ = true;
    loop_.watch(socket_, EPOLLOUT, [this](std::uint32_t events) { on_ready(events); });
    timer_ = loop_.at(base::steady_now() + patience_, [this] {
        timer_.reset();
        try_next(unreachable("it does not take the connection"));
    });
}

void Connection::on_ready(std::uint32_t events) {
    if (connecting_) return connected();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read();
    if ((events & EPOLLOUT) != 0) flush();
}

void Connection::connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return try_next(system_error("cannot connect", error));
    connecting_ = false;
    if (timer_) loop_.cancel(*timer_);
    timer_.reset();
    loop_.change(socket_, EPOLLIN);
    if (tls_context_) {
        tls_ = std::make_unique<TlsStream>(*tls_context_, endpoints_[next_endpoint_ - 1].host);
    }
    listener_.opened();
    flush();
}

void Connection::send(std::string_view bytes) {
    if (ended_) return;
    if (!tls_) {
        output_ += bytes;
    } else if (auto fine = tls_->send(bytes); !fine) {
        return end(fine.error());
    }
    flush();
}

void Connection::read() {
    std::array<char, 64 * 1024> buffer{};
    while (!ended_) {
        const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
        if (count == 0) return end(unreachable("it closed the connection"));
        if (count < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            return end(system_error("the connection broke", errno));
        }
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
        if (tls_) {
            std::string plain;
            const Result<void> fine = tls_->received(bytes, plain);
            if (!plain.empty()) listener_.received(plain);
            flush();
            if (!fine) return end(fine.error());
        } else {
            listener_.received(bytes);
        }
        if (bytes.size() < buffer.size()) return;
    }
}

void Connection::flush() {
    if (socket_ < 0 || connecting_ || ended_) return;
    if (tls_) tls_->take_output(output_);
    while (sent_ < output_.size()) {
        const ssize_t count =
            ::send(socket_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno != EAGAIN) return end(system_error("the connection broke", errno));
        if (count < 0) break;
        sent_ += static_cast<std::size_t>(count);
    }
    if (sent_ == output_.size()) {
        output_.clear();
        sent_ = 0;
    }
    const bool waits = sent_ < output_.size();
    if (waits != waits_to_write_) {
        waits_to_write_ = waits;
        loop_.change(socket_, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

void Connection::close_socket() {
    if (timer_) loop_.cancel(*timer_);
    timer_.reset();
    if (socket_ < 0) return;
    loop_.forget(socket_);
    ::close(socket_);
    socket_ = -1;
}

void Connection::end(const Error& why) {
    if (ended_) return;
    ended_ = true;
    close_socket();
    // Later, because callers further up still use the connection.
    loop_.post([this, alive = std::weak_ptr(alive_), why] {
        if (!alive.expired()) listener_.closed(why);
    });
}

}  // namespace sekali::redis
