#include "backends/redis/lock_admin.hpp"

#include <charconv>
#include <utility>

#include "backends/redis/ask.hpp"
#include "backends/redis/errors.hpp"
#include "backends/redis/lock_scripts.hpp"
#include "base/errors.hpp"

namespace sekali::redis {
namespace {

std::optional<LockView> read_view(std::string name, std::string key, const Reply& reply) {
    if (reply.items.size() != 4) return std::nullopt;
    LockView view;
    view.name = std::move(name);
    view.key = std::move(key);
    view.owner = reply.items[0].text;
    view.left = Millis{reply.items[1].integer};
    const std::string& fence = reply.items[2].text;
    std::from_chars(fence.data(), fence.data() + fence.size(), view.fence);
    view.holders = static_cast<std::uint64_t>(reply.items[3].integer);
    return view;
}

/// A prefix as a pattern of SCAN that matches what begins with it.
std::string pattern_of(std::string_view prefix) {
    std::string pattern;
    for (const char byte : prefix) {
        if (std::string_view("*?[]^-\\").find(byte) != std::string_view::npos) pattern += '\\';
        pattern += byte;
    }
    return pattern + "*";
}

}  // namespace

LockAdmin::LockAdmin(OpenServer opened, LockSettings settings)
    : opened_(std::move(opened)),
      port_(std::make_unique<LockPort>(opened_.server, std::move(settings))) {}

Result<LockAdmin> LockAdmin::open(std::string_view url, LockSettings settings) {
    auto opened = open_server(url);
    if (!opened.ok()) return opened.error();
    return LockAdmin(*std::move(opened), std::move(settings));
}

Call LockAdmin::show_call(std::string key) const {
    Call call;
    call.script = &admin_scripts().show;
    call.words = {"3", key, lock_names(port_->settings().profile, key).fence,
                  permit_names(key).holders};
    return call;
}

Result<std::optional<LockView>> LockAdmin::show(std::string_view ns, std::string_view name) {
    std::string key = port_->key_of(ns, name);
    auto reply = ask(*opened_.server, show_call(key));
    if (!reply.ok()) return reply.error();
    return read_view(std::string(name), std::move(key), *reply);
}

Result<std::vector<LockView>> LockAdmin::list(std::string_view ns) {
    const std::string prefix = port_->key_of(ns, "");
    if (prefix.empty()) {
        return base::usage_error("without a prefix any key might be a lock",
                                 "name it: sekali locks show NAME --lock-prefix ''");
    }
    std::vector<LockView> views;
    std::string cursor = "0";
    do {
        Call scan;
        scan.words = {"SCAN", cursor, "MATCH", pattern_of(prefix), "COUNT", "500"};
        auto page = ask(*opened_.server, std::move(scan));
        if (!page.ok()) return page.error();
        if (page->items.size() != 2) return unreachable("it answered SCAN with something else");
        cursor = page->items[0].text;
        std::vector<Call> calls;
        for (const Reply& key : page->items[1].items)
            calls.push_back(show_call(key.text));
        const auto replies = ask(*opened_.server, std::move(calls));
        for (std::size_t i = 0; i < replies.size(); ++i) {
            if (!replies[i].ok()) return replies[i].error();
            const std::string& key = page->items[1].items[i].text;
            auto view = read_view(key.substr(prefix.size()), key, *replies[i]);
            if (view) views.push_back(*std::move(view));
        }
    } while (cursor != "0");
    return views;
}

Result<bool> LockAdmin::take_away(std::string_view ns, std::string_view name) {
    const std::string key = port_->key_of(ns, name);
    const PermitNames permits = permit_names(key);
    Call call;
    call.script = &admin_scripts().take_away;
    call.words = {"2",
                  key,
                  permits.holders,
                  lock_names(port_->settings().profile, key).channel,
                  permits.channel,
                  opened_.server->publish_command()};
    auto reply = ask(*opened_.server, std::move(call));
    if (!reply.ok()) return reply.error();
    return reply->integer == 1;
}

}  // namespace sekali::redis
