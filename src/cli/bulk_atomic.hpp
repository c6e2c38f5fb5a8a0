#pragma once

#include "cli/context.hpp"
#include "cli/store.hpp"

namespace sekali::cli {

/// `enqueue --bulk --atomic`: every line of the descriptor in one transaction, or none. Answers
/// every line when all went in, else those that were refused.
[[nodiscard]] int enqueue_bulk_atomic(CommandContext& context, Store& store, int fd);

}  // namespace sekali::cli
