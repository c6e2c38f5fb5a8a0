#pragma once

#include "cli/app.hpp"

namespace sekali::cli {

/// The commands of `sekali`.
[[nodiscard]] AppSpec sekali_app();

}  // namespace sekali::cli
