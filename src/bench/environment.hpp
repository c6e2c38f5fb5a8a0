#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "backends/sqlite/options.hpp"
#include "bench/result.hpp"

namespace sekali::bench {

/// Looks at the machine and measures the disk below `folder`. Throws `Failure` (`kUsage`) where
/// that lies in memory, because nothing measured there says anything about a disk.
[[nodiscard]] Environment look_around(const std::filesystem::path& folder,
                                      sqlite::Synchronous synchronous);

/// The type of the file system that holds `folder` by the text of `/proc/self/mountinfo`; `unknown`
/// where it does not say.
[[nodiscard]] std::string file_system_of(const std::filesystem::path& folder,
                                         std::string_view mounts);

}  // namespace sekali::bench
