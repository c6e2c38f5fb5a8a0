#include "client/user.hpp"

#include <unistd.h>

#include <string_view>

#include "base/limits.hpp"
#include "client/environment.hpp"

namespace sekali::client {

std::string user_name() {
    for (const std::string_view name : {"LOGNAME", "USER"}) {
        const auto value = environment_variable(name);
        if (value && base::check_key(name, *value).ok()) return *value;
    }
    return "uid " + std::to_string(::geteuid());
}

}  // namespace sekali::client
