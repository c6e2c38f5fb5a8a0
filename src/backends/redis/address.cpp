#include "backends/redis/address.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

using base::usage_error;

constexpr std::uint16_t kServerPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr std::uint64_t kMaxDb = 65'535;
constexpr std::string_view kForm = "write redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]";

struct Scheme {
    std::string_view name;
    Topology topology;
    bool tls;
    bool unix_socket;
};
constexpr std::array kSchemes{
    Scheme{"redis", Topology::kSingle, false, false},
    Scheme{"rediss", Topology::kSingle, true, false},
    Scheme{"redis+unix", Topology::kSingle, false, true},
    Scheme{"redis+sentinel", Topology::kSentinel, false, false},
    Scheme{"redis+cluster", Topology::kCluster, false, false},
};

const Scheme* find_scheme(std::string_view url) {
    const std::string_view name = url.substr(0, url.find(':'));
    for (const Scheme& scheme : kSchemes) {
        if (scheme.name == name && name.size() < url.size()) return &scheme;
    }
    return nullptr;
}

/// Cuts what is before the first `separator` off `rest`; all of it where there is none.
std::string_view take_until(std::string_view& rest, char separator) {
    const std::size_t at = rest.find(separator);
    const std::string_view head = rest.substr(0, at);
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
    return head;
}

std::optional<std::string> decoded(std::string_view text) {
    std::string bytes;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            bytes += text[at];
            continue;
        }
        unsigned value = 0;
        if (at + 3 > text.size()) return std::nullopt;
        const char* first = text.data() + at + 1;
        const auto parsed = std::from_chars(first, first + 2, value, 16);
        if (parsed.ec != std::errc{} || parsed.ptr != first + 2) return std::nullopt;
        bytes += static_cast<char>(value);
        at += 2;
    }
    return bytes;
}

class Parser {
 public:
    Parser(const Scheme& scheme, std::string_view rest) : scheme_(scheme), rest_(rest) {
        address_.topology = scheme.topology;
        address_.tls = scheme.tls;
    }

    Result<Address> run() {
        // A `?` in a password must be written as %3F, so the first one begins the parameters.
        std::string_view place = take_until(rest_, '?');
        if (rest_.find('@') != std::string_view::npos) {
            return wrong("a ? before its @, which is written %3F");
        }
        if (auto fine = take_place(place); !fine) return fine.error();
        while (!rest_.empty()) {
            if (auto fine = take_parameter(take_until(rest_, '&')); !fine) return fine.error();
        }
        if (address_.topology == Topology::kCluster && address_.db != 0) {
            return usage_error("a Redis Cluster has only database 0");
        }
        if (address_.cert_file.empty() != address_.key_file.empty()) {
            return usage_error("the parameters cert and key belong together");
        }
        return std::move(address_);
    }

 private:
    Result<void> take_place(std::string_view place);
    Result<void> take_login(std::string_view login);
    Result<void> take_hosts(std::string_view hosts);
    Result<void> take_path(std::string_view path);
    Result<void> take_db(std::string_view text);
    Result<void> take_parameter(std::string_view parameter);
    [[nodiscard]] Error wrong(std::string_view what) const {
        return usage_error(fmt::format("the {}: URL has {}", scheme_.name, what),
                           std::string(kForm));
    }

    const Scheme& scheme_;
    std::string_view rest_;
    Address address_;
};

Result<void> Parser::take_place(std::string_view place) {
    const bool has_authority = place.starts_with("//");
    if (!has_authority && !scheme_.unix_socket) return wrong("no // before its host");
    if (has_authority) place.remove_prefix(2);
    const std::size_t at = place.rfind('@');
    if (has_authority && at != std::string_view::npos) {
        if (auto fine = take_login(place.substr(0, at)); !fine) return fine;
        place.remove_prefix(at + 1);
    }
    if (scheme_.unix_socket) {
        const auto path = decoded(place);
        if (!path || !path->starts_with('/')) return wrong("no absolute path");
        address_.unix_path = *path;
        return {};
    }
    const std::string_view hosts = take_until(place, '/');
    if (auto fine = take_hosts(hosts); !fine) return fine;
    return take_path(place);
}

Result<void> Parser::take_login(std::string_view login) {
    const bool has_password = login.find(':') != std::string_view::npos;
    const auto user = decoded(take_until(login, ':'));
    const auto password = decoded(login);
    if (!user || !password) return wrong("a user or password with a bad percent sign");
    if (!has_password) return wrong("a user without a password");
    address_.user = *user;
    address_.password = *password;
    return {};
}

Result<void> Parser::take_hosts(std::string_view hosts) {
    const std::uint16_t default_port =
        address_.topology == Topology::kSentinel ? kSentinelPort : kServerPort;
    do {
        std::string_view one = take_until(hosts, ',');
        HostPort host{.host = {}, .port = default_port};
        if (one.starts_with('[')) {
            one.remove_prefix(1);
            host.host = take_until(one, ']');
            if (!one.empty() && !one.starts_with(':')) return wrong("a bad IPv6 address");
        } else {
            const std::size_t colon = one.find(':');
            host.host = one.substr(0, colon);
            one.remove_prefix(std::min(colon, one.size()));
        }
        if (host.host.empty()) return wrong("no host");
        if (one.size() > 1) {
            const auto port = base::parse_count("port", one.substr(1), 1, 65'535);
            if (!port.ok()) return wrong("a bad port");
            host.port = static_cast<std::uint16_t>(*port);
        }
        address_.hosts.push_back(std::move(host));
    } while (!hosts.empty());
    if (address_.topology == Topology::kSingle && address_.hosts.size() > 1) {
        return wrong("more than one host");
    }
    return {};
}

Result<void> Parser::take_path(std::string_view path) {
    if (address_.topology == Topology::kSentinel) {
        const auto master = decoded(take_until(path, '/'));
        if (!master || master->empty()) return wrong("no name of a group behind its hosts");
        address_.master = *master;
    }
    return path.empty() ? Result<void>{} : take_db(path);
}

Result<void> Parser::take_db(std::string_view text) {
    const auto db = base::parse_count("db", text, 0, kMaxDb);
    if (!db.ok()) return wrong("a bad database number");
    address_.db = static_cast<int>(*db);
    return {};
}

Result<void> Parser::take_parameter(std::string_view parameter) {
    const std::string name{take_until(parameter, '=')};
    const auto value = decoded(parameter);
    if (!value) return wrong("a parameter with a bad percent sign");
    if (name == "db") return take_db(*value);
    if (name == "timeout") {
        const auto timeout = base::parse_duration("timeout", *value, base::DurationRule::kPositive);
        if (!timeout.ok()) return timeout.error();
        address_.timeout = *timeout;
    } else if (name == "tls") {
        if (*value != "true" && *value != "false") return wrong("tls, which is true or false");
        address_.tls = *value == "true";
    } else if (name == "ca") {
        address_.ca_file = *value;
    } else if (name == "cert") {
        address_.cert_file = *value;
    } else if (name == "key") {
        address_.key_file = *value;
    } else {
        return usage_error(
            fmt::format("the {}: URL has no parameter {}", scheme_.name, base::quoted(name)),
            "parameters are db, timeout, tls, ca, cert, key");
    }
    return {};
}

}  // namespace

std::string Address::printable() const {
    if (!unix_path.empty()) return "redis+unix:" + base::printable(unix_path);
    std::string text = topology == Topology::kSentinel  ? "redis+sentinel://"
                       : topology == Topology::kCluster ? "redis+cluster://"
                       : tls                            ? "rediss://"
                                                        : "redis://";
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        const bool v6 = hosts[i].host.find(':') != std::string::npos;
        text += fmt::format("{}{}{}{}:{}", i == 0 ? "" : ",", v6 ? "[" : "",
                            base::printable(hosts[i].host), v6 ? "]" : "", hosts[i].port);
    }
    if (!master.empty()) text += "/" + base::printable(master);
    if (db != 0) text += fmt::format("/{}", db);
    return text;
}

bool is_redis_url(std::string_view url) {
    return find_scheme(url) != nullptr;
}

Result<Address> parse_address(std::string_view url) {
    const Scheme* scheme = find_scheme(url);
    if (scheme == nullptr) return usage_error("this is no Redis URL", std::string(kForm));
    return Parser(*scheme, url.substr(scheme->name.size() + 1)).run();
}

}  // namespace sekali::redis
