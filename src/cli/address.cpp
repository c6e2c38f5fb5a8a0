#include "cli/address.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <vector>

#include "backends/postgres/options.hpp"
#include "backends/redis/address.hpp"
#include "backends/sqlite/url.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "cli/nearest.hpp"

namespace sekali::cli {
namespace {

using base::usage_error;

constexpr std::array<std::string_view, 8> kSchemes{
    "sqlite", "memory", "postgres", "redis", "rediss", "redis+sentinel", "redis+cluster", "amqp"};

StoreAddress default_address(const Arguments::Environment& environment) {
    StoreAddress address;
    address.is_default = true;
    address.path = sqlite::default_path(environment).value();
    return address;
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
                                                              : "this build knows sqlite:PATH and "
                                                                "postgres://HOST/DATABASE"));
    }
    std::string hint = did_you_mean(scheme, kSchemes);
    if (scheme.empty() || rest.empty()) hint = "write sqlite:PATH";
    throw Failure(usage_error(
        fmt::format("{}: {} does not begin with a scheme that is known", field,
                    base::quoted(scheme.empty() ? "" : fmt::format("{}:", scheme))),
        hint.empty() ? "this build knows sqlite:PATH and postgres://HOST/DATABASE" : hint));
}

}  // namespace

std::string StoreAddress::url() const {
    return postgres.empty() ? "sqlite:" + path : postgres::without_secrets(postgres);
}

std::string StoreAddress::full_url() const {
    if (!postgres.empty()) return postgres;
    return url() + (synchronous_full ? "" : "?synchronous=normal");
}

StoreAddress parse_store_url(std::string_view field, std::string_view url) {
    const std::size_t colon = url.find(':');
    if (colon == std::string_view::npos) {
        throw Failure(usage_error(fmt::format("{} has no scheme", field), "write sqlite:PATH"));
    }
    const std::string_view scheme = url.substr(0, colon);
    if (postgres::is_postgres_url(url)) {
        static_cast<void>(postgres::parse_url(url));
        StoreAddress address;
        address.postgres = url;
        return address;
    }
    if (scheme != "sqlite") refuse_scheme(field, scheme, url.substr(colon + 1));
    const sqlite::SqliteOptions options = sqlite::parse_url(field, url).value();
    StoreAddress address;
    address.path = options.path;
    address.synchronous_full = options.synchronous == sqlite::Synchronous::kFull;
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
