#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::base {

/// Splits a command into words by POSIX quoting (backslash, single and double quotes), and no more.
///
/// What a shell would expand or act on is refused rather than passed on as text: unquoted
/// `| & ; < > $ * ? ( ) [ ] { } ~ #`, backquote and newline, and `$` and backquote in double
/// quotes. The error's hint is the `sh -c` form to write instead. Nothing is run, nothing is
/// expanded.
[[nodiscard]] Result<std::vector<std::string>> split_command(std::string_view command);

}  // namespace sekali::base
