#pragma once

#include <string_view>

#include "backends/redis/script.hpp"

namespace sekali::redis {

/// How the scripts read the time, in milliseconds: the server's clock. Tests bring their own.
extern const std::string_view kServerClock;

/// The state changes of a queue, one script each. KEYS[1] is the queue's own key; the others of the
/// queue are derived from it and share its slot. Payloads pass through as bytes.
struct QueueScripts {
    explicit QueueScripts(std::string_view clock = kServerClock);

    /// KEYS more: slots of unique keys. ARGV channel, publish command, life of ended jobs,
    /// number of jobs, then for each: id, kind, priority, delay, number of its slot in KEYS or 0,
    /// `keep` or `replace`, key, fingerprint, number of words that follow, fields and values.
    /// Replies for each a word and the other job's key.
    Script enqueue;
    /// ARGV worker, lease, limit, draining, life of ended jobs, kinds. Replies more, due or -1,
    /// drained, then the fields of each job.
    Script claim;
    /// ARGV for each: id, worker, token, delay or -1; first the life of ended jobs, channel,
    /// publish command. Replies how many it was true for.
    Script give_back;
    /// ARGV for each: id, worker, token. The job is over, and this queue forgets it.
    Script acknowledge;
    /// ARGV lease, then for each: id, worker, token. Replies 1 or 0 for each.
    Script extend;
    /// ARGV life of ended jobs, id, worker, token, state, delay, reason, fields and values. Replies
    /// 1, or 0 when the claim was another's.
    Script settle;
    // For people. ARGV life of ended jobs, id, who. All reply a word, the job's fields, and the
    // fields of the one that has its slot.
    Script cancel;  ///< ARGV more: the reason.
    Script run_now;
    Script retry_dead;
    Script drop_dead;
    Script free_unique;
    /// ARGV life of ended jobs, limit, who. Replies how many jobs that had not started it ended.
    Script purge;
    /// ARGV after, limit, state, kind, key (empty: any). Replies where to go on or 0, then jobs.
    Script list;
    /// Replies paused, run time of the oldest ready job or -1, then names and numbers of states.
    Script counts;
};

}  // namespace sekali::redis
