#include "backends/redis/lock_names.hpp"

#include <fmt/format.h>

#include <utility>

namespace sekali::redis {
namespace {

// Redisson's RedissonObject.prefixName and suffixName: all keys of one object share a slot.

std::string prefixed(std::string_view prefix, std::string_view key) {
    if (key.find('{') != std::string_view::npos) return fmt::format("{}:{}", prefix, key);
    return fmt::format("{}:{{{}}}", prefix, key);
}

std::string suffixed(std::string_view key, std::string_view suffix) {
    if (key.find('{') != std::string_view::npos) return fmt::format("{}:{}", key, suffix);
    return fmt::format("{{{}}}:{}", key, suffix);
}

}  // namespace

LockNames lock_names(LockProfile profile, std::string key) {
    LockNames names;
    if (profile == LockProfile::kRedisson) {
        names.fence = prefixed("redisson_lock_token", key);
        names.channel = prefixed("redisson_lock__channel", key);
    } else {
        names.fence = prefixed("sekali_lock_token", key);
        names.channel = prefixed("sekali_lock__channel", key);
    }
    names.key = std::move(key);
    return names;
}

PermitNames permit_names(std::string key) {
    PermitNames names{
        .key = {}, .holders = suffixed(key, "timeout"), .channel = prefixed("redisson_sc", key)};
    names.key = std::move(key);
    return names;
}

std::uint16_t cluster_slot(std::string_view key) {
    constexpr std::uint16_t kSlots = 16'384;
    const std::size_t open = key.find('{');
    if (open != std::string_view::npos) {
        const std::size_t close = key.find('}', open + 1);
        if (close != std::string_view::npos && close > open + 1) {
            key = key.substr(open + 1, close - open - 1);
        }
    }
    unsigned crc = 0;
    for (const char byte : key) {
        crc ^= unsigned{static_cast<unsigned char>(byte)} << 8U;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    }
    return static_cast<std::uint16_t>((crc & 0xFFFFU) % kSlots);
}

}  // namespace sekali::redis
