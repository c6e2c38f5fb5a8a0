#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "backends/sqlite/options.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

inline constexpr std::string_view kScheme = "sqlite:";

/// Reads `sqlite:PATH` or `sqlite:///PATH`, with `?synchronous=full` or `normal` behind it where
/// that is chosen. `field` is where the URL was written. Errors: `kUsage`.
[[nodiscard]] Result<SqliteOptions> parse_url(std::string_view field, std::string_view url);

/// The database that is meant where nobody names one: in the user's state folder, so that every
/// program of a user shares it wherever it stands. Errors: `kUsage` where there is no such folder.
[[nodiscard]] Result<std::string> default_path(
    const std::function<std::optional<std::string>(const std::string& name)>& environment);

}  // namespace sekali::sqlite
