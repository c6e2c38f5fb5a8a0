#include "backends/redis/lock_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "backends/redis/errors.hpp"
#include "backends/redis/lock_scripts.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

using engine::LockReply;
using Kind = LockReply::Kind;

/// A fence that nobody asked for so long starts again from the server's clock.
constexpr std::chrono::hours kFenceLife{24 * 100};
/// Redisson's chunk; one script holds the server up for well below a millisecond.
constexpr std::size_t kMostRenewals = 100;
/// A renewal that is lost is repeated before the lock is.
constexpr int kRenewalShare = 6;
constexpr Millis kLeastRenewalTimeout{100};

std::string ms(Millis duration) {
    return std::to_string(duration.count());
}

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Error senseless() {
    return unreachable("it answered a script with something else than ours does");
}

/// Says which lock it is, and what a key of another type means.
Error explained(Error error, LockProfile profile, const std::string& key) {
    if (error.backend_code != "WRONGTYPE") return error;
    const bool hash = profile == LockProfile::kRedisson;
    error.message = fmt::format(
        "redis: the key {} is no {}, so somebody else uses it or locks it in another profile",
        base::quoted(key), hash ? "hash" : "string");
    error.hint = fmt::format("all who share a lock use one profile: --lock-profile {}",
                             hash ? "string" : "redisson");
    return error;
}

Result<LockReply> read_acquired(const Reply& reply) {
    if (reply.items.size() < 2) return senseless();
    LockReply answer;
    if (reply.items[0].integer == 1) {
        answer.kind = Kind::kAcquired;
        answer.fence = number(reply.items[1].text);
        return answer;
    }
    if (reply.items.size() != 3) return senseless();
    answer.kind = Kind::kBusy;
    answer.remaining = Millis{reply.items[1].integer};
    answer.holder = reply.items[2].text;
    return answer;
}

LockReply simple(Kind kind) {
    LockReply answer;
    answer.kind = kind;
    return answer;
}

}  // namespace

std::string LockPort::key_of(std::string_view ns, std::string_view name) const {
    if (settings_.prefix) return fmt::format("{}{}", *settings_.prefix, name);
    return fmt::format("sekali:{}:lock:{}", ns, name);
}

std::string LockPort::channel_of(const engine::LockAcquire& request) const {
    std::string key = key_of(request.ns, request.name);
    return request.permits == 0 ? lock_names(settings_.profile, std::move(key)).channel
                                : permit_names(std::move(key)).channel;
}

redis::Call LockPort::acquisition(const engine::LockAcquire& command, Done done) const {
    redis::Call call;
    std::string key = key_of(command.ns, command.name);
    if (command.permits == 0) {
        const LockNames names = lock_names(settings_.profile, std::move(key));
        call.script = &lock_scripts(settings_.profile).acquire;
        call.words = {"2", names.key, names.fence, command.token, ms(command.ttl), ms(kFenceLife)};
        key = names.key;
    } else {
        const PermitNames names = permit_names(std::move(key));
        call.script = &permit_scripts().acquire;
        call.words = {"2",           names.key,       names.holders,
                      command.token, ms(command.ttl), std::to_string(command.permits),
                      ms(kFenceLife)};
        key = names.key;
    }
    call.done = [done = std::move(done), profile = settings_.profile,
                 key = std::move(key)](Result<Reply> reply) {
        if (!reply.ok()) return done(explained(std::move(reply).error(), profile, key));
        done(read_acquired(*reply));
    };
    return call;
}

void LockPort::acquire(const engine::LockAcquire& command, TimePoint send_by, Done done) {
    std::vector<redis::Call> calls;
    calls.push_back(acquisition(command, std::move(done)));
    calls.back().send_by = send_by;
    server_->submit(std::move(calls));
}

redis::Call LockPort::release(const engine::LockRelease& command, Done done) const {
    redis::Call call;
    std::string key = key_of(command.ns, command.name);
    if (!command.permit) {
        const LockNames names = lock_names(settings_.profile, std::move(key));
        call.script = &lock_scripts(settings_.profile).release;
        call.words = {"1", names.key, command.token, names.channel, server_->publish_command()};
        key = names.key;
    } else {
        const PermitNames names = permit_names(std::move(key));
        call.script = &permit_scripts().release;
        call.words = {"2",           names.key,     names.holders,
                      command.token, names.channel, server_->publish_command()};
        key = names.key;
    }
    call.done = [done = std::move(done), profile = settings_.profile,
                 key = std::move(key)](Result<Reply> reply) {
        if (!reply.ok()) return done(explained(std::move(reply).error(), profile, key));
        done(simple(reply->integer == 1 ? Kind::kReleased : Kind::kLost));
    };
    return call;
}

redis::Call LockPort::renew_permit(const engine::LockRenew& command, Done done) const {
    const PermitNames names = permit_names(key_of(command.ns, command.name));
    redis::Call call;
    call.script = &permit_scripts().renew;
    call.words = {"2", names.key, names.holders, command.token, ms(command.ttl)};
    call.done = [done = std::move(done)](Result<Reply> reply) {
        if (!reply.ok()) return done(std::move(reply).error());
        done(simple(reply->integer == 1 ? Kind::kAcquired : Kind::kLost));
    };
    return call;
}

/// Renewals of one slot that go out as one script.
struct LockPort::Renewals {
    std::vector<std::string> keys;
    std::vector<std::string> arguments;
    std::vector<Done> waiting;
    Millis shortest{Millis::max()};

    void add(LockNames names, const engine::LockRenew& command, Done done) {
        keys.push_back(std::move(names.key));
        keys.push_back(std::move(names.fence));
        arguments.push_back(command.token);
        arguments.push_back(ms(command.ttl));
        waiting.push_back(std::move(done));
        shortest = std::min(shortest, command.ttl);
    }

    [[nodiscard]] redis::Call take(LockProfile profile) {
        redis::Call call;
        call.script = &lock_scripts(profile).renew;
        call.timeout = std::max(shortest / kRenewalShare, kLeastRenewalTimeout);
        call.words.push_back(std::to_string(keys.size()));
        std::move(keys.begin(), keys.end(), std::back_inserter(call.words));
        std::move(arguments.begin(), arguments.end(), std::back_inserter(call.words));
        call.done = [all = std::move(waiting)](const Result<Reply>& reply) { answer(all, reply); };
        *this = {};
        return call;
    }

    static void answer(const std::vector<Done>& all, const Result<Reply>& reply) {
        const bool fits = reply.ok() && reply->items.size() == all.size();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!reply.ok()) {
                all[i](reply.error());
            } else if (!fits) {
                all[i](senseless());
            } else if (reply->items[i].is(Reply::Type::kNil)) {
                all[i](simple(Kind::kLost));
            } else {
                LockReply kept = simple(Kind::kAcquired);
                kept.fence = number(reply->items[i].text);
                all[i](std::move(kept));
            }
        }
    }
};

void LockPort::submit(std::vector<Call> calls) {
    std::vector<redis::Call> requests;
    std::map<std::uint16_t, Renewals> renewals;
    const auto flush = [&](Renewals& batch) {
        if (!batch.waiting.empty()) requests.push_back(batch.take(settings_.profile));
    };
    for (auto& [command, done] : calls) {
        if (const auto* wanted = std::get_if<engine::LockAcquire>(&command)) {
            requests.push_back(acquisition(*wanted, std::move(done)));
        } else if (const auto* ended = std::get_if<engine::LockRelease>(&command)) {
            requests.push_back(release(*ended, std::move(done)));
        } else if (const auto& renewed = std::get<engine::LockRenew>(command); renewed.permit) {
            requests.push_back(renew_permit(renewed, std::move(done)));
        } else {
            LockNames names = lock_names(settings_.profile, key_of(renewed.ns, renewed.name));
            const std::uint16_t slot = server_->has_slots() ? cluster_slot(names.key) : 0;
            Renewals& batch = renewals[slot];
            batch.add(std::move(names), renewed, std::move(done));
            if (batch.waiting.size() == kMostRenewals) flush(batch);
        }
    }
    for (auto& [slot, batch] : renewals)
        flush(batch);
    server_->submit(std::move(requests));
}

}  // namespace sekali::redis
