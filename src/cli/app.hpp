#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/spec.hpp"

namespace sekali::cli {

/// A program: its commands, and the groups of those that have two words.
struct AppSpec {
    std::span<const CommandSpec* const> commands;
    std::span<const GroupSpec> groups;
};

/// Flags that every command takes, before and behind its name.
[[nodiscard]] std::span<const OptionSpec> global_options();

/// Runs the command that the words name, reports what went wrong, and returns the exit status.
[[nodiscard]] int run_app(const AppSpec& app, std::vector<std::string> words,
                          const Arguments::Environment& environment);

/// As `run_app` for a program that is one command by itself.
[[nodiscard]] int run_single(const CommandSpec& command, std::vector<std::string> words,
                             const Arguments::Environment& environment);

/// Reads the environment of this process.
[[nodiscard]] Arguments::Environment process_environment();

}  // namespace sekali::cli
