#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/queue_port.hpp"
#include "engine/operations.hpp"

namespace sekali::redis {

/// How a claim ended, from one who knows: counters are written as they are here.
struct QueueEnd {
    engine::RunRef run;
    /// Final, `kHeld`, or `kScheduled`: again, after `delay`.
    engine::JobState state = engine::JobState::kSucceeded;
    Millis delay{};
    std::string reason;
    std::string error;
    std::string result;
    std::uint64_t attempts = 0;
    std::uint64_t crashes = 0;
    std::uint64_t interruptions = 0;
};

/// The jobs of the queues of a Redis for those who put them there and who look after them. Answers
/// are as those of `engine/operations.hpp`, as far as a queue can know: what an idempotency key has
/// come to is in a store. Blocks; not for the loop's thread. Thread-safe.
class QueueJobs {
 public:
    QueueJobs(std::shared_ptr<Server> server, const QueueSettings& settings);

    /// In their order, one script for each run of jobs of one queue. Each is answered by itself.
    [[nodiscard]] std::vector<Result<engine::EnqueueReply>> enqueue(
        const std::vector<engine::EnqueueRequest>& requests);
    /// False: the claim is another's.
    [[nodiscard]] Result<bool> settle(std::string_view queue, const QueueEnd& end);

    [[nodiscard]] Result<std::optional<engine::JobRow>> find(std::string_view ns,
                                                             std::string_view id);
    [[nodiscard]] Result<engine::AdminReply> cancel(std::string_view ns, std::string_view id,
                                                    std::string_view who, std::string_view reason);
    [[nodiscard]] Result<engine::AdminReply> retry_now(std::string_view ns, std::string_view id,
                                                       std::string_view who);
    [[nodiscard]] Result<engine::AdminReply> retry_dead(std::string_view ns, std::string_view id,
                                                        std::string_view who);
    [[nodiscard]] Result<engine::AdminReply> drop_dead(std::string_view ns, std::string_view id,
                                                       std::string_view who);
    [[nodiscard]] Result<engine::AdminReply> free_unique(std::string_view ns, std::string_view id,
                                                         std::string_view who);
    /// Ends every job that has not started; returns how many.
    [[nodiscard]] Result<std::size_t> purge(std::string_view ns, std::string_view queue,
                                            std::string_view who);
    [[nodiscard]] Result<void> pause(std::string_view ns, std::string_view queue, bool paused);
    /// Queue by queue, in the order of arrival; payloads come along.
    [[nodiscard]] Result<engine::Page<engine::JobRow>> list(const engine::JobFilter& filter);
    /// `by_state` has the dead too.
    [[nodiscard]] Result<std::vector<engine::QueueCounts>> counts(std::string_view ns);

 private:
    [[nodiscard]] Call script_call(const Script QueueScripts::*script, std::string_view ns,
                                   std::string_view queue,
                                   std::vector<std::string> arguments) const;
    [[nodiscard]] Call enqueue_call(const std::vector<const engine::EnqueueRequest*>& run) const;
    [[nodiscard]] Result<engine::EnqueueReply> read_enqueued(const std::string& id,
                                                             const std::string& word,
                                                             const std::string& other);
    [[nodiscard]] Result<std::vector<std::string>> queues(std::string_view ns);
    [[nodiscard]] Result<engine::AdminReply> act(const Script QueueScripts::*script,
                                                 std::string_view ns, std::string_view id,
                                                 std::vector<std::string> more);

    std::shared_ptr<Server> server_;
    const QueueScripts scripts_;
    const Millis keep_ended_;
};

}  // namespace sekali::redis
