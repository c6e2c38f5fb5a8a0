#include "cli/address.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

#include "backends/redis/address.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "cli/nearest.hpp"

namespace sekali::cli {
namespace {

using base::usage_error;

constexpr std::string_view kFile = "sekali/sekali.db";
constexpr std::array<std::string_view, 8> kSchemes{
    "sqlite", "memory", "postgres", "redis", "rediss", "redis+sentinel", "redis+cluster", "amqp"};

std::string home_folder(const Arguments::Environment& environment) {
    if (const auto home = environment("HOME"); home && home->starts_with('/')) return *home;
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr) {
        throw Failure(usage_error("neither HOME nor the user database names a home folder",
                                  "say where the jobs are: --url sqlite:PATH"));
    }
    return found->pw_dir;
}

StoreAddress default_address(const Arguments::Environment& environment) {
    StoreAddress address;
    address.is_default = true;
    std::string folder;
    // The base directory specification ignores paths that are not absolute.
    if (const auto state = environment("XDG_STATE_HOME"); state && state->starts_with('/')) {
        folder = *state;
    } else if (geteuid() == 0) {
        folder = "/var/lib";
    } else {
        folder = home_folder(environment) + "/.local/state";
    }
    address.path = fmt::format("{}/{}", folder, kFile);
    return address;
}

/// Takes `?synchronous=normal` off the end of a path, which may hold question marks of its own.
void take_synchronous(std::string_view field, StoreAddress& address) {
    constexpr std::string_view kParameter = "?synchronous=";
    const std::size_t at = address.path.rfind(kParameter);
    if (at == std::string::npos) return;
    const std::string value = address.path.substr(at + kParameter.size());
    if (value != "full" && value != "normal") {
        throw Failure(
            usage_error(fmt::format("{}: synchronous must be full or normal, not {}", field,
                                    base::quoted(value)),
                        "normal is quicker and may lose the last commits when the power fails"));
    }
    address.synchronous_full = value == "full";
    address.path.resize(at);
}

[[noreturn]] void refuse_scheme(std::string_view field, std::string_view scheme,
                                std::string_view rest) {
    if (scheme == "memory") {
        throw Failure(usage_error(
            fmt::format("{}: memory: lives in one process, so a command cannot use it", field),
            "it is for the library and for tests; use sqlite:PATH"));
    }
    for (const std::string_view known : kSchemes) {
        if (scheme != known) continue;
        throw Failure(usage_error(fmt::format("{}: {}: is not built in yet", field, scheme),
                                  scheme.starts_with("redis") ? "redis has locks only: --lock-url"
                                                              : "this build knows sqlite:PATH"));
    }
    std::string hint = did_you_mean(scheme, kSchemes);
    if (scheme.empty() || rest.empty()) hint = "write sqlite:PATH";
    throw Failure(
        usage_error(fmt::format("{}: {} does not begin with a scheme that is known", field,
                                base::quoted(scheme.empty() ? "" : fmt::format("{}:", scheme))),
                    hint.empty() ? "this build knows sqlite:PATH" : hint));
}

}  // namespace

StoreAddress parse_store_url(std::string_view field, std::string_view url) {
    const std::size_t colon = url.find(':');
    if (colon == std::string_view::npos) {
        throw Failure(usage_error(fmt::format("{} has no scheme", field), "write sqlite:PATH"));
    }
    const std::string_view scheme = url.substr(0, colon);
    std::string_view rest = url.substr(colon + 1);
    if (scheme != "sqlite") refuse_scheme(field, scheme, rest);
    if (rest.starts_with("//")) {
        if (!rest.starts_with("///")) {
            throw Failure(usage_error(
                fmt::format("{}: sqlite: takes a path, not a host: {}", field, base::quoted(url)),
                "write sqlite:/absolute/path or sqlite:relative/path"));
        }
        rest.remove_prefix(2);
    }
    StoreAddress address;
    address.path = rest;
    take_synchronous(field, address);
    if (address.path.empty() || address.path.starts_with(':') || address.path.ends_with('/')) {
        throw Failure(usage_error(fmt::format("{}: {} names no file", field, base::quoted(url)),
                                  "write sqlite:/absolute/path or sqlite:relative/path"));
    }
    return address;
}

StoreAddress store_address(const Arguments& args, const Arguments::Environment& environment) {
    constexpr std::array<std::string_view, 3> kParts{"queue-url", "store-url", "lock-url"};
    std::optional<StoreAddress> whole;
    if (const auto url = args.text("url")) whole = parse_store_url("--url", *url);
    std::vector<StoreAddress> parts;
    for (const std::string_view part : kParts) {
        const auto url = args.text(part);
        if (!url) continue;
        if (part == "lock-url" && redis::is_redis_url(*url)) continue;  // locks of their own
        if (args.from_call(part) && args.from_call("url")) {
            throw Failure(usage_error(fmt::format("--url and --{} are both given", part),
                                      "--url names queue, store and locks at once"));
        }
        parts.push_back(parse_store_url(fmt::format("--{}", part), *url));
    }
    if (parts.empty()) return whole ? *whole : default_address(environment);
    const bool all_named = parts.size() == kParts.size();
    if (whole && !all_named && !args.from_call("url")) parts.push_back(*whole);
    for (const StoreAddress& other : parts) {
        if (other == parts.front()) continue;
        throw Failure(usage_error(
            fmt::format("queue, store and locks in two databases ({} and {}) are not supported",
                        parts.front().url(), other.url()),
            "use one: --url sqlite:PATH"));
    }
    return parts.front();
}

}  // namespace sekali::cli
