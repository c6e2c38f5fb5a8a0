#pragma once

#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::redis {

/// The server did not answer or cannot be talked to; worth trying again.
[[nodiscard]] Error unreachable(std::string_view what, Applied applied = Applied::kNo);

/// What an error reply means: `-LOADING …`, `-READONLY …`. A server that refuses a command has
/// not applied it.
[[nodiscard]] Error from_reply(std::string_view reply);

/// The first word of an error reply, which is its code.
[[nodiscard]] std::string_view code_of(std::string_view reply);

/// Whether the reply says that this server should not be talked to for now: the connection is made
/// anew, perhaps to another one.
[[nodiscard]] bool wants_reconnect(std::string_view code);

}  // namespace sekali::redis
