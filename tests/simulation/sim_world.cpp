#include "simulation/sim_world.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/step_key.hpp"

namespace sekali::sim {

using namespace std::chrono_literals;
using engine::EnqueueReply;
using engine::JobRow;
using engine::JobState;
using engine::OwnerFate;
using engine::Tables;
using engine::Task;

namespace {

Error no_answer() {
    return {.code = ErrorCode::kUnreachable,
            .message = "no answer in time",
            .applied = Applied::kMaybe,
            .retryable = true};
}

Error refused() {
    return {.code = ErrorCode::kUnreachable, .message = "refused", .retryable = true};
}

std::string job_id(std::size_t number) {
    char text[40];
    std::snprintf(text, sizeof text, "00000000-0000-7000-8000-%012zu", number);
    return text;
}

constexpr std::array kBeginNames{"started", "parked", "ended", "held", "gone"};
constexpr std::array kSettledNames{"applied", "superseded", "lock fenced", "effects failed"};
constexpr std::array kOutcomeNames{"success", "retry",   "permanent",   "snooze", "cancel",
                                   "timeout", "crashed", "interrupted", "hold"};
constexpr std::array kEnqueuedNames{"enqueued", "duplicate", "replaced", "key reused", "id taken"};
constexpr std::array kResolutionNames{"succeeded", "rerun", "dead"};
constexpr std::array kAdminNames{"done", "requested", "not found", "wrong state", "slot taken"};

template <typename Names, typename Enum>
std::string name_of(const Names& names, Enum value) {
    return names.at(static_cast<std::size_t>(value));
}

template <typename Port>
void submit(rows::RowPorts& ports, typename Port::Call call) {
    std::vector<typename Port::Call> calls;
    calls.push_back(std::move(call));
    ports.submit(std::move(calls));
}

}  // namespace

World::World(const Options& options, bool prints)
    : options_(options),
      random_(options.seed ^ 0x5ca1ab1eULL),
      kinds_(draw_kinds(options, random_)),
      trace_(prints),
      judge_(kinds_, [this](const std::string& job) { return broker_.has(job); }),
      store_(options.sqlite ? make_sqlite_store(host_clock(), options.seed)
                            : make_memory_store(host_clock())),
      ports_(*store_),
      locks_(1.0 + options.drift * (2 * SimRandom(options.seed ^ 0x10c5).next() - 1)),
      broker_(options.delivery_limit),
      timeout_(std::max(200ms, options.lease / 4)) {}

// What is still queued is answered while everything that the answers need is there.
World::~World() {
    store_->run_all();
}

/// The clock of the store's host runs a little too fast or too slow.
SimStore::Clock World::host_clock() const {
    return [this] {
        const double ran = static_cast<double>(now_.count()) * (1.0 + options_.store_drift);
        return Millis{static_cast<Millis::rep>(ran)};
    };
}

void World::at(Millis when, std::function<void()> work) {
    heap_.push({std::max(when, now_), random_.bits(), ++entries_, std::move(work)});
}

void World::run_until(Millis end) {
    while (!heap_.empty() && heap_.top().when <= end) {
        Entry entry = heap_.top();
        heap_.pop();
        now_ = entry.when;
        entry.work();
        if (!violations().empty()) return;
    }
    now_ = std::max(now_, end);
}

void World::run() {
    for (std::size_t slot = 0; slot < options_.workers; ++slot) {
        at(random_.between(0ms, 500ms), [this, slot] { start_worker(slot); });
    }
    schedule_jobs();
    schedule_faults();
    schedule_lock_service();
    schedule_broker();
    run_until(options_.span);
    heal();
    // Where deaths are not proven a poison job is held after twenty lapses, one after the other.
    constexpr int kLapses = 20;
    const auto poison = static_cast<int>(poison_.size());
    const Millis budget =
        now_ + 5min + options_.lease * 60 + (options_.lease * 2 + 3s) * kLapses * poison;
    while (violations().empty() && !at_rest() && now_ < budget) {
        answer_held(true);
        run_until(now_ + 1s);
    }
    const bool rests = at_rest();
    if (violations().empty()) check_idle();
    if (violations().empty()) stop_all();
    if (!violations().empty()) return;
    const auto finished = store_->read([this](Tables& tables) { judge_.finish(tables); });
    if (!finished.ok()) judge_.violation("store", finished.error().message);
    for (const std::string& key : store_->wrong_effects(judge_.committed()))
        judge_.violation("G2", "what was written for " + key + " is not there once");
    if (violations().empty() && !rests) judge_.violation("liveness", "it did not come to rest");
}

// ---- the wire and the store behind it

void World::call(Process& from, engine::QueueCommand command,
                 std::function<void(Result<engine::QueueReply>)> answer) {
    send<engine::QueuePort>(from, std::move(command), std::move(answer));
}
void World::call(Process& from, engine::StoreCommand command,
                 std::function<void(Result<engine::StoreReply>)> answer) {
    send<engine::StorePort>(from, std::move(command), std::move(answer));
}
void World::call(Process& from, engine::LockCommand command,
                 std::function<void(Result<engine::LockReply>)> answer) {
    send<engine::LockPort>(from, std::move(command), std::move(answer));
}
void World::call_store_lock(Process& from, engine::LockAcquire request,
                            std::function<void(Result<engine::LockReply>)> answer) {
    send<engine::LockPort>(from, engine::LockCommand{std::move(request)}, std::move(answer), false);
}

template <typename Port, typename Reply, typename Command>
void World::send(Process& from, Command command, std::function<void(Result<Reply>)> answer,
                 [[maybe_unused]] bool may_go_outside) {
    auto open = std::make_shared<bool>(true);
    auto once = [open, answer = std::move(answer)](Result<Reply> reply) {
        if (std::exchange(*open, false)) answer(std::move(reply));
    };
    from.later(timeout_, [once] { once(no_answer()); });
    const bool faulty = !healed_;
    if (now_ < outage_until_) {
        if (random_.chance(0.7)) {
            from.later(random_.between(1ms, 20ms), [once] { once(refused()); });
        }
        return;
    }
    if (faulty && random_.chance(options_.lost_request)) {
        mark("fault: lost request");
        return;
    }
    Millis delay = random_.between(0ms, 5ms);
    if (faulty && random_.chance(options_.late_request)) {
        delay = timeout_ + random_.between(0ms, options_.lease * 2);
        late_until_ = std::max(late_until_, now_ + delay + options_.lease);
        mark("fault: late request");
    }
    const bool reply_lost = faulty && random_.chance(options_.lost_reply);
    auto reply_to = [this, &from, once, reply_lost](Result<Reply> reply) {
        if (reply_lost) {
            mark("fault: lost reply");
            return;
        }
        from.later(random_.between(0ms, 5ms), [once, reply = std::move(reply)] { once(reply); });
    };
    Process* const sender = &from;
    at(now_ + delay, [=, this, command = std::move(command)]() mutable {
        if constexpr (std::is_same_v<Command, engine::LockCommand>) {
            const bool is_new = std::holds_alternative<engine::LockAcquire>(command);
            const bool outside =
                options_.lock_service && may_go_outside && (is_new || locks_.knows(command));
            if (outside) return reply_to(locks_.execute(command, now_));
        }
        if constexpr (std::is_same_v<Command, engine::QueueCommand>) {
            auto reply = options_.broker ? ask_broker(command) : std::nullopt;
            const bool delivers = reply && std::holds_alternative<engine::Claimed>(*reply);
            // Deliveries that nobody took come back when their connection breaks.
            if (delivers && (reply_lost || !*open || !sender->alive())) {
                return broker_.disconnect(sender->id());
            }
            if (delivers) {
                return sender->later(0ms, [this, sender, once, open, reply = *std::move(reply)] {
                    if (!*open) broker_.disconnect(sender->id());
                    once(reply);
                });
            }
            if (reply) return reply_to(*std::move(reply));
        }
        execute<Port, Reply>(std::move(command), std::move(reply_to));
    });
}

template <typename Port, typename Reply, typename Command>
void World::execute(Command command, std::function<void(Result<Reply>)> answer) {
    auto effects_ran = std::make_shared<bool>(false);
    if constexpr (std::is_same_v<Command, engine::StoreCommand>) {
        auto* settle = std::get_if<engine::Settle>(&command);
        if (settle != nullptr && settle->effects) {
            settle->effects = [effects_ran, effects = settle->effects](Transaction& transaction) {
                Result<void> result = effects(transaction);
                *effects_ran = result.ok();
                return result;
            };
        }
    }
    Command copy = command;
    submit<Port>(ports_, {std::move(copy), [this, command = std::move(command), effects_ran,
                                            answer = std::move(answer)](Result<Reply> reply) {
                              executed(command, reply, *effects_ran);
                              answer(std::move(reply));
                          }});
    step_soon();
}

void World::step_soon() {
    if (step_scheduled_) return;
    step_scheduled_ = true;
    at(std::max(now_ + random_.between(0ms, 3ms), stalled_until_), [this] {
        step_scheduled_ = false;
        step_store();
    });
}

void World::step_store() {
    if (!healed_ && random_.chance(0.02)) {
        // A neighbour that fails makes the group fail: each is run again alone.
        store_->submit({{.work = [](Tables&) { throw Failure(refused()); },
                         .done = [](const Result<void>&) {}}});
    }
    store_->run_all();
    if (store_->is_down()) fail_power();
    if (++steps_ % 64 == 0 || touched_all_) {
        touched_.insert(judge_.jobs().begin(), judge_.jobs().end());
    }
    const auto looked = store_->read([this](Tables& tables) { judge_.look(tables, touched_); });
    if (!looked.ok()) judge_.violation("store", looked.error().message);
    touched_.clear();
    touched_all_ = false;
    if (!options_.tells_changes || !std::exchange(changed_, false)) return;
    for (const auto& process : processes_) {
        if (!process->alive()) continue;
        process->later(random_.between(0ms, 5ms),
                       [&process = *process] { process.deliver(engine::event::ChangeSeen{}); });
    }
}

/// Store and workers are on one host: all of them end together.
void World::fail_power() {
    mark("fault: power cut");
    trace("the power fails");
    for (std::size_t i = 0; i < processes_.size(); ++i)
        processes_[i]->crash("without power");
    for (const std::string& wrong : store_->restart())
        judge_.violation("durability", wrong);
    touched_.insert(judge_.jobs().begin(), judge_.jobs().end());
}

void World::executed(const engine::QueueCommand& command, const Result<engine::QueueReply>& reply,
                     bool) {
    if (!reply.ok()) return;
    if (const auto* back = std::get_if<engine::Return>(&command)) {
        touched_.insert(back->run.job_id);
        changed_ = true;
        trace("store: return " + back->run.job_id);
    }
    if (const auto* claimed = std::get_if<engine::Claimed>(&*reply)) {
        changed_ = changed_ || !claimed->deliveries.empty();
        for (const auto& delivery : claimed->deliveries) {
            touched_.insert(delivery.row.job.id);
            trace("store: claim " + delivery.row.job.id + " by " + delivery.row.owner);
            if (delivery.begun) begun_by_claim(std::get<engine::Claim>(command), delivery);
        }
    }
}

void World::begun_by_claim(const engine::Claim& claim, const engine::Delivery& delivery) {
    const engine::JobRow& row = delivery.row;
    engine::Begin begin;
    begin.run = {.job_id = row.job.id,
                 .record = {row.job.ns, row.job.kind, row.job.key},
                 .worker = claim.worker,
                 .delivery = row.deliveries,
                 .lock_key = row.job.lock_key};
    begin.lease = claim.lease;
    if (kinds_.at(row.job.kind).policy.record == engine::RecordMode::kNone) {
        begin.run.record.key.clear();
    }
    mark(claim.repeat ? "claim: begun before, asked again" : "claim: begins");
    executed(engine::StoreCommand{begin}, engine::StoreReply{*delivery.begun}, false);
}

void World::executed(const engine::StoreCommand& command, const Result<engine::StoreReply>& reply,
                     bool effects_ran) {
    if (!reply.ok()) return;
    mark_reply(command, *reply);
    const StoreTime now = store_now();
    const auto* renew = std::get_if<engine::Renew>(&command);
    const auto* pass = std::get_if<engine::Recovered>(&*reply);
    changed_ =
        changed_ || !((renew != nullptr && renew->look) || (pass != nullptr && pass->jobs == 0));
    if (const auto* begin = std::get_if<engine::Begin>(&command)) {
        const auto& answer = std::get<engine::BeginReply>(*reply);
        touched_.insert(begin->run.job_id);
        trace("store: begin " + begin->run.job_id + " by " + begin->run.worker + " -> " +
              kBeginNames.at(answer.index()));
        judge_.begun(*begin, answer, now);
    } else if (const auto* settle = std::get_if<engine::Settle>(&command)) {
        const auto& answer = std::get<engine::Settled>(*reply);
        touched_.insert(settle->run.job_id);
        trace(
            "store: settle " + settle->run.job_id + " epoch " + std::to_string(settle->run.epoch) +
            " as " + name_of(kOutcomeNames, settle->outcome.kind) + " -> " +
            name_of(kSettledNames, answer.kind) + ", now " + std::string(to_string(answer.state)));
        judge_.settled(*settle, answer, effects_ran, now);
    } else if (const auto* answer = std::get_if<engine::Answer>(&command)) {
        touched_.insert(answer->run.job_id);
        trace("store: answer for " + answer->run.job_id);
        judge_.answered(*answer, *reply);
    } else if (renew != nullptr) {
        judge_.renewed(*renew, std::get<engine::Renewed>(*reply), now);
    } else if (const auto* intent = std::get_if<engine::StepIntent>(&command)) {
        touched_.insert(intent->run.job_id);
        judge_.step_intended(*intent, std::get<engine::StepIntentReply>(*reply));
    } else if (const auto* result = std::get_if<engine::StepResult>(&command)) {
        touched_.insert(result->run.job_id);
    } else if (pass != nullptr && pass->jobs > 0) {
        touched_all_ = true;
        trace("store: recovered " + std::to_string(pass->jobs));
    }
}

void World::executed(const engine::LockCommand& command, const Result<engine::LockReply>& reply,
                     bool) {
    if (!reply.ok()) return;
    changed_ = true;
    const auto* acquire = std::get_if<engine::LockAcquire>(&command);
    if (acquire == nullptr || reply->kind != engine::LockReply::Kind::kAcquired) return;
    trace("store: lock " + acquire->name + " for " + acquire->token);
    mark("lock of a handler");
    judge_.lock_granted(*acquire, reply->fence);
}

void World::mark_reply(const engine::StoreCommand& command, const engine::StoreReply& reply) {
    if (const auto* begin = std::get_if<engine::BeginReply>(&reply)) {
        mark(std::string("begin: ") + kBeginNames.at(begin->index()));
        const auto* started = std::get_if<engine::Started>(begin);
        if (started != nullptr && started->probe_first) mark("begin: probe first");
        if (started != nullptr && started->ask_in_step) mark("begin: ask in step");
    } else if (const auto* settled = std::get_if<engine::Settled>(&reply)) {
        mark("settle: " + name_of(kSettledNames, settled->kind));
        const auto* settle = std::get_if<engine::Settle>(&command);
        if (settle != nullptr && !settle->outcome.process_gone) mark("settle: still alive");
    } else if (const auto* pass = std::get_if<engine::Recovered>(&reply)) {
        if (pass->jobs > 0) mark("recovered");
    }
}

void World::transact(std::function<void(Tables&)> work, std::function<void()> done) {
    Task task;
    task.work = work;
    ++transactions_open_;
    task.done = [this, work, done = std::move(done)](const Result<void>& result) {
        --transactions_open_;
        touched_all_ = true;
        if (result.ok()) return done();
        // Whoever asked does so again, which is harmless: it was not applied.
        at(now_ + 100ms, [this, work, done] { transact(work, done); });
    };
    store_->submit({std::move(task)});
    step_soon();
}

// ---- the outside world

void World::take_effect(const RunRef& ref, const std::string& step) {
    trace("outside: " + ref.job_id + " " + step);
    Effect& effect = effects_[{ref.record, step}];
    const std::string key = client::step_key(ref.record, step);
    if (effect.times == 0) effect.step_key = key;
    if (key != effect.step_key) judge_.violation("G5", ref.job_id + " has another key for " + step);
    if (effect.times == 0 || !options_.honours_keys) {
        if (++effect.times > 1) mark("outside: happened again");
    } else {
        mark("outside: known by its key");
    }
}

void World::take_effect_later(const RunRef& ref, Millis delay) {
    mark("fault: late effect outside");
    at(now_ + delay, [this, ref] { take_effect(ref, {}); });
}

bool World::has_effect(const engine::RecordKey& key, const std::string& step) const {
    return effects_.contains({key, step});
}

// ---- workers

void World::start_worker(std::size_t slot) {
    if (ending_) return;
    engine::WorkerConfig config;
    config.worker = "w" + std::to_string(slot) + "." + std::to_string(++incarnations_);
    config.kinds = kinds_;
    config.concurrency = options_.concurrency;
    config.prefetch = options_.prefetch;
    config.lease = options_.lease;
    config.grace = random_.between(500ms, 3s);
    config.queue = options_.broker ? engine::QueueTraits{} : ports_.traits();
    config.queue.begins = config.queue.begins && options_.claims_begin;
    config.locks_in_store = !options_.lock_service;
    slots_[config.worker] = slot;
    const std::string id = config.worker;
    if (options_.proves_deaths) store_->set_fate(id, OwnerFate::kAlive);
    processes_.push_back(std::make_unique<Process>(*this, id, std::move(config)));
    processes_.back()->start();
}

void World::process_gone(Process& process) {
    const std::string id = process.id();
    broker_.disconnect(id);
    if (options_.proves_deaths) {
        at(now_ + random_.between(0ms, 50ms),
           [this, id] { store_->set_fate(id, OwnerFate::kDead); });
    }
    at(now_ + random_.between(50ms, 1s), [this, slot = slots_.at(id)] { start_worker(slot); });
}

Process* World::random_process() {
    std::vector<Process*> alive;
    for (const auto& process : processes_) {
        if (process->alive()) alive.push_back(process.get());
    }
    return alive.empty() ? nullptr : random_.pick(alive);
}

// ---- faults, producers, people

void World::at_rate(double times_a_minute, const std::function<void()>& work) {
    if (times_a_minute <= 0.0) return;
    const auto minutes = std::chrono::duration<double>(options_.span).count() / 60.0;
    const auto times = static_cast<std::size_t>(times_a_minute * minutes + random_.next());
    for (std::size_t i = 0; i < times; ++i) {
        at(random_.between(0ms, options_.span), [this, work] {
            if (!healed_) work();
        });
    }
}

void World::schedule_faults() {
    at_rate(options_.stalls, [this] {
        stalled_until_ = now_ + random_.between(50ms, options_.lease * 2);
        mark("fault: stall");
        trace("the store stalls until " + std::to_string(stalled_until_.count()));
    });
    at_rate(options_.outages, [this] {
        outage_until_ = now_ + random_.between(100ms, options_.lease * 3);
        mark("fault: outage");
        trace("the store is away until " + std::to_string(outage_until_.count()));
    });
    at_rate(options_.pauses, [this] {
        if (Process* process = random_process()) {
            process->pause(random_.between(100ms, options_.lease * 3));
        }
    });
    if (options_.sqlite) {
        at_rate(options_.power_cuts, [this] { store_->cut_power_after(1 + random_.below(40)); });
    }
    at_rate(options_.leaps, [this] {
        if (Process* process = random_process()) {
            process->leap(random_.between(100ms, options_.lease * 3));
        }
    });
    at_rate(options_.stops, [this] {
        if (Process* process = random_process()) process->stop();
    });
    at_rate(options_.cancels, [this] { meddle(); });
}

void World::schedule_broker() {
    at_rate(options_.disconnects, [this] {
        Process* process = random_process();
        if (process == nullptr) return;
        mark("fault: disconnect from the queue");
        trace(process->id() + " loses its connection to the queue");
        broker_.disconnect(process->id());
    });
}

/// What the broker does with it; nothing where it is about a job that the store has in custody, or
/// may have.
std::optional<engine::QueueReply> World::ask_broker(const engine::QueueCommand& command) {
    if (const auto* claim = std::get_if<engine::Claim>(&command)) {
        engine::Claimed claimed = broker_.deliver(*claim);
        for (const auto& delivery : claimed.deliveries)
            trace("queue: " + delivery.row.job.id + " to " + delivery.row.owner);
        if (claimed.deliveries.empty()) return std::nullopt;
        return claimed;
    }
    if (const auto* acknowledged = std::get_if<engine::Acknowledge>(&command)) {
        if (broker_.acknowledge(acknowledged->run)) {
            mark("queue: acknowledged");
            trace("queue: " + acknowledged->run.job_id + " acknowledged by " +
                  acknowledged->run.worker);
        }
        return engine::Done{};
    }
    if (const auto* back = std::get_if<engine::Return>(&command)) {
        if (!broker_.give_back(back->run)) return std::nullopt;
        mark("queue: given back");
        trace("queue: " + back->run.job_id + " given back by " + back->run.worker);
        return engine::Done{};
    }
    return std::nullopt;
}

/// The producer may not hear that it was accepted, and publish it again.
void World::publish(const engine::EnqueueRequest& request) {
    judge_.accepted(request.job, 0ms, StoreTime{});  // the store has not heard of it
    trace("publish " + request.job.id + " " + request.job.kind + "/" + request.job.key);
    broker_.publish(request.job);
    if (!random_.chance(options_.published_twice)) return;
    mark("fault: published twice");
    at(now_ + random_.between(0ms, options_.lease * 2),
       [this, request] { broker_.publish(request.job); });
}

void World::schedule_lock_service() {
    if (!options_.lock_service) return;
    at_rate(options_.lock_losses * 10, [this] { locks_.replicate(); });
    at_rate(options_.lock_losses, [this] {
        const bool restarts = random_.chance(0.5);
        restarts ? locks_.restart() : locks_.fail_over();
        mark(restarts ? "fault: lock service restart" : "fault: lock service failover");
        trace(restarts ? "the lock service restarts" : "the lock service fails over");
    });
    at_rate(options_.strangers, [this] {
        engine::LockAcquire request;
        request.name = draw_lock();
        request.owner = "stranger";
        request.token = "stranger/" + std::to_string(random_.bits());
        request.ttl = random_.between(100ms, options_.lease * 2);
        const auto reply = locks_.execute(request, now_);
        if (reply.kind != engine::LockReply::Kind::kAcquired) return;
        mark("fault: lock held by a stranger");
        trace("a stranger takes " + request.name);
    });
    wake_lines();
}

/// What the client does where locks are not the store's: a line whose lock may be free outside is
/// told to look.
void World::wake_lines() {
    at(now_ + 500ms, [this] {
        transact(
            [locks = options_.locks](Tables& tables) {
                for (std::size_t number = 0; number < locks; ++number) {
                    const std::string name = "l" + std::to_string(number);
                    const auto lock = tables.lock("default", name);
                    const bool reserved =
                        lock && !lock->reserved_for.empty() && lock->reserved_until > tables.now();
                    if (!reserved) engine::wake_for_lock(tables, "default", name);
                }
            },
            [] {});
        wake_lines();
    });
}

void World::schedule_jobs() {
    for (std::size_t number = 1; number <= options_.jobs; ++number) {
        at(random_.between(0ms, options_.span / 2), [this, request = draw_job(number)] {
            // A delay and a unique slot are the store's, whatever delivers the job.
            const bool plain = !request.delay && request.job.unique_key.empty();
            options_.broker&& plain ? publish(request) : enqueue(request);
        });
    }
}

std::string World::draw_lock() {
    return "l" + std::to_string(random_.below(options_.locks));
}

engine::EnqueueRequest World::draw_job(std::size_t number) {
    engine::EnqueueRequest request;
    engine::Envelope& job = request.job;
    job.id = job_id(number);
    job.kind = random_.pick(kinds_).first;
    const bool has_record = kinds_.at(job.kind).policy.record == engine::RecordMode::kKept;
    const bool shared = has_record && random_.chance(0.5);
    job.key = shared ? "k" + std::to_string(random_.below(options_.keys)) : job.id;
    job.payload = "{}";
    job.fingerprint = random_.chance(0.04) ? "another" : "usual";
    job.fingerprint_rule = "payload";
    if (options_.locks > 0 && random_.chance(0.5)) {
        job.lock_key = draw_lock();
    }
    if (random_.chance(0.25)) {
        job.unique_key = "u" + std::to_string(random_.below(2));
        job.unique_until =
            random_.chance(0.5) ? engine::UniqueUntil::kEnd : engine::UniqueUntil::kStart;
        if (!shared && random_.chance(0.3)) request.on_duplicate = engine::OnDuplicate::kReplace;
    }
    if (random_.chance(0.3)) request.delay = random_.between(0ms, 5s);
    job.priority = static_cast<std::int32_t>(random_.below(3));
    if (random_.chance(options_.poison)) poison_.insert(job.id);
    return request;
}

/// A producer that repeats its request, with its id, until it has an answer.
void World::enqueue(engine::EnqueueRequest request) {
    ++enqueues_open_;
    auto reply = std::make_shared<EnqueueReply>();
    transact([request, reply](Tables& tables) { *reply = engine::enqueue(tables, request); },
             [this, request, reply] {
                 trace("enqueue " + request.job.id + " " + request.job.kind + "/" +
                       request.job.key + " -> " + name_of(kEnqueuedNames, reply->kind));
                 const bool in = reply->kind == EnqueueReply::Kind::kEnqueued ||
                                 reply->kind == EnqueueReply::Kind::kReplaced;
                 if (in) {
                     judge_.accepted(request.job, request.delay.value_or(0ms), store_now());
                 }
                 --enqueues_open_;
                 if (!healed_ && random_.chance(0.1)) {
                     at(now_ + random_.between(10ms, 1s), [this, request] { enqueue(request); });
                 }
             });
}

/// Somebody cancels, answers for or replays a job.
void World::meddle() {
    if (judge_.jobs().empty()) return;
    const std::string id = random_.pick(judge_.jobs());
    if (random_.chance(0.2)) {
        answer_held(false);
        return;
    }
    if (options_.locks > 0 && random_.chance(0.2)) {
        break_lock();
        return;
    }
    const bool replays = random_.chance(0.3);
    auto reply = std::make_shared<engine::AdminReply>();
    transact(
        [id, replays, reply](Tables& tables) {
            *reply = replays ? engine::retry_dead(tables, id, "somebody")
                             : engine::cancel_job(tables, id, "somebody", "cancelled");
        },
        [this, id, replays, reply] {
            trace(std::string(replays ? "replay " : "cancel ") + id + " -> " +
                  name_of(kAdminNames, reply->kind));
            mark(replays ? "replay" : "cancel");
            if (replays && reply->kind == engine::AdminReply::Kind::kDone) {
                judge_.retried_dead(*reply->row);
            }
        });
}

void World::break_lock() {
    const std::string name = draw_lock();
    auto fence = std::make_shared<std::uint64_t>(0);
    transact(
        [name, fence](Tables& tables) {
            const bool broken = engine::break_lock(tables, "default", name);
            *fence = broken ? tables.lock("default", name)->fence : 0;
        },
        [this, name, fence] {
            if (*fence == 0) return;
            trace("break " + name);
            mark("break");
            judge_.lock_broken(name, *fence);
        });
}

void World::answer_held(bool all) {
    std::vector<std::string> held;
    const auto looked = store_->read([&](Tables& tables) {
        for (const std::string& id : judge_.jobs()) {
            const auto row = tables.job(id);
            if (row && row->state == JobState::kHeld) held.push_back(id);
        }
    });
    if (!looked.ok() || held.empty()) return;
    if (!all) held = {random_.pick(held)};
    for (const std::string& id : held) {
        engine::Resolution resolution;
        const double draw = random_.next();
        resolution.kind = is_poison(id) || draw < 0.2 ? engine::Resolution::Kind::kDead
                          : draw < 0.5                ? engine::Resolution::Kind::kSucceeded
                                                      : engine::Resolution::Kind::kRerun;
        resolution.result = "answered";
        auto reply = std::make_shared<engine::AdminReply>();
        transact(
            [id, resolution, reply](Tables& tables) {
                *reply = engine::resolve_held(tables, id, resolution, "somebody");
            },
            [this, id, resolution, reply] {
                trace("resolve " + id + " as " + name_of(kResolutionNames, resolution.kind) +
                      " -> " + name_of(kAdminNames, reply->kind));
                if (reply->kind == engine::AdminReply::Kind::kDone) {
                    judge_.resolved(*reply->row, resolution);
                }
            });
    }
}

// ---- the end

void World::heal() {
    trace("everything is well from here on");
    healed_ = true;
    outage_until_ = stalled_until_ = now_;
    store_->cut_power_after(0);
    if (broker_.publish_dead_letters() > 0) mark("fault: delivery limit");
    for (std::size_t i = 0; i < processes_.size(); ++i)
        processes_[i]->resume();
}

bool World::at_rest() {
    if (enqueues_open_ > 0 || transactions_open_ > 0 || now_ <= late_until_) return false;
    bool rests = true;
    const auto looked = store_->read([&](Tables& tables) {
        for (const std::string& id : judge_.jobs()) {
            const auto row = judge_.find(tables, id);
            rests = rests && row && is_final(row->state);
        }
    });
    return looked.ok() && rests;
}

/// With nothing to do a worker may beat, look and recover now and then, and no more.
void World::check_idle() {
    run_until(now_ + 5s);
    std::map<std::string, std::size_t> before;
    for (const auto& process : processes_)
        before[process->id()] = process->commands();
    constexpr std::size_t kSeconds = 20;
    run_until(now_ + std::chrono::seconds{kSeconds});
    const auto upkeep_ms = std::min<Millis>(1000ms, options_.lease / 4).count();
    const auto lease_ms = options_.lease.count();
    // A recovery and a look each, and a beat that every other worker looks after.
    const double a_second =
        3.0 + 1000.0 / static_cast<double>(upkeep_ms) +
        3000.0 / static_cast<double>(lease_ms) * static_cast<double>(options_.workers + 1);
    for (const auto& process : processes_) {
        const std::size_t sent = process->commands() - before[process->id()];
        if (process->alive() && static_cast<double>(sent) > kSeconds * a_second) {
            judge_.violation("idle", process->id() + " sent " + std::to_string(sent) +
                                         " commands with nothing to do");
        }
    }
}

void World::stop_all() {
    ending_ = true;
    for (const auto& process : processes_)
        process->stop();
    run_until(now_ + 10s);
    for (const auto& process : processes_) {
        if (process->alive()) judge_.violation("G13", process->id() + " has not exited");
    }
}

}  // namespace sekali::sim
