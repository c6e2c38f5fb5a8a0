#pragma once

#include <string_view>

#include "cli/job_draft.hpp"

namespace sekali::cli {

/// Reads a line of a bulk file: an object whose fields are named like the flags of `enqueue`, and
/// `kind` and `payload`; the payload is exactly the slice of the line. Throws `Failure` with
/// `kUsage`, naming unknown and repeated fields.
[[nodiscard]] JobDraft parse_bulk_line(std::string_view line);

}  // namespace sekali::cli
