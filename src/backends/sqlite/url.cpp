#include "backends/sqlite/url.hpp"

#include <array>

#include <pwd.h>
#include <unistd.h>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::sqlite {
namespace {

using base::usage_error;

constexpr const char* kForms = "write sqlite:/absolute/path or sqlite:relative/path";

/// Takes `?synchronous=…` off the end of a path, which may hold question marks of its own.
Result<void> take_synchronous(std::string_view field, SqliteOptions& options) {
    constexpr std::string_view kParameter = "?synchronous=";
    const std::size_t at = options.path.rfind(kParameter);
    if (at == std::string::npos) return {};
    const std::string value = options.path.substr(at + kParameter.size());
    if (value != "full" && value != "normal") {
        return usage_error(
            std::string(field) + ": synchronous must be full or normal, not " + base::quoted(value),
            "normal is quicker and may lose the last commits when the power fails");
    }
    options.synchronous = value == "full" ? Synchronous::kFull : Synchronous::kNormal;
    options.path.resize(at);
    return {};
}

Result<std::string> home_folder(const std::optional<std::string>& home) {
    if (home && home->starts_with('/')) return *home;
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
    if (found != nullptr) return std::string(found->pw_dir);
    return usage_error("neither HOME nor the user database names a home folder",
                       "say where the jobs are: sqlite:PATH");
}

}  // namespace

Result<SqliteOptions> parse_url(std::string_view field, std::string_view url) {
    std::string_view rest = url.substr(kScheme.size());
    if (rest.starts_with("//")) {
        if (!rest.starts_with("///")) {
            return usage_error(
                std::string(field) + ": sqlite: takes a path, not a host: " + base::quoted(url),
                kForms);
        }
        rest.remove_prefix(2);
    }
    SqliteOptions options;
    options.path = rest;
    if (auto fine = take_synchronous(field, options); !fine) return fine.error();
    const std::string& path = options.path;
    if (path.empty() || path.starts_with(':') || path.ends_with('/')) {
        return usage_error(std::string(field) + ": " + base::quoted(url) + " names no file",
                           kForms);
    }
    return options;
}

Result<std::string> default_path(
    const std::function<std::optional<std::string>(const std::string& name)>& environment) {
    constexpr std::string_view kFile = "/sekali/sekali.db";
    // The base directory specification ignores paths that are not absolute.
    if (const auto state = environment("XDG_STATE_HOME"); state && state->starts_with('/')) {
        return *state + std::string(kFile);
    }
    if (::geteuid() == 0) return "/var/lib" + std::string(kFile);
    auto home = home_folder(environment("HOME"));
    if (!home.ok()) return home.error();
    return *home + "/.local/state" + std::string(kFile);
}

}  // namespace sekali::sqlite
