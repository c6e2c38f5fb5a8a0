#pragma once

#include <string>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/output.hpp"

namespace sekali::cli {

/// What a command's function is given.
class CommandContext {
 public:
    CommandContext(Arguments arguments, Output& output) : args(std::move(arguments)), out(output) {}

    [[nodiscard]] std::string ns() const { return args.text_or("namespace", "default"); }

    const Arguments args;
    Output& out;
};

}  // namespace sekali::cli
