#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/reply.hpp"
#include "engine/model.hpp"

// What a queue's keys are called, and how a job is written into its hash.
namespace sekali::redis {

/// The queue's own key; the braces put all of a queue's keys into one slot of a cluster.
[[nodiscard]] std::string queue_key(std::string_view ns, std::string_view queue);
/// Where it is told that a job may have become ready.
[[nodiscard]] std::string queue_channel(std::string_view ns, std::string_view queue);
/// The set of names of queues that have ever had a job.
[[nodiscard]] std::string queues_key(std::string_view ns);
/// Names the job that has the slot of a unique key, which all queues of a namespace share.
[[nodiscard]] std::string slot_key(std::string_view ns, std::string_view kind,
                                   std::string_view unique_key);

/// Namespace, queue and id of a job's key; empty where it is none.
struct JobAddress {
    std::string ns;
    std::string queue;
    std::string id;
};
[[nodiscard]] JobAddress parse_job_key(std::string_view key);

/// Field, value, field, value …: what is frozen at enqueue. What is empty is left out.
[[nodiscard]] std::vector<std::string> frozen_fields(const engine::Envelope& job);
/// The other way round, from a reply to HGETALL. Times are those of the server's clock.
[[nodiscard]] engine::JobRow read_job(const JobAddress& address, const Reply& fields);

}  // namespace sekali::redis
