#pragma once

#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::sqlite {

/// Why the turn to write did not come within the busy wait: names the process that has it and
/// whether it is stopped, where another has it and this user may see that; else says `otherwise`.
[[nodiscard]] Error gate_kept(const std::string& gate_path, std::string_view otherwise);

}  // namespace sekali::sqlite
