#include "backends/redis/lock_scripts.hpp"

#include <string>
#include <string_view>

namespace sekali::redis {
namespace {

/// The next fence. It is never below the server's clock in microseconds, so that it does not fall
/// back when its key has expired or a failover has lost it; Redisson adds one to whatever it finds.
/// A key that Redisson made lives for ever and keeps doing so.
constexpr std::string_view kNextFence = R"lua(
local function next_fence(key, life)
    local time = redis.call('time')
    local floor = time[1] * 1000000 + time[2]
    local last = redis.call('get', key)
    local fence = (tonumber(last) or 0) + 1
    if fence < floor then fence = floor end
    local text = string.format('%.0f', fence)
    if last and redis.call('pttl', key) == -1 then
        redis.call('set', key, text)
    else
        redis.call('set', key, text, 'PX', life)
    end
    return text
end
)lua";

// RedissonLock.tryLockInnerAsync, unlockInnerAsync and the renewal of LockTask; with one hold for
// each owner there is no count and no latch.

constexpr std::string_view kHashAcquire = R"lua(
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if not mine and redis.call('exists', KEYS[1]) == 1 then
    local holder = ''
    for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
        if field ~= 'mode' then holder = field end
    end
    return {0, redis.call('pttl', KEYS[1]), holder}
end
local fence = mine and redis.call('get', KEYS[2]) or next_fence(KEYS[2], ARGV[3])
redis.call('hset', KEYS[1], ARGV[1], '1')
redis.call('pexpire', KEYS[1], ARGV[2])
return {1, fence}
)lua";

constexpr std::string_view kHashHolds = R"lua(
local function holds(key, owner)
    return redis.pcall('hexists', key, owner) == 1
end
)lua";

constexpr std::string_view kHashRelease = R"lua(
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call(ARGV[3], ARGV[2], '0')
return 1
)lua";

// SET NX PX and the compare-and-delete script of the Redis documentation, in one piece with the
// fence.

constexpr std::string_view kStringAcquire = R"lua(
local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[1] then return {0, redis.call('pttl', KEYS[1]), holder} end
local fence = holder and redis.call('get', KEYS[2]) or next_fence(KEYS[2], ARGV[3])
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, fence}
)lua";

constexpr std::string_view kStringHolds = R"lua(
local function holds(key, owner)
    return redis.pcall('get', key) == owner
end
)lua";

constexpr std::string_view kStringRelease = R"lua(
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
redis.call(ARGV[3], ARGV[2], '0')
return 1
)lua";

constexpr std::string_view kRenew = R"lua(
local fences = {}
for i = 1, #KEYS / 2 do
    if holds(KEYS[2 * i - 1], ARGV[2 * i - 1]) then
        redis.call('pexpire', KEYS[2 * i - 1], ARGV[2 * i])
        fences[i] = redis.call('get', KEYS[2 * i]) or '0'
    else
        fences[i] = false
    end
end
return fences
)lua";

// RedissonPermitExpirableSemaphore: a string with the free permits, a sorted set with the taken.

constexpr std::string_view kPermitAcquire = R"lua(
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local free = redis.call('get', KEYS[1])
local mine = redis.call('zscore', KEYS[2], ARGV[1])
redis.call('zremrangebyscore', KEYS[2], 0, now)
local taken = redis.call('zcard', KEYS[2])
if mine and tonumber(mine) > now then taken = taken - 1 else mine = false end
local permits = tonumber(ARGV[3])
if taken >= permits and not mine then
    if free then redis.call('set', KEYS[1], permits - taken, 'KEEPTTL') end
    local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')
    return {0, math.floor(tonumber(first[2]) - now), first[1]}
end
redis.call('zadd', KEYS[2], now + ARGV[2], ARGV[1])
if free and redis.call('pttl', KEYS[1]) == -1 then
    redis.call('set', KEYS[1], permits - taken - 1)
else
    redis.call('set', KEYS[1], permits - taken - 1, 'PX', ARGV[4])
    redis.call('pexpire', KEYS[2], ARGV[4])
end
return {1, '0'}
)lua";

constexpr std::string_view kPermitRenew = R"lua(
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('zscore', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
redis.call('zadd', KEYS[2], now + ARGV[2], ARGV[1])
return 1
)lua";

constexpr std::string_view kPermitRelease = R"lua(
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('zscore', KEYS[2], ARGV[1])
if redis.call('zrem', KEYS[2], ARGV[1]) == 0 then return 0 end
local free = redis.call('incrby', KEYS[1], 1)
redis.call(ARGV[3], ARGV[2], free)
if tonumber(ends) <= now then return 0 end
return 1
)lua";

constexpr std::string_view kShow = R"lua(
local kind = redis.call('type', KEYS[1]).ok
if kind == 'none' then return false end
local fence = redis.call('get', KEYS[2]) or '0'
if kind == 'string' and redis.call('exists', KEYS[3]) == 0 then
    local holder = redis.call('get', KEYS[1])
    -- the number of permits of a semaphore that nobody uses
    if #holder < 8 and string.match(holder, '^%d+$') then return false end
    return {holder, redis.call('pttl', KEYS[1]), fence, 1}
end
if kind == 'string' then
    local time = redis.call('time')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local held = redis.call('zrangebyscore', KEYS[3], now, '+inf', 'WITHSCORES')
    if #held == 0 then return false end
    return {held[1], math.floor(tonumber(held[2]) - now), '0', #held / 2}
end
if kind ~= 'hash' then return false end
local holder, holders = false, 0
for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    if field ~= 'mode' then holder, holders = field, holders + 1 end
end
if not holder then return false end
return {holder, redis.call('pttl', KEYS[1]), fence, holders}
)lua";

/// For locks RedissonLock.forceUnlockAsync.
constexpr std::string_view kTakeAway = R"lua(
local permits = redis.call('zcard', KEYS[2])
if redis.call('del', KEYS[1], KEYS[2]) == 0 then return 0 end
if permits > 0 then
    redis.call(ARGV[3], ARGV[2], permits)
else
    redis.call(ARGV[3], ARGV[1], '0')
end
return 1
)lua";

Script joined(std::string_view function, std::string_view text) {
    return Script(std::string(function).append(text));
}

}  // namespace

const LockScripts& lock_scripts(LockProfile profile) {
    static const LockScripts hash{joined(kNextFence, kHashAcquire), joined(kHashHolds, kRenew),
                                  Script(kHashRelease)};
    static const LockScripts string{joined(kNextFence, kStringAcquire),
                                    joined(kStringHolds, kRenew), Script(kStringRelease)};
    return profile == LockProfile::kRedisson ? hash : string;
}

const PermitScripts& permit_scripts() {
    static const PermitScripts scripts{Script(kPermitAcquire), Script(kPermitRenew),
                                       Script(kPermitRelease)};
    return scripts;
}

const AdminScripts& admin_scripts() {
    static const AdminScripts scripts{Script(kShow), Script(kTakeAway)};
    return scripts;
}

}  // namespace sekali::redis
