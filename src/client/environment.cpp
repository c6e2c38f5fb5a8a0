#include "client/environment.hpp"

#include <unistd.h>

namespace sekali::client {

std::optional<std::string> environment_variable(std::string_view name) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const bool is_it =
            text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=';
        if (!is_it) continue;
        const std::string_view value = text.substr(name.size() + 1);
        if (!value.empty()) return std::string(value);
    }
    return std::nullopt;
}

}  // namespace sekali::client
