#pragma once

#include "backends/redis/lock_names.hpp"
#include "backends/redis/script.hpp"

namespace sekali::redis {

/// The scripts of one kind of lock. Each may be repeated with the same owner.
struct LockScripts {
    /// KEYS lock, fence; ARGV owner, life in ms, life of the fence in ms. Replies 1 and the fence,
    /// or 0, the rest of the holder's life (-1: it has no end) and the holder.
    Script acquire;
    /// KEYS lock, fence for each lock; ARGV owner, life in ms for each. Replies the fence of each
    /// that is still held, else nil.
    Script renew;
    /// KEYS lock; ARGV owner, channel, publish command. Replies 1, or 0 when it was not held.
    Script release;
};

[[nodiscard]] const LockScripts& lock_scripts(LockProfile profile);

/// The scripts of a semaphore. By the server's clock, other than Redisson's, which is in step with
/// it as far as the clocks of its clients are.
struct PermitScripts {
    /// KEYS permits, holders; ARGV id, life in ms, number of permits, life of the keys in ms.
    /// Replies as `LockScripts::acquire`, without a fence.
    Script acquire;
    /// KEYS permits, holders; ARGV id, life in ms. Replies 1, or 0 when it was not held.
    Script renew;
    /// KEYS permits, holders; ARGV id, channel, publish command. Replies 1, or 0.
    Script release;
};

[[nodiscard]] const PermitScripts& permit_scripts();

/// For people; they find out by themselves what kind of lock a key is.
struct AdminScripts {
    /// KEYS lock, fence, holders of permits. Replies nil when it is free; else a holder, the rest
    /// of its life, the fence, the number of holders.
    Script show;
    /// KEYS lock, holders of permits; ARGV channel of locks, of permits, publish command. Replies
    /// 1, or 0 when it was free.
    Script take_away;
};

[[nodiscard]] const AdminScripts& admin_scripts();

}  // namespace sekali::redis
