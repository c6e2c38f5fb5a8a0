#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sekali::cli {

/// A configuration file, read but not judged: keys as they are written, values as text.
struct ConfigFile {
    using Section = std::map<std::string, std::vector<std::string>, std::less<>>;

    std::string path;
    Section settings;
    std::map<std::string, Section, std::less<>> kinds;
};

/// Reads a TOML file. Throws `Failure` with `kUsage` when it cannot be read, is no TOML (a key
/// given twice is none), or holds a value that no flag could have.
[[nodiscard]] ConfigFile read_config(const std::string& path);

/// As `read_config` for a text that was read from `path`.
[[nodiscard]] ConfigFile parse_config(const std::string& path, std::string_view text);

}  // namespace sekali::cli
