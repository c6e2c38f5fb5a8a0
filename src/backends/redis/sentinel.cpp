#include "backends/redis/sentinel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "backends/redis/call.hpp"
#include "backends/redis/endpoints.hpp"
#include "backends/redis/errors.hpp"
#include "backends/redis/reply_reader.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

class BlockingSocket {
 public:
    BlockingSocket(const Endpoint& endpoint, Millis patience)
        : socket_(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        timeval time{};
        time.tv_sec = patience.count() / 1000;
        time.tv_usec = patience.count() % 1000 * 1000;
        // The one for sending bounds the connecting too.
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
        const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
        connected_ = ::connect(socket_, address, endpoint.size) == 0;
    }
    ~BlockingSocket() {
        if (socket_ >= 0) ::close(socket_);
    }
    BlockingSocket(const BlockingSocket&) = delete;
    BlockingSocket& operator=(const BlockingSocket&) = delete;

    /// Nothing where no whole reply came in time.
    std::optional<Reply> ask(const std::vector<std::string_view>& words) {
        std::string request;
        append_request(request, words);
        if (!connected_ || ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
                               static_cast<ssize_t>(request.size())) {
            return std::nullopt;
        }
        ReplyReader reader;
        std::array<char, 4096> buffer{};
        while (true) {
            const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
            if (count <= 0) return std::nullopt;
            reader.feed({buffer.data(), static_cast<std::size_t>(count)});
            auto reply = reader.next();
            if (!reply.ok()) return std::nullopt;
            if (reply->has_value()) return **std::move(reply);
        }
    }

 private:
    int socket_;
    bool connected_ = false;
};

}  // namespace

Result<HostPort> find_primary(const Address& address) {
    bool unknown = false;
    for (const HostPort& sentinel : address.hosts) {
        const auto endpoints = resolve(sentinel);
        if (!endpoints.ok()) continue;
        for (const Endpoint& endpoint : *endpoints) {
            const auto reply = BlockingSocket(endpoint, address.timeout)
                                   .ask({"SENTINEL", "get-master-addr-by-name", address.master});
            if (!reply) continue;
            unknown |= reply->is(Reply::Type::kNil);
            if (reply->items.size() != 2) continue;
            const auto port = base::parse_count("port", reply->items[1].text, 1, 65'535);
            if (!port.ok()) continue;
            return HostPort{reply->items[0].text, static_cast<std::uint16_t>(*port)};
        }
    }
    if (unknown) {
        return unreachable(
            fmt::format("its Sentinels know no group {}", base::quoted(address.master)));
    }
    return unreachable("none of its Sentinels answers");
}

}  // namespace sekali::redis
