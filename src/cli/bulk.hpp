#pragma once

#include <string>

#include "cli/context.hpp"
#include "cli/store.hpp"

namespace sekali::cli {

/// `enqueue --bulk`: one job for each line of JSON, in batches, with bounded memory. Answers one
/// line for each, in order. Returns the exit status; throws `Failure` when the store or the file
/// fails.
[[nodiscard]] int enqueue_bulk(CommandContext& context, const std::string& path);

}  // namespace sekali::cli
