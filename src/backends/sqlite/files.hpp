#pragma once

#include <string>

#include "backends/sqlite/options.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// Makes the file and its folders where they are missing and may be made, for their owner only, and
/// refuses file systems on which SQLite's log does not work.
[[nodiscard]] Result<void> prepare_file(const SqliteOptions& options);

}  // namespace sekali::sqlite
