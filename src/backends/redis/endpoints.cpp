#include "backends/redis/endpoints.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include <cstring>

#include "backends/redis/errors.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

Result<std::vector<Endpoint>> look_up(const HostPort& host, int flags) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(host.port);
    const int status = ::getaddrinfo(host.host.c_str(), port.c_str(), &wanted, &found);
    if (status != 0) {
        return unreachable(fmt::format("host {} cannot be found: {}", base::quoted(host.host),
                                       ::gai_strerror(status)));
    }
    std::vector<Endpoint> endpoints;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        Endpoint& endpoint = endpoints.emplace_back();
        std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
        endpoint.size = entry->ai_addrlen;
        endpoint.host = host.host;
    }
    ::freeaddrinfo(found);
    return endpoints;
}

Result<Endpoint> unix_endpoint(const std::string& path) {
    sockaddr_un address{};
    if (path.size() >= sizeof address.sun_path) {
        return base::usage_error(fmt::format("the path of the unix socket has {} bytes, at most {}",
                                             path.size(), sizeof address.sun_path - 1));
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    Endpoint endpoint;
    std::memcpy(&endpoint.address, &address, sizeof address);
    endpoint.size = sizeof address;
    return endpoint;
}

}  // namespace

Result<std::optional<std::vector<Endpoint>>> endpoints_at_once(const std::string& unix_path,
                                                               const HostPort& host) {
    using Found = std::optional<std::vector<Endpoint>>;
    if (!unix_path.empty()) {
        auto endpoint = unix_endpoint(unix_path);
        if (!endpoint.ok()) return endpoint.error();
        return Found{std::vector<Endpoint>{*std::move(endpoint)}};
    }
    auto numeric = look_up(host, AI_NUMERICHOST | AI_NUMERICSERV);
    if (!numeric.ok()) return Found{};
    return Found{*std::move(numeric)};
}

Result<std::vector<Endpoint>> resolve(const HostPort& host) {
    return look_up(host, AI_NUMERICSERV);
}

}  // namespace sekali::redis
