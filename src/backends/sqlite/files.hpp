#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/sqlite/options.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// Makes the file and its folders where they are missing and may be made, for their owner only, and
/// refuses file systems on which SQLite's log does not work.
[[nodiscard]] Result<void> prepare_file(const SqliteOptions& options);

/// The name of a file system, by its number in statfs(2), on which SQLite's log does not work.
[[nodiscard]] std::optional<std::string_view> network_file_system(std::uint32_t magic);

}  // namespace sekali::sqlite
