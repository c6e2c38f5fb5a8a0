#include "backends/redis/handshake.hpp"

#include <fmt/format.h>

#include "backends/redis/errors.hpp"

namespace sekali::redis {

Handshake::Handshake(const Login& login) {
    if (!login.password.empty()) {
        steps_.push_back(Step::kAuth);
        if (login.user.empty()) {
            append_request(requests_, {"AUTH", login.password});
        } else {
            append_request(requests_, {"AUTH", login.user, login.password});
        }
    }
    if (login.db != 0) {
        steps_.push_back(Step::kSelect);
        append_request(requests_, {"SELECT", std::to_string(login.db)});
    }
    if (login.primary_only) {
        steps_.push_back(Step::kRole);
        append_request(requests_, {"ROLE"});
    }
    // Tells a server that is still loading from one that works.
    steps_.push_back(Step::kPing);
    append_request(requests_, {"PING"});
}

Result<void> Handshake::take(const Reply& reply) {
    const Step step = steps_.at(at_++);
    if (reply.is_error()) {
        Error error = from_reply(reply.text);
        if (step == Step::kAuth && error.code == ErrorCode::kRefused && !error.retryable &&
            error.backend_code == "ERR") {
            error.message = "redis refused the login";
        }
        return error;
    }
    if (step == Step::kRole &&
        (reply.items.empty() || reply.items.front().text != std::string_view("master"))) {
        return unreachable("the server that Sentinel names is not a primary yet");
    }
    return {};
}

}  // namespace sekali::redis
