#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::base {

/// Splits a command into words by POSIX quoting (backslash, single and double quotes), and no more.
///
/// What a shell would act on is refused rather than passed on as text: unquoted
/// `| & ; < > $ * ? ( ) [ ] { } ~ #`, backquote and newline. What is quoted is text, also `$` in
/// double quotes, so that `sh -c "kill $$"` says what it looks like. Errors: `kUsage`, with the `sh
/// -c '…'` form to write instead.
[[nodiscard]] Result<std::vector<std::string>> split_command(std::string_view command);

}  // namespace sekali::base
