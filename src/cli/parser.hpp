#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/spec.hpp"

namespace sekali::cli {

/// A command's words, sorted into flags and the rest; nothing is judged yet.
struct ParsedLine {
    /// By option name; one value for each time it was given (an empty one for a flag).
    std::map<std::string_view, std::vector<std::string>> flags;
    std::vector<std::string> positionals;
    bool help = false;
};

/// Reads `words` by the given options. Throws `Failure` with `kUsage` for a flag that is unknown,
/// or known and without its value.
[[nodiscard]] ParsedLine parse_words(const std::vector<std::string>& words,
                                     const std::vector<const OptionSpec*>& options);

}  // namespace sekali::cli
