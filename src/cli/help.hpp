#pragma once

#include <string>

#include "cli/app.hpp"
#include "cli/spec.hpp"

namespace sekali::cli {

[[nodiscard]] std::string app_help(const AppSpec& app);
[[nodiscard]] std::string group_help(const AppSpec& app, const GroupSpec& group);
[[nodiscard]] std::string command_help(const CommandSpec& command);
/// One line: `sekali enqueue KIND [PAYLOAD] [flags]`.
[[nodiscard]] std::string usage_line(const CommandSpec& command);

}  // namespace sekali::cli
