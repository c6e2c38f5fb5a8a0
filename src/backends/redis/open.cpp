#include "backends/redis/open.hpp"

#include <fmt/format.h>

#include <utility>

#include "backends/redis/address.hpp"
#include "backends/redis/client.hpp"
#include "backends/redis/tls.hpp"
#include "base/errors.hpp"

namespace sekali::redis {

OpenServer::~OpenServer() {
    if (server) server->close();
}

Result<OpenServer> open_server(std::string_view url) {
    auto address = parse_address(url);
    if (!address.ok()) return address.error();
    std::shared_ptr<ssl_ctx_st> tls;
    if (address->tls) {
        auto context = make_tls_context(*address);
        if (!context.ok()) return context.error();
        tls = *std::move(context);
    }
    if (address->topology == Topology::kSentinel && address->tls) {
        return base::usage_error("TLS to servers that Sentinels name is not built in yet");
    }
    if (address->topology == Topology::kCluster) {
        return base::usage_error(fmt::format("{} is not built in yet", address->printable()),
                                 "use redis://HOST");
    }
    OpenServer opened;
    opened.loop = std::make_unique<Loop>();
    opened.server = std::make_shared<Client>(*opened.loop, *address, std::move(tls));
    return opened;
}

}  // namespace sekali::redis
