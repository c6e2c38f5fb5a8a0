#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sekali::client {

/// A variable of this process's environment; nothing when it is missing or empty.
[[nodiscard]] std::optional<std::string> environment_variable(std::string_view name);

}  // namespace sekali::client
