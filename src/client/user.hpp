#pragma once

#include <string>

namespace sekali::client {

/// Who runs this process, for the history: the login name, or the number of the user.
[[nodiscard]] std::string user_name();

}  // namespace sekali::client
