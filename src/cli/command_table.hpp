#pragma once

#include "cli/spec.hpp"

// Every command's table, each defined in a file of its own.
namespace sekali::cli {

extern const CommandSpec kBackoffCommand;

}  // namespace sekali::cli
