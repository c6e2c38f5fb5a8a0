#include "backends/redis/queue_scripts.hpp"

#include <string>

namespace sekali::redis {

const std::string_view kServerClock = R"lua(
local function clock()
    local time = redis.call('time')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end
)lua";

namespace {

/// What the scripts share. A job's hash says in `state` in which set of its kind its id is.
/// Numbers are never joined into text, which would round them.
constexpr std::string_view kCommon = R"lua(
local Q = KEYS[1]
local NOW = clock()

local function set_of(queue, state, kind) return queue .. ':' .. state .. ':' .. kind end

local function load_key(key)
    local v = redis.call('hmget', key, 'state', 'kind', 'place', 'owner', 'deliveries', 'slot',
                         'follow_up', 'behind', 'cancel', 'unique_until')
    if not v[1] then return nil end
    local queue, id = string.match(key, '^(.-}):job:(.*)$')
    return {key = key, queue = queue, id = id, state = v[1], kind = v[2], place = v[3],
            owner = v[4], deliveries = tonumber(v[5] or '0'), slot = v[6], follow_up = v[7],
            behind = v[8], cancel = v[9], until_start = v[10] == 'start'}
end
local function load(id) return load_key(Q .. ':job:' .. id) end

local function is_final(state)
    return state == 'succeeded' or state == 'duplicate' or state == 'dead' or state == 'cancelled'
end

local function leave(job)
    redis.call('zrem', set_of(job.queue, job.state, job.kind), job.id)
    if job.state == 'scheduled' then
        redis.call('srem', set_of(job.queue, 'retries', job.kind), job.id)
    elseif job.state == 'running' then
        redis.call('hdel', job.key, 'owner', 'lease_until')
    end
end

local function enter(job, state, score)
    job.state = state
    redis.call('hset', job.key, 'state', state)
    redis.call('zadd', set_of(job.queue, state, job.kind), score, job.id)
end

local function take_slot(job)
    local taken = redis.call('get', job.slot)
    if taken and taken ~= job.key then
        local holder = load_key(taken)
        if holder and holder.slot == job.slot and not is_final(holder.state)
            and redis.call('hget', taken, 'slot_held') == '1' then return holder end
    end
    redis.call('set', job.slot, job.key)
    redis.call('hset', job.key, 'slot_held', '1')
    return nil
end

local function free_slot(job)
    if not job.slot then return end
    if redis.call('get', job.slot) == job.key then redis.call('del', job.slot) end
    redis.call('hdel', job.key, 'slot_held')
end

local function put(job, delay)
    if delay > 0 then
        redis.call('hset', job.key, 'run_at', NOW + delay)
        enter(job, 'scheduled', NOW + delay)
        if job.deliveries > 0 then
            redis.call('sadd', set_of(job.queue, 'retries', job.kind), job.id)
        end
    else
        redis.call('hset', job.key, 'run_at', NOW)
        enter(job, 'ready', job.place)
    end
end

local function wake_follow_up(job)
    if not job.follow_up then return end
    local next = load_key(job.follow_up)
    redis.call('hdel', job.key, 'follow_up')
    if not next or next.state ~= 'waiting' then return end
    leave(next)
    redis.call('hdel', next.key, 'behind', 'waiting_name')
    put(next, tonumber(redis.call('hget', next.key, 'run_at')) - NOW)
end

local function step_out_of_line(job)
    if not job.behind then return end
    if redis.call('hget', job.behind, 'follow_up') == job.key then
        redis.call('hdel', job.behind, 'follow_up')
    end
    redis.call('hdel', job.key, 'behind', 'waiting_name')
end

local function forget(job)
    redis.call('zrem', job.queue .. ':all', job.id)
    redis.call('zrem', job.queue .. ':ended', job.id)
    redis.call('del', job.key)
end

local function finish(job, state, reason, keep)
    leave(job)
    free_slot(job)
    step_out_of_line(job)
    wake_follow_up(job)
    redis.call('hset', job.key, 'state', state, 'reason', reason, 'finished_at', NOW)
    job.state = state
    if state == 'dead' then
        redis.call('zadd', set_of(job.queue, 'dead', job.kind), NOW, job.id)
        return
    end
    redis.call('zadd', job.queue .. ':ended', NOW + keep, job.id)
    if state ~= 'cancelled' then redis.call('hdel', job.key, 'payload') end
end

local function is_claimed(job, worker, token)
    return job and job.state == 'running' and job.owner == worker
        and job.deliveries == tonumber(token)
end

local function requeue(job, delay, keep)
    if job.cancel then return finish(job, 'cancelled', 'cancelled', keep) end
    leave(job)
    put(job, delay)
end

-- A claim that nobody settled has not started: it has its slot again, if nobody took it since.
local function hand_back(job, delay, keep)
    if job.slot and job.until_start then take_slot(job) end
    requeue(job, delay, keep)
end
)lua";

constexpr std::string_view kEnqueue = R"lua(
local function take_place_of(holder, key)
    if holder.state == 'running' or holder.state == 'held' then
        redis.call('hdel', holder.key, 'slot_held')
        redis.call('hset', holder.key, 'follow_up', key)
        return holder.key
    end
    local behind = holder.behind
    finish(holder, 'cancelled', 'replaced', tonumber(ARGV[3]))
    if behind then redis.call('hset', behind, 'follow_up', key) end
    return behind
end

local replies = {}
local at, woken, kinds = 5, false, {}
local seq = redis.call('hincrby', Q, 'seq', ARGV[4]) - tonumber(ARGV[4])
while at <= #ARGV do
    local id, kind, priority, delay = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    local slot, replaces = KEYS[tonumber(ARGV[at + 4]) + 1], ARGV[at + 5] == 'replace'
    local words = tonumber(ARGV[at + 8])
    if ARGV[at + 4] == '0' then slot = nil end
    local key = Q .. ':job:' .. id
    local known = redis.call('hmget', key, 'kind', 'key', 'fingerprint')
    local word, other = 'enqueued', ''
    if known[1] then
        if known[1] ~= kind or known[2] ~= ARGV[at + 6] or (known[3] or '') ~= ARGV[at + 7] then
            word, other = 'id_taken', key
        end
    else
        local holder = nil
        if slot then
            local taken = redis.call('get', slot)
            holder = taken and load_key(taken)
            if holder and (is_final(holder.state)
                or redis.call('hget', taken, 'slot_held') ~= '1') then holder = nil end
        end
        if holder and not replaces then
            word, other = 'duplicate', holder.key
        else
            seq = seq + 1
            local place = (9 - tonumber(priority)) * 562949953421312 + seq
            local state, run_at = 'ready', NOW + delay
            if delay > 0 then state = 'scheduled' end
            if not kinds[kind] then
                redis.call('sadd', Q .. ':kinds', kind)
                kinds[kind] = true
            end
            redis.call('zadd', Q .. ':all', seq, id)
            redis.call('hset', key, 'kind', kind, 'place', place, 'seq', seq, 'enqueued_at', NOW,
                       'run_at', run_at, 'state', state, unpack(ARGV, at + 9, at + 8 + words))
            local behind = nil
            if holder then
                word, other = 'replaced', holder.key
                behind = take_place_of(holder, key)
            end
            if slot then
                redis.call('set', slot, key)
                redis.call('hset', key, 'slot', slot, 'slot_held', '1')
            end
            if behind then
                state = 'waiting'
                redis.call('hset', key, 'state', state, 'behind', behind, 'waiting_name',
                           redis.call('hget', behind, 'key'))
            end
            woken = woken or state == 'ready'
            redis.call('zadd', set_of(Q, state, kind), state == 'scheduled' and run_at or place, id)
        end
    end
    replies[#replies + 1] = word
    replies[#replies + 1] = other
    at = at + 9 + words
end
if woken then redis.call(ARGV[2], ARGV[1], '1') end
return replies
)lua";

constexpr std::string_view kClaim = R"lua(
local worker, lease, limit, draining = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local keep = tonumber(ARGV[5])

for _, id in ipairs(redis.call('zrangebyscore', Q .. ':ended', '-inf', NOW, 'LIMIT', 0, 100)) do
    forget({key = Q .. ':job:' .. id, queue = Q, id = id})
end
for i = 6, #ARGV do
    local running = set_of(Q, 'running', ARGV[i])
    for _, id in ipairs(redis.call('zrangebyscore', running, '-inf', NOW, 'LIMIT', 0, 100)) do
        local job = load(id)
        if not job then
            redis.call('zrem', running, id)
        elseif redis.call('hincrby', job.key, 'lapses', 1) >= 20 and not job.cancel then
            leave(job)
            redis.call('hset', job.key, 'reason', 'claims_lost')
            enter(job, 'held', NOW)
        else
            hand_back(job, 0, keep)
        end
    end
    local scheduled = set_of(Q, 'scheduled', ARGV[i])
    for _, id in ipairs(redis.call('zrangebyscore', scheduled, '-inf', NOW, 'LIMIT', 0, 1000)) do
        local job = load(id)
        if job then
            leave(job)
            enter(job, 'ready', job.place)
        else
            redis.call('zrem', scheduled, id)
        end
    end
end

local reply = {0, -1, 0}
local found = {}
if redis.call('hget', Q, 'paused') ~= '1' then
    for i = 6, #ARGV do
        local ready = redis.call('zrange', set_of(Q, 'ready', ARGV[i]), 0, limit, 'WITHSCORES')
        for n = 1, #ready, 2 do
            found[#found + 1] = {id = ready[n], place = tonumber(ready[n + 1]), kind = ARGV[i]}
        end
    end
    if #ARGV > 6 then table.sort(found, function(a, b) return a.place < b.place end) end
end
local given, taken, leases = 0, {}, {}
for _, one in ipairs(found) do
    if given == limit then
        reply[1] = 1
        break
    end
    local key = Q .. ':job:' .. one.id
    local v = redis.call('hmget', key, 'kind', 'deliveries', 'slot', 'unique_until')
    if not taken[one.kind] then taken[one.kind], leases[one.kind] = {}, {} end
    table.insert(taken[one.kind], one.id)
    if v[1] then
        redis.call('hset', key, 'state', 'running', 'owner', worker, 'lease_until', NOW + lease,
                   'deliveries', tonumber(v[2] or '0') + 1)
        if v[3] and v[4] == 'start' then free_slot({key = key, slot = v[3]}) end
        table.insert(leases[one.kind], NOW + lease)
        table.insert(leases[one.kind], one.id)
        reply[#reply + 1] = one.id
        reply[#reply + 1] = redis.call('hgetall', key)
        given = given + 1
    end
end
for kind, ids in pairs(taken) do
    redis.call('zrem', set_of(Q, 'ready', kind), unpack(ids))
    if #leases[kind] > 0 then
        redis.call('zadd', set_of(Q, 'running', kind), unpack(leases[kind]))
    end
end
if given > 0 then return reply end

local left = 0
for i = 6, #ARGV do
    local due = redis.call('zrange', set_of(Q, 'scheduled', ARGV[i]), 0, 0, 'WITHSCORES')[2]
    if due and (reply[2] < 0 or tonumber(due) - NOW < reply[2]) then
        reply[2] = math.max(0, tonumber(due) - NOW)
    end
    if draining then
        left = left + redis.call('zcard', set_of(Q, 'running', ARGV[i]))
            + redis.call('scard', set_of(Q, 'retries', ARGV[i]))
    end
end
if draining and left == 0 then reply[3] = 1 end
return reply
)lua";

constexpr std::string_view kGiveBack = R"lua(
local given = 0
for at = 4, #ARGV, 4 do
    local job = load(ARGV[at])
    if is_claimed(job, ARGV[at + 1], ARGV[at + 2]) then
        redis.call('hdel', job.key, 'lapses')
        hand_back(job, tonumber(ARGV[at + 3]), tonumber(ARGV[1]))
        given = given + 1
    end
end
if given > 0 then redis.call(ARGV[3], ARGV[2], '1') end
return given
)lua";

constexpr std::string_view kAcknowledge = R"lua(
local ids, keys, of_kind = {}, {}, {}
for at = 1, #ARGV, 3 do
    local job = load(ARGV[at])
    -- The same end may come twice in one batch.
    if is_claimed(job, ARGV[at + 1], ARGV[at + 2]) and not ids[job.id] then
        free_slot(job)
        wake_follow_up(job)
        ids[job.id] = true
        ids[#ids + 1] = job.id
        keys[#keys + 1] = job.key
        if not of_kind[job.kind] then of_kind[job.kind] = {} end
        table.insert(of_kind[job.kind], job.id)
    end
end
if #keys == 0 then return 0 end
for kind, some in pairs(of_kind) do
    redis.call('zrem', set_of(Q, 'running', kind), unpack(some))
end
redis.call('zrem', Q .. ':all', unpack(ids))
redis.call('del', unpack(keys))
return #keys
)lua";

constexpr std::string_view kExtend = R"lua(
local kept = {}
for at = 2, #ARGV, 3 do
    local job = load(ARGV[at])
    local mine = is_claimed(job, ARGV[at + 1], ARGV[at + 2])
    if mine then
        redis.call('hset', job.key, 'lease_until', NOW + tonumber(ARGV[1]))
        enter(job, 'running', NOW + tonumber(ARGV[1]))
    end
    kept[#kept + 1] = mine and 1 or 0
end
return kept
)lua";

constexpr std::string_view kSettle = R"lua(
local keep, state = tonumber(ARGV[1]), ARGV[5]
local job = load(ARGV[2])
if not is_claimed(job, ARGV[3], ARGV[4]) then return 0 end
redis.call('hset', job.key, unpack(ARGV, 8))
redis.call('hdel', job.key, 'lapses')
if is_final(state) then
    finish(job, state, ARGV[7], keep)
elseif state == 'held' then
    leave(job)
    redis.call('hset', job.key, 'reason', ARGV[7])
    enter(job, 'held', NOW)
else
    requeue(job, tonumber(ARGV[6]), keep)
end
return 1
)lua";

constexpr std::string_view kForPeople = R"lua(
local keep, who = tonumber(ARGV[1]), ARGV[3]
local job = load(ARGV[2])
local function answer(word, winner)
    return {word, job and redis.call('hgetall', job.key) or {},
            winner and redis.call('hgetall', winner.key) or {}, winner and winner.key or ''}
end
if not job then return answer('not_found') end
)lua";

constexpr std::string_view kCancel = R"lua(
if job.state == 'held' or is_final(job.state) then return answer('wrong_state') end
redis.call('hset', job.key, 'requested_by', who)
if job.state == 'running' then
    redis.call('hset', job.key, 'cancel', '1')
    return answer('requested')
end
finish(job, 'cancelled', ARGV[4], keep)
return answer('done')
)lua";

constexpr std::string_view kRunNow = R"lua(
if job.state ~= 'scheduled' then return answer('wrong_state') end
redis.call('hset', job.key, 'requested_by', who)
leave(job)
put(job, 0)
return answer('done')
)lua";

constexpr std::string_view kRetryDead = R"lua(
if job.state ~= 'dead' then return answer('wrong_state') end
if job.slot then
    local holder = take_slot(job)
    if holder then return answer('slot_taken', holder) end
end
leave(job)
redis.call('hdel', job.key, 'attempts', 'crashes', 'interruptions', 'lapses', 'cancel', 'reason',
           'finished_at')
redis.call('hset', job.key, 'requested_by', who)
put(job, 0)
return answer('done')
)lua";

constexpr std::string_view kDropDead = R"lua(
if job.state ~= 'dead' then return answer('wrong_state') end
local reply = answer('done')
leave(job)
forget(job)
return reply
)lua";

constexpr std::string_view kFreeUnique = R"lua(
if is_final(job.state) or redis.call('hget', job.key, 'slot_held') ~= '1' then
    return answer('wrong_state')
end
redis.call('hset', job.key, 'requested_by', who)
free_slot(job)
return answer('done')
)lua";

constexpr std::string_view kPurge = R"lua(
local keep, limit, ended = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
for _, kind in ipairs(redis.call('smembers', Q .. ':kinds')) do
    for _, state in ipairs({'waiting', 'scheduled', 'ready'}) do
        local set = set_of(Q, state, kind)
        for _, id in ipairs(redis.call('zrange', set, 0, limit - ended - 1)) do
            local job = load(id)
            if job then
                redis.call('hset', job.key, 'requested_by', ARGV[3])
                finish(job, 'cancelled', 'purged', keep)
            else
                redis.call('zrem', set, id)
            end
            ended = ended + 1
        end
        if ended >= limit then return ended end
    end
end
return ended
)lua";

constexpr std::string_view kList = R"lua(
local after, limit, state, kind, key = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local reply = {0}
for _ = 1, 20 do
    local page = redis.call('zrangebyscore', Q .. ':all', '(' .. after, '+inf', 'WITHSCORES',
                            'LIMIT', 0, 500)
    for n = 1, #page, 2 do
        after = page[n + 1]
        local job_key = Q .. ':job:' .. page[n]
        local v = redis.call('hmget', job_key, 'state', 'kind', 'key')
        if v[1] and (state == '' or v[1] == state) and (kind == '' or v[2] == kind)
            and (key == '' or v[3] == key) then
            reply[#reply + 1] = page[n]
            reply[#reply + 1] = redis.call('hgetall', job_key)
            if #reply > 2 * limit then
                reply[1] = tonumber(after)
                return reply
            end
        end
    end
    if #page < 1000 then return reply end
end
reply[1] = tonumber(after)
return reply
)lua";

constexpr std::string_view kCounts = R"lua(
local reply = {redis.call('hget', Q, 'paused') == '1' and 1 or 0, -1}
local kinds = redis.call('smembers', Q .. ':kinds')
for _, state in ipairs({'scheduled', 'ready', 'waiting', 'running', 'held', 'dead'}) do
    local number = 0
    for _, kind in ipairs(kinds) do
        number = number + redis.call('zcard', set_of(Q, state, kind))
    end
    reply[#reply + 1] = state
    reply[#reply + 1] = number
end
for _, kind in ipairs(kinds) do
    local first = redis.call('zrange', set_of(Q, 'ready', kind), 0, 0)[1]
    local run_at = first and tonumber(redis.call('hget', Q .. ':job:' .. first, 'run_at'))
    if run_at and (reply[2] < 0 or run_at < reply[2]) then reply[2] = run_at end
end
return reply
)lua";

Script script(std::string_view clock, std::string_view body) {
    return Script(std::string(clock).append(kCommon).append(body));
}

Script for_people(std::string_view clock, std::string_view body) {
    return Script(std::string(clock).append(kCommon).append(kForPeople).append(body));
}

}  // namespace

QueueScripts::QueueScripts(std::string_view clock)
    : enqueue(script(clock, kEnqueue)),
      claim(script(clock, kClaim)),
      give_back(script(clock, kGiveBack)),
      acknowledge(script(clock, kAcknowledge)),
      extend(script(clock, kExtend)),
      settle(script(clock, kSettle)),
      cancel(for_people(clock, kCancel)),
      run_now(for_people(clock, kRunNow)),
      retry_dead(for_people(clock, kRetryDead)),
      drop_dead(for_people(clock, kDropDead)),
      free_unique(for_people(clock, kFreeUnique)),
      purge(script(clock, kPurge)),
      list(script(clock, kList)),
      counts(script(clock, kCounts)) {}

}  // namespace sekali::redis
