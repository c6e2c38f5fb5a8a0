#include "backends/redis/queue_port.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>

#include "backends/redis/errors.hpp"
#include "backends/redis/queue_rows.hpp"

namespace sekali::redis {
namespace {

using engine::Claimed;
using engine::QueueReply;

/// One script holds the server up for a few milliseconds at most.
constexpr std::size_t kMostInOneScript = 500;
/// A renewal that is lost is repeated before the lease is.
constexpr int kRenewalShare = 6;
constexpr Millis kLeastRenewalTimeout{100};

std::string ms(Millis duration) {
    return std::to_string(duration.count());
}

const std::string& job_of(const engine::QueueCommand& command) {
    if (const auto* extend = std::get_if<engine::Extend>(&command)) return extend->run.job_id;
    if (const auto* back = std::get_if<engine::Return>(&command)) return back->run.job_id;
    return std::get<engine::Acknowledge>(command).run.job_id;
}

}  // namespace

/// In which queue a claimed job is: commands name the job alone.
struct QueuePort::Memory {
    std::mutex mutex;
    std::unordered_map<std::string, Place> places;  ///< By job id.

    std::optional<Place> find(const std::string& job_id) {
        const std::lock_guard guard(mutex);
        const auto found = places.find(job_id);
        return found == places.end() ? std::nullopt : std::optional(found->second);
    }
    void remember(const std::string& job_id, Place place) {
        const std::lock_guard guard(mutex);
        places[job_id] = std::move(place);
    }
    void drop(const engine::RunRef& run) {
        const std::lock_guard guard(mutex);
        const auto found = places.find(run.job_id);
        if (found != places.end() && found->second.delivery == run.delivery) places.erase(found);
    }
};

/// A claim asks its queues one after the other, until its credit is used up.
struct QueuePort::Claiming {
    Claiming(engine::Claim wanted, Done answer, std::size_t first)
        : command(std::move(wanted)), done(std::move(answer)), turn(first) {}

    engine::Claim command;
    Done done;
    std::size_t turn;       ///< Which queue is first, so that none is always last.
    std::size_t asked = 0;  ///< Queues.
    Claimed reply{.deliveries = {}, .more = false, .next_due = {}, .drained = true};

    [[nodiscard]] bool is_over() const {
        return asked == command.spec.queues.size() || reply.deliveries.size() >= command.spec.limit;
    }
    [[nodiscard]] const std::string& next_queue() {
        return command.spec.queues[(turn + asked++) % command.spec.queues.size()];
    }
    void finish() {
        reply.more = reply.more || reply.deliveries.size() >= command.spec.limit;
        reply.drained = reply.drained && command.draining && reply.deliveries.empty();
        if (!reply.deliveries.empty()) reply.next_due.reset();
        done(QueueReply{std::move(reply)});
    }
};

/// Commands of one queue that go out as one script.
struct QueuePort::Batch {
    const Script QueueScripts::*script;
    std::string queue;
    std::vector<std::string> arguments;
    std::vector<std::pair<engine::RunRef, Done>> waiting;
    std::optional<Millis> lease;  ///< Of extensions.

    void add(const engine::RunRef& run, Done done) {
        for (std::string word : {run.job_id, run.worker, std::to_string(run.delivery)})
            arguments.push_back(std::move(word));
        waiting.emplace_back(run, std::move(done));
    }
};

/// The commands about claims of one call of `submit`.
struct QueuePort::Batches {
    std::map<std::pair<std::string, Millis>, Batch> extensions;  ///< By queue and lease.
    std::map<std::string, Batch> acknowledgements;
    std::map<std::string, Batch> returns;
    std::vector<Batch> full;

    template <typename Map>
    Batch& open(Map& batches, const typename Map::key_type& key, Batch fresh) {
        Batch& batch = batches.try_emplace(key, fresh).first->second;
        if (batch.waiting.size() == kMostInOneScript) {
            full.push_back(std::exchange(batch, std::move(fresh)));
        }
        return batch;
    }
    /// In the order in which they are sent: leases must not lapse behind other work.
    [[nodiscard]] std::vector<Batch> take() {
        std::vector<Batch> all;
        const auto move_from = [&](auto& batches) {
            for (auto& [key, batch] : batches)
                all.push_back(std::move(batch));
        };
        move_from(extensions);
        std::move(full.begin(), full.end(), std::back_inserter(all));
        move_from(acknowledgements);
        move_from(returns);
        return all;
    }
};

QueuePort::QueuePort(std::shared_ptr<Server> server, const QueueSettings& settings)
    : server_(std::move(server)),
      scripts_(std::make_shared<QueueScripts>(settings.clock)),
      keep_ended_(settings.keep_ended),
      memory_(std::make_shared<Memory>()) {}

void QueuePort::claimed(Claiming& claiming, const std::string& queue, const Reply& reply) {
    const std::string& ns = claiming.command.spec.ns;
    for (std::size_t i = 3; i + 1 < reply.items.size(); i += 2) {
        const std::string& id = reply.items[i].text;
        engine::JobRow row = read_job({ns, queue, id}, reply.items[i + 1]);
        memory_->remember(id, {queue_key(ns, queue), queue_channel(ns, queue), row.deliveries});
        claiming.reply.deliveries.push_back({std::move(row)});
    }
    claiming.reply.more = claiming.reply.more || reply.items[0].integer == 1;
    claiming.reply.drained = claiming.reply.drained && reply.items[2].integer == 1;
    const Millis due{reply.items[1].integer};
    if (due.count() >= 0) {
        claiming.reply.next_due = std::min(due, claiming.reply.next_due.value_or(Millis::max()));
    }
}

void QueuePort::claim(const std::shared_ptr<Claiming>& claiming) {
    if (claiming->is_over()) return claiming->finish();
    const engine::Claim& command = claiming->command;
    const std::string queue = claiming->next_queue();
    const std::size_t left =
        std::min(kMostInOneScript, command.spec.limit - claiming->reply.deliveries.size());
    redis::Call call;
    call.script = &scripts_->claim;
    call.words = {"1",
                  queue_key(command.spec.ns, queue),
                  command.worker,
                  ms(command.lease),
                  std::to_string(left),
                  command.draining ? "1" : "0",
                  ms(keep_ended_)};
    call.words.insert(call.words.end(), command.spec.kinds.begin(), command.spec.kinds.end());
    call.done = [this, claiming, queue, keep = scripts_](Result<Reply> reply) {
        const bool sensible = reply.ok() && reply->items.size() >= 3;
        if (sensible) {
            claimed(*claiming, queue, *reply);
            return claim(claiming);
        }
        // What other queues gave is recorded and has to be handed out.
        if (!claiming->reply.deliveries.empty()) {
            claiming->reply.drained = false;
            return claiming->finish();
        }
        claiming->done(reply.ok() ? unreachable("it answered a claim with something else")
                                  : std::move(reply).error());
    };
    std::vector<redis::Call> calls;
    calls.push_back(std::move(call));
    server_->submit(std::move(calls));
}

redis::Call QueuePort::call_of(Batch batch) const {
    redis::Call call;
    call.script = &(scripts_.get()->*batch.script);
    if (batch.lease) call.timeout = std::max(*batch.lease / kRenewalShare, kLeastRenewalTimeout);
    call.words = {"1", batch.queue};
    std::move(batch.arguments.begin(), batch.arguments.end(), std::back_inserter(call.words));
    call.done = [waiting = std::move(batch.waiting), extends = batch.lease.has_value(),
                 memory = memory_, keep = scripts_](const Result<Reply>& reply) {
        for (const auto& [run, done] : waiting) {
            if (!reply.ok()) {
                done(reply.error());
                continue;
            }
            if (!extends) memory->drop(run);
            done(QueueReply{engine::Done{}});
        }
    };
    return call;
}

void QueuePort::sort_in(Batches& batches, const Place& place, const engine::QueueCommand& command,
                        Done done) const {
    if (const auto* extend = std::get_if<engine::Extend>(&command)) {
        Batch fresh{&QueueScripts::extend, place.queue, {ms(extend->lease)}, {}, extend->lease};
        batches.open(batches.extensions, {place.queue, extend->lease}, std::move(fresh))
            .add(extend->run, std::move(done));
    } else if (const auto* back = std::get_if<engine::Return>(&command)) {
        Batch fresh{&QueueScripts::give_back,
                    place.queue,
                    {ms(keep_ended_), place.channel, server_->publish_command()},
                    {},
                    {}};
        Batch& batch = batches.open(batches.returns, place.queue, std::move(fresh));
        batch.add(back->run, std::move(done));
        batch.arguments.push_back(ms(back->delay.value_or(Millis{0})));
    } else {
        Batch fresh{&QueueScripts::acknowledge, place.queue, {}, {}, {}};
        batches.open(batches.acknowledgements, place.queue, std::move(fresh))
            .add(std::get<engine::Acknowledge>(command).run, std::move(done));
    }
}

void QueuePort::submit(std::vector<Call> calls) {
    Batches batches;
    std::vector<std::shared_ptr<Claiming>> claims;
    for (auto& [command, done] : calls) {
        if (auto* wanted = std::get_if<engine::Claim>(&command)) {
            const std::size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
            claims.push_back(std::make_shared<Claiming>(std::move(*wanted), std::move(done), turn));
        } else if (const auto place = memory_->find(job_of(command))) {
            sort_in(batches, *place, command, std::move(done));
        } else {
            done(QueueReply{engine::Done{}});  // no claim of this process
        }
    }
    std::vector<redis::Call> requests;
    for (Batch& batch : batches.take())
        requests.push_back(call_of(std::move(batch)));
    if (!requests.empty()) server_->submit(std::move(requests));
    for (const auto& claiming : claims)
        claim(claiming);
}

void QueuePort::listen(std::string_view ns, std::string_view queue, std::function<void()> ready) {
    server_->subscribe(queue_channel(ns, queue),
                       [ready = std::move(ready)](const ChannelEvent& event) {
                           if (event.kind != ChannelEvent::Kind::kLost) ready();
                       });
}

void QueuePort::forget(std::string_view ns, std::string_view queue) {
    server_->unsubscribe(queue_channel(ns, queue));
}

}  // namespace sekali::redis
