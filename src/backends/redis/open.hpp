#pragma once

#include <memory>
#include <string_view>

#include "backends/redis/loop.hpp"
#include "backends/redis/server.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// A server with the loop it lives on. Must not be dropped on that loop's thread.
struct OpenServer {
    std::unique_ptr<Loop> loop;
    std::shared_ptr<Server> server;

    OpenServer() = default;
    OpenServer(OpenServer&&) = default;
    OpenServer& operator=(OpenServer&&) = delete;
    /// Calls without an answer end with an error.
    ~OpenServer();
};

/// Makes the client that the URL asks for; it connects with the first call. Errors: `kUsage` for
/// the URL and the files it names.
[[nodiscard]] Result<OpenServer> open_server(std::string_view url);

}  // namespace sekali::redis
