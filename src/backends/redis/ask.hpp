#pragma once

#include <vector>

#include "backends/redis/server.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// Sends the calls together and blocks until each is answered; replies in their order. Not to be
/// called on the loop's thread. What `done` says in a call is replaced.
[[nodiscard]] std::vector<Result<Reply>> ask(Server& server, std::vector<Call> calls);
[[nodiscard]] Result<Reply> ask(Server& server, Call call);

}  // namespace sekali::redis
