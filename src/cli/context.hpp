#pragma once

#include <string>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/output.hpp"

namespace sekali::cli {

/// What a command's function is given.
class CommandContext {
 public:
    CommandContext(Arguments arguments, Arguments::Environment variables, Output& output)
        : args(std::move(arguments)), environment(std::move(variables)), out(output) {}

    [[nodiscard]] std::string ns() const { return args.text_or("namespace", "default"); }

    const Arguments args;
    const Arguments::Environment environment;
    Output& out;
};

}  // namespace sekali::cli
