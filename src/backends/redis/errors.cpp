#include "backends/redis/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace sekali::redis {
namespace {

struct Known {
    std::string_view code;
    ErrorCode kind;
    bool retryable;
    std::string_view meaning;
    std::string_view hint;
};

using enum ErrorCode;
constexpr std::array kKnown{
    Known{"LOADING", kUnreachable, true, "it is still loading its data", ""},
    Known{"MASTERDOWN", kUnreachable, true, "it is a replica that has lost its primary", ""},
    Known{"READONLY", kRefused, true, "it is a replica and takes no writes",
          "name the primary, or let Sentinel find it: redis+sentinel://"},
    Known{"OOM", kRefused, true, "it has reached its memory limit and takes no writes",
          "raise maxmemory; with an eviction policy other than noeviction locks get lost"},
    Known{"MISCONF", kRefused, true, "it takes no writes because it cannot save to disk",
          "look at its log; it says which file it cannot write"},
    Known{"NOREPLICAS", kRefused, true, "too few replicas follow it (min-replicas-to-write)", ""},
    Known{"BUSY", kUnreachable, true, "it is busy with a long script", ""},
    Known{"MOVED", kUnreachable, true, "another node of its cluster has this key",
          "use redis+cluster://"},
    Known{"ASK", kUnreachable, true, "this key moves to another node of its cluster",
          "use redis+cluster://"},
    Known{"TRYAGAIN", kUnreachable, true, "keys of this request are moving between nodes", ""},
    Known{"CLUSTERDOWN", kUnreachable, true, "its cluster is down", ""},
    Known{"NOSCRIPT", kUnreachable, true, "it has forgotten a script", ""},
    Known{"NOAUTH", kRefused, false, "it wants a password",
          "write it into the URL: redis://:PASSWORD@HOST"},
    Known{"WRONGPASS", kRefused, false, "it knows no such user and password", ""},
    Known{"NOPERM", kRefused, false, "its ACL does not allow this user the command or key", ""},
    Known{"WRONGTYPE", kRefused, false, "the key holds a value of another type", ""},
    Known{"CROSSSLOT", kRefused, false, "the keys of one request are on several nodes", ""},
};

}  // namespace

Error unreachable(std::string_view what, Applied applied) {
    Error error;
    error.code = kUnreachable;
    error.message = fmt::format("redis: {}", what);
    error.applied = applied;
    error.retryable = true;
    return error;
}

std::string_view code_of(std::string_view reply) {
    return reply.substr(0, reply.find(' '));
}

Error from_reply(std::string_view reply) {
    const std::string_view code = code_of(reply);
    Error error;
    error.code = kRefused;
    error.backend_code = code;
    const auto* known = std::find_if(kKnown.begin(), kKnown.end(),
                                     [&](const Known& entry) { return entry.code == code; });
    if (known == kKnown.end()) {
        error.message = fmt::format("redis refused: {}", base::printable(reply));
        return error;
    }
    error.code = known->kind;
    error.retryable = known->retryable;
    error.message = fmt::format("redis: {} ({})", known->meaning, code);
    error.hint = known->hint;
    return error;
}

bool wants_reconnect(std::string_view code) {
    return code == "READONLY" || code == "MASTERDOWN" || code == "LOADING" || code == "NOAUTH";
}

}  // namespace sekali::redis
