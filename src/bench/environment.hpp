#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "bench/result.hpp"

namespace sekali::bench {

/// The machine and the build.
[[nodiscard]] Environment look_at_machine();

/// Measures the disk below `folder`. Throws `Failure` (`kUsage`) where that lies in memory, because
/// nothing measured there says anything about a disk.
void look_at_disk(const std::filesystem::path& folder, Environment& found);

/// The type of the file system that holds `folder` by the text of `/proc/self/mountinfo`; `unknown`
/// where it does not say.
[[nodiscard]] std::string file_system_of(const std::filesystem::path& folder,
                                         std::string_view mounts);

}  // namespace sekali::bench
