#include "backends/redis/queue_jobs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "backends/redis/ask.hpp"
#include "backends/redis/errors.hpp"
#include "backends/redis/queue_rows.hpp"

namespace sekali::redis {
namespace {

using engine::AdminReply;
using engine::EnqueueReply;
using engine::EnqueueRequest;
using engine::JobRow;

/// One script holds the server up for a few milliseconds at most.
constexpr std::size_t kMostInOneScript = 200;
constexpr std::size_t kPurgeAtOnce = 500;

std::string ms(Millis duration) {
    return std::to_string(duration.count());
}

Error senseless() {
    return unreachable("it answered a script with something else than ours does");
}

AdminReply::Kind admin_kind(std::string_view word) {
    using Kind = AdminReply::Kind;
    if (word == "done") return Kind::kDone;
    if (word == "requested") return Kind::kRequested;
    if (word == "slot_taken") return Kind::kSlotTaken;
    return word == "not_found" ? Kind::kNotFound : Kind::kWrongState;
}

EnqueueReply::Kind enqueue_kind(std::string_view word) {
    using Kind = EnqueueReply::Kind;
    if (word == "duplicate") return Kind::kDuplicate;
    if (word == "replaced") return Kind::kReplaced;
    return word == "id_taken" ? Kind::kIdTaken : Kind::kEnqueued;
}

}  // namespace

QueueJobs::QueueJobs(std::shared_ptr<Server> server, const QueueSettings& settings)
    : server_(std::move(server)), scripts_(settings.clock), keep_ended_(settings.keep_ended) {}

Call QueueJobs::script_call(const Script QueueScripts::*script, std::string_view ns,
                            std::string_view queue, std::vector<std::string> arguments) const {
    Call call;
    call.script = &(scripts_.*script);
    call.words = {"1", queue_key(ns, queue)};
    std::move(arguments.begin(), arguments.end(), std::back_inserter(call.words));
    return call;
}

// ---- producers

Call QueueJobs::enqueue_call(const std::vector<const EnqueueRequest*>& run) const {
    const engine::Envelope& first = run.front()->job;
    std::vector<std::string> keys{queue_key(first.ns, first.queue)};
    std::vector<std::string> arguments{queue_channel(first.ns, first.queue),
                                       server_->publish_command(), ms(keep_ended_),
                                       std::to_string(run.size())};
    for (const EnqueueRequest* request : run) {
        const engine::Envelope& job = request->job;
        std::size_t slot = 0;
        if (!job.unique_key.empty()) {
            slot = keys.size();
            keys.push_back(slot_key(job.ns, job.kind, job.unique_key));
        }
        std::vector<std::string> fields = frozen_fields(job);
        const bool replaces = request->on_duplicate == OnDuplicate::kReplace;
        for (std::string word : {job.id, job.kind, std::to_string(job.priority),
                                 ms(request->delay.value_or(Millis{0})), std::to_string(slot),
                                 std::string(replaces ? "replace" : "keep"), job.key,
                                 job.fingerprint, std::to_string(fields.size())})
            arguments.push_back(std::move(word));
        std::move(fields.begin(), fields.end(), std::back_inserter(arguments));
    }
    Call call;
    call.script = &scripts_.enqueue;
    call.words = {std::to_string(keys.size())};
    std::move(keys.begin(), keys.end(), std::back_inserter(call.words));
    std::move(arguments.begin(), arguments.end(), std::back_inserter(call.words));
    return call;
}

Result<EnqueueReply> QueueJobs::read_enqueued(const std::string& id, const std::string& word,
                                              const std::string& other) {
    EnqueueReply reply;
    reply.id = id;
    reply.kind = enqueue_kind(word);
    if (other.empty()) return reply;
    Call call;
    call.words = {"HGETALL", other};
    const auto fields = ask(*server_, std::move(call));
    if (!fields.ok()) return fields.error();
    reply.winner = read_job(parse_job_key(other), *fields);
    return reply;
}

std::vector<Result<EnqueueReply>> QueueJobs::enqueue(const std::vector<EnqueueRequest>& requests) {
    std::vector<Call> calls;
    std::vector<std::vector<const EnqueueRequest*>> runs;
    std::set<std::pair<std::string, std::string>> named;
    const auto same_queue = [](const engine::Envelope& one, const engine::Envelope& other) {
        return one.ns == other.ns && one.queue == other.queue;
    };
    for (const EnqueueRequest& request : requests) {
        const bool fits = !runs.empty() && runs.back().size() < kMostInOneScript &&
                          same_queue(runs.back().front()->job, request.job);
        if (!fits) runs.emplace_back();
        runs.back().push_back(&request);
        named.emplace(request.job.ns, request.job.queue);
    }
    // Known before it has jobs, so that no job is where nobody looks for it.
    for (const auto& [ns, queue] : named) {
        Call name;
        name.words = {"SADD", queues_key(ns), queue};
        calls.push_back(std::move(name));
    }
    for (const auto& run : runs)
        calls.push_back(enqueue_call(run));
    const auto replies = ask(*server_, std::move(calls));

    std::vector<Result<EnqueueReply>> answers;
    for (std::size_t n = 0; n < runs.size(); ++n) {
        const Result<Reply>& reply = replies[named.size() + n];
        for (std::size_t i = 0; i < runs[n].size(); ++i) {
            if (!reply.ok()) {
                answers.emplace_back(reply.error());
            } else if (reply->items.size() != 2 * runs[n].size()) {
                answers.emplace_back(senseless());
            } else {
                answers.push_back(read_enqueued(runs[n][i]->job.id, reply->items[2 * i].text,
                                                reply->items[2 * i + 1].text));
            }
        }
    }
    return answers;
}

Result<bool> QueueJobs::settle(std::string_view queue, const QueueEnd& end) {
    std::vector<std::string> arguments{ms(keep_ended_),
                                       end.run.job_id,
                                       end.run.worker,
                                       std::to_string(end.run.delivery),
                                       std::string(engine::to_string(end.state)),
                                       ms(end.delay),
                                       end.reason};
    for (const auto& [field, value] : std::array<std::pair<std::string_view, std::string>, 5>{
             {{"attempts", std::to_string(end.attempts)},
              {"crashes", std::to_string(end.crashes)},
              {"interruptions", std::to_string(end.interruptions)},
              {"error", end.error},
              {"result", end.result}}}) {
        arguments.emplace_back(field);
        arguments.push_back(value);
    }
    const auto reply = ask(*server_, script_call(&QueueScripts::settle, end.run.record.ns, queue,
                                                 std::move(arguments)));
    if (!reply.ok()) return reply.error();
    return reply->integer == 1;
}

// ---- people

Result<std::vector<std::string>> QueueJobs::queues(std::string_view ns) {
    Call call;
    call.words = {"SMEMBERS", queues_key(ns)};
    const auto reply = ask(*server_, std::move(call));
    if (!reply.ok()) return reply.error();
    std::vector<std::string> names;
    for (const Reply& name : reply->items)
        names.push_back(name.text);
    std::sort(names.begin(), names.end());
    return names;
}

Result<std::optional<JobRow>> QueueJobs::find(std::string_view ns, std::string_view id) {
    const auto names = queues(ns);
    if (!names.ok()) return names.error();
    std::vector<Call> calls;
    for (const std::string& queue : *names) {
        Call call;
        call.words = {"HGETALL", queue_key(ns, queue) + ":job:" + std::string(id)};
        calls.push_back(std::move(call));
    }
    const auto replies = ask(*server_, std::move(calls));
    for (std::size_t i = 0; i < replies.size(); ++i) {
        if (!replies[i].ok()) return replies[i].error();
        if (replies[i]->items.empty()) continue;
        return std::optional(
            read_job({std::string(ns), (*names)[i], std::string(id)}, *replies[i]));
    }
    return std::optional<JobRow>{};
}

Result<AdminReply> QueueJobs::act(const Script QueueScripts::*script, std::string_view ns,
                                  std::string_view id, std::vector<std::string> more) {
    const auto row = find(ns, id);
    if (!row.ok()) return row.error();
    AdminReply answer;
    answer.kind = AdminReply::Kind::kNotFound;
    if (!*row) return answer;
    std::vector<std::string> arguments{ms(keep_ended_), std::string(id)};
    std::move(more.begin(), more.end(), std::back_inserter(arguments));
    const std::string& queue = (*row)->job.queue;
    const auto reply = ask(*server_, script_call(script, ns, queue, std::move(arguments)));
    if (!reply.ok()) return reply.error();
    if (reply->items.size() != 4) return senseless();
    answer.kind = admin_kind(reply->items[0].text);
    if (!reply->items[1].items.empty()) {
        answer.row = read_job({std::string(ns), queue, std::string(id)}, reply->items[1]);
    }
    if (!reply->items[2].items.empty()) {
        answer.winner = read_job(parse_job_key(reply->items[3].text), reply->items[2]);
    }
    return answer;
}

Result<AdminReply> QueueJobs::cancel(std::string_view ns, std::string_view id, std::string_view who,
                                     std::string_view reason) {
    return act(&QueueScripts::cancel, ns, id, {std::string(who), std::string(reason)});
}

Result<AdminReply> QueueJobs::retry_now(std::string_view ns, std::string_view id,
                                        std::string_view who) {
    return act(&QueueScripts::run_now, ns, id, {std::string(who)});
}

Result<AdminReply> QueueJobs::retry_dead(std::string_view ns, std::string_view id,
                                         std::string_view who) {
    return act(&QueueScripts::retry_dead, ns, id, {std::string(who)});
}

Result<AdminReply> QueueJobs::drop_dead(std::string_view ns, std::string_view id,
                                        std::string_view who) {
    return act(&QueueScripts::drop_dead, ns, id, {std::string(who)});
}

Result<AdminReply> QueueJobs::free_unique(std::string_view ns, std::string_view id,
                                          std::string_view who) {
    return act(&QueueScripts::free_unique, ns, id, {std::string(who)});
}

Result<std::size_t> QueueJobs::purge(std::string_view ns, std::string_view queue,
                                     std::string_view who) {
    std::size_t ended = 0;
    for (;;) {
        const auto reply =
            ask(*server_,
                script_call(&QueueScripts::purge, ns, queue,
                            {ms(keep_ended_), std::to_string(kPurgeAtOnce), std::string(who)}));
        if (!reply.ok()) return reply.error();
        ended += static_cast<std::size_t>(reply->integer);
        if (static_cast<std::size_t>(reply->integer) < kPurgeAtOnce) return ended;
    }
}

Result<void> QueueJobs::pause(std::string_view ns, std::string_view queue, bool paused) {
    std::vector<Call> calls(2);
    calls[0].words = {"SADD", queues_key(ns), std::string(queue)};
    calls[1].words = {"HSET", queue_key(ns, queue), "paused", paused ? "1" : "0"};
    for (const auto& reply : ask(*server_, std::move(calls))) {
        if (!reply.ok()) return reply.error();
    }
    return {};
}

Result<engine::Page<JobRow>> QueueJobs::list(const engine::JobFilter& filter) {
    const auto names = queues(filter.ns);
    if (!names.ok()) return names.error();
    const std::size_t colon = filter.after.find(':');
    const std::string from = filter.after.substr(0, colon);
    std::string after = colon == std::string::npos ? "0" : filter.after.substr(colon + 1);
    engine::Page<JobRow> page;
    for (const std::string& queue : *names) {
        if (queue < from || (filter.queue && queue != *filter.queue)) continue;
        if (queue != from) after = "0";
        do {
            if (page.items.size() == filter.limit) {
                page.next = queue + ":" + after;
                return page;
            }
            const auto reply =
                ask(*server_, script_call(&QueueScripts::list, filter.ns, queue,
                                          {after, std::to_string(filter.limit - page.items.size()),
                                           filter.state.value_or(""), filter.kind.value_or(""),
                                           filter.key.value_or("")}));
            if (!reply.ok()) return reply.error();
            if (reply->items.empty()) return senseless();
            for (std::size_t i = 1; i + 1 < reply->items.size(); i += 2) {
                page.items.push_back(
                    read_job({filter.ns, queue, reply->items[i].text}, reply->items[i + 1]));
            }
            after = std::to_string(reply->items[0].integer);
        } while (after != "0");
    }
    return page;
}

Result<std::vector<engine::QueueCounts>> QueueJobs::counts(std::string_view ns) {
    const auto names = queues(ns);
    if (!names.ok()) return names.error();
    std::vector<Call> calls;
    for (const std::string& queue : *names)
        calls.push_back(script_call(&QueueScripts::counts, ns, queue, {}));
    const auto replies = ask(*server_, std::move(calls));
    std::vector<engine::QueueCounts> all;
    for (std::size_t n = 0; n < replies.size(); ++n) {
        if (!replies[n].ok()) return replies[n].error();
        const std::vector<Reply>& items = replies[n]->items;
        if (items.size() < 2) return senseless();
        engine::QueueCounts counts;
        counts.queue = (*names)[n];
        counts.paused = items[0].integer == 1;
        if (items[1].integer >= 0) {
            counts.oldest_ready = engine::StoreTime{Millis{items[1].integer}};
        }
        for (std::size_t i = 2; i + 1 < items.size(); i += 2)
            counts.by_state[items[i].text] = static_cast<std::uint64_t>(items[i + 1].integer);
        all.push_back(std::move(counts));
    }
    return all;
}

}  // namespace sekali::redis
