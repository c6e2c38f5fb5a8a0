#include "backends/redis/diagnosis.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "backends/redis/ask.hpp"
#include "backends/redis/errors.hpp"
#include "backends/redis/open.hpp"
#include "base/clock.hpp"

namespace sekali::redis {
namespace {

/// The value of `name:value` in a reply to INFO; empty where there is none.
std::string_view info_of(std::string_view info, std::string_view name) {
    for (std::size_t at = 0; at < info.size();) {
        const std::size_t end = std::min(info.find("\r\n", at), info.size());
        const std::string_view line = info.substr(at, end - at);
        if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
            return line.substr(name.size() + 1);
        }
        at = end + 2;
    }
    return {};
}

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Call call_of(std::vector<std::string> words) {
    Call call;
    call.words = std::move(words);
    return call;
}

Millis ahead_of_host(const Reply& time) {
    if (time.items.size() != 2) return Millis{0};
    constexpr std::uint64_t kThousand = 1000;
    const std::uint64_t theirs =
        number(time.items[0].text) * kThousand + number(time.items[1].text) / kThousand;
    return Millis{static_cast<std::int64_t>(theirs) - static_cast<std::int64_t>(base::wall_ms())};
}

}  // namespace

Result<Diagnosis> diagnose(std::string_view url) {
    const auto opened = open_server(url);
    if (!opened.ok()) return opened.error();
    const auto replies = ask(*opened->server, {call_of({"TIME"}), call_of({"INFO"}),
                                               call_of({"CONFIG", "GET", "appendfsync"}),
                                               call_of({"CONFIG", "GET", "save"})});
    for (const std::size_t needed : {0U, 1U}) {
        if (!replies[needed].ok()) return replies[needed].error();
    }
    Diagnosis found;
    found.clock_ahead = ahead_of_host(*replies[0]);
    const std::string_view info = replies[1]->text;
    found.server = info_of(info, "redis_version");
    found.replica = info_of(info, "role") == "slave";
    found.memory_limit = number(info_of(info, "maxmemory"));
    found.eviction_policy = info_of(info, "maxmemory_policy");
    found.evicted = number(info_of(info, "evicted_keys"));
    found.append_only = info_of(info, "aof_enabled") == "1";
    found.replicas = number(info_of(info, "connected_slaves"));
    // Where CONFIG is not allowed, as at most providers, the rest is not known.
    if (replies[2].ok() && replies[2]->items.size() == 2) {
        found.append_fsync = replies[2]->items[1].text;
    }
    if (replies[3].ok() && replies[3]->items.size() == 2) {
        found.snapshots_known = true;
        found.snapshots = !replies[3]->items[1].text.empty();
    }
    return found;
}

}  // namespace sekali::redis
