#include "conformance/scene.hpp"

#include <stdexcept>

namespace sekali::conformance {

using engine::LockPort;
using engine::QueuePort;
using engine::StorePort;

engine::RunRef Attempt::ref() const {
    engine::RunRef ref = request.run;
    ref.epoch = started.epoch;
    ref.fence = started.fence;
    return ref;
}

Scene::Scene() : backend_(GetParam().make()), ports_(backend_->executor()) {
    // Without jitter a test can say when a retry is due.
    policy.retry.jitter = 0;
}

StoreTime Scene::now() {
    return tx([](Tables& tables) { return tables.now(); });
}

// ---- producers and people ----------------------------------------------------------------------

EnqueueReply Scene::enqueue(const Spec& spec) {
    engine::EnqueueRequest request;
    engine::Envelope& job = request.job;
    job.id = spec.id;
    job.ns = spec.ns;
    job.kind = spec.kind;
    job.queue = spec.queue;
    job.payload = spec.payload;
    job.key = spec.key.empty() ? spec.id : spec.key;
    job.lock_key = spec.lock;
    job.unique_key = spec.unique;
    job.unique_until = spec.unique_until;
    job.priority = spec.priority;
    job.retry.max_attempts = spec.max_attempts;
    job.fingerprint_rule = spec.fingerprint_rule;
    if (spec.fingerprint_rule != "none") job.fingerprint = "digest of " + spec.payload;
    request.delay = spec.delay;
    request.on_duplicate = spec.on_duplicate;
    return tx([request](Tables& tables) { return engine::enqueue(tables, request); });
}

void Scene::put(const Spec& spec) {
    const EnqueueReply reply = enqueue(spec);
    if (reply.kind != EnqueueReply::Kind::kEnqueued) {
        throw std::runtime_error("job " + spec.id + " was not enqueued");
    }
}

engine::AdminReply Scene::cancel(const std::string& id) {
    return tx([id](Tables& tables) { return cancel_job(tables, id, "operator", "cancelled"); });
}

engine::AdminReply Scene::retry_dead(const std::string& id) {
    return tx([id](Tables& tables) { return engine::retry_dead(tables, id, "operator"); });
}

engine::AdminReply Scene::resolve(const std::string& id, engine::Resolution::Kind kind,
                                  const std::string& result) {
    return tx([=](Tables& tables) {
        return resolve_held(tables, id, {.kind = kind, .result = result}, "operator");
    });
}

void Scene::pause(const std::string& queue, bool paused) {
    tx([=](Tables& tables) { pause_queue(tables, "default", queue, paused); });
}

engine::PruneReply Scene::prune() {
    return tx([keep = policy.keep](Tables& tables) {
        return engine::prune(tables, "default", keep, 1000);
    });
}

// ---- workers -----------------------------------------------------------------------------------

engine::Claimed Scene::claim_reply(const std::string& worker, std::size_t limit) {
    engine::Claim request;
    request.spec = {.ns = "default",
                    .queues = {"default", "other"},
                    .kinds = {"charge", "mail"},
                    .limit = limit};
    request.worker = worker;
    request.lease = lease;
    auto reply = call<engine::QueueReply>(static_cast<QueuePort&>(ports_),
                                          engine::QueueCommand{std::move(request)});
    return std::get<engine::Claimed>(std::move(reply).value());
}

std::vector<Delivery> Scene::claim(const std::string& worker, std::size_t limit) {
    return claim_reply(worker, limit).deliveries;
}

std::vector<std::string> Scene::claim_ids(const std::string& worker, std::size_t limit) {
    std::vector<std::string> ids;
    for (const Delivery& delivery : claim(worker, limit))
        ids.push_back(delivery.row.job.id);
    return ids;
}

Delivery Scene::claim_job(const std::string& worker, const std::string& id) {
    std::vector<Delivery> deliveries = claim(worker, 1);
    if (deliveries.size() != 1 || deliveries[0].row.job.id != id) {
        throw std::runtime_error("job " + id + " is not the next one to claim but " +
                                 (deliveries.empty() ? "none" : deliveries[0].row.job.id));
    }
    return std::move(deliveries[0]);
}

void Scene::give_back(const Attempt& run, std::optional<Millis> delay) {
    call<engine::QueueReply>(static_cast<QueuePort&>(ports_),
                             engine::QueueCommand{engine::Return{run.ref(), delay}})
        .value();
}

Begin begin_request(const Delivery& delivery, const KindPolicy& policy, Millis lease) {
    Begin request;
    request.job = delivery.row.job;
    request.job.payload.clear();
    request.run.job_id = delivery.row.job.id;
    if (policy.record == engine::RecordMode::kKept) {
        request.run.record = {delivery.row.job.ns, delivery.row.job.kind, delivery.row.job.key};
    } else {
        request.run.record.ns = delivery.row.job.ns;
        request.run.record.kind = delivery.row.job.kind;
    }
    request.run.worker = delivery.row.owner;
    request.run.delivery = delivery.row.deliveries;
    request.run.lock_key = delivery.row.job.lock_key;
    request.policy = policy;
    request.lease = lease;
    request.attempts = delivery.row.attempts;
    request.lock_token = "token of " + delivery.row.owner + " for " + delivery.row.job.id + "/" +
                         std::to_string(delivery.row.deliveries);
    return request;
}

Attempt Scene::prepare(const Delivery& delivery) {
    Attempt run;
    run.delivery = delivery;
    run.request = begin_request(delivery, policy, lease);
    run.request.may_take_over = may_take_over;
    return run;
}

BeginReply Scene::begin(const Begin& request) {
    auto reply =
        call<engine::StoreReply>(static_cast<StorePort&>(ports_), engine::StoreCommand{request});
    return std::get<BeginReply>(std::move(reply).value());
}

BeginReply Scene::begin(const Delivery& delivery) {
    return begin(prepare(delivery).request);
}

Attempt Scene::start(const Delivery& delivery) {
    Attempt run = prepare(delivery);
    const BeginReply reply = begin(run.request);
    const auto* started = as<engine::Started>(reply);
    if (started == nullptr) {
        throw std::runtime_error("job " + delivery.row.job.id + " does not start: answer " +
                                 std::to_string(reply.index()));
    }
    run.started = *started;
    return run;
}

Attempt Scene::start(const std::string& worker, const std::string& id) {
    return start(claim_job(worker, id));
}

engine::Settle Scene::settlement(const Attempt& run, const Outcome& outcome) const {
    engine::Settle request;
    request.run = run.ref();
    request.job = run.request.job;
    request.policy = run.request.policy;
    request.outcome = outcome;
    return request;
}

Settled Scene::settle(const engine::Settle& request) {
    auto reply =
        call<engine::StoreReply>(static_cast<StorePort&>(ports_), engine::StoreCommand{request});
    return std::get<Settled>(std::move(reply).value());
}

Settled Scene::settle(const Attempt& run, const Outcome& outcome) {
    return settle(settlement(run, outcome));
}

Settled Scene::succeed(const Attempt& run, const std::string& result) {
    return settle(run, success(result));
}

engine::Renewed Scene::renew(const Attempt& run) {
    engine::Renew request;
    request.run = run.ref();
    request.lease = lease;
    auto reply = call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                                          engine::StoreCommand{std::move(request)});
    return std::get<engine::Renewed>(std::move(reply).value());
}

StepIntentReply Scene::step(const Attempt& run, const std::string& name, bool has_probe) {
    engine::StepIntent request;
    request.run = run.ref();
    request.name = name;
    request.call = name + " of epoch " + std::to_string(run.started.epoch);
    request.has_probe = has_probe;
    auto reply = call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                                          engine::StoreCommand{std::move(request)});
    return std::get<StepIntentReply>(std::move(reply).value());
}

void Scene::step_done(const Attempt& run, const std::string& name, const std::string& result) {
    call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                             engine::StoreCommand{engine::StepResult{run.ref(), name, result}})
        .value();
}

std::optional<Settled> Scene::answer(const Attempt& run, engine::Answer::Kind kind,
                                     const std::string& result, bool resolves_job) {
    engine::Answer request;
    request.run = run.ref();
    request.job = run.request.job;
    request.policy = run.request.policy;
    request.kind = kind;
    request.result = result;
    request.resolves_job = resolves_job;
    const engine::StoreReply reply =
        call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                                 engine::StoreCommand{std::move(request)})
            .value();
    const auto* settled = std::get_if<Settled>(&reply);
    return settled == nullptr ? std::nullopt : std::optional(*settled);
}

void Scene::heartbeat(const std::string& worker) {
    engine::Heartbeat request;
    request.worker.id = worker;
    request.worker.ns = "default";
    request.worker.queues = {"default"};
    request.worker.kinds = {"charge"};
    request.lease = lease;
    call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                             engine::StoreCommand{std::move(request)})
        .value();
}

std::size_t Scene::recover(bool take_over) {
    engine::Recover request;
    request.ns = "default";
    request.worker = "recoverer";
    request.kinds = {"charge", "mail"};
    request.policies = {{"charge", policy}, {"mail", policy}};
    request.may_take_over = take_over;
    auto reply = call<engine::StoreReply>(static_cast<StorePort&>(ports_),
                                          engine::StoreCommand{std::move(request)});
    return std::get<engine::Recovered>(std::move(reply).value()).jobs;
}

void Scene::lapse() {
    advance(lease + 1ms);
    recover();
}

void Scene::crash(const std::string& worker) {
    kill(worker);
    recover();
}

engine::LockReply Scene::lock_call(const engine::LockCommand& command) {
    return call<engine::LockReply>(static_cast<LockPort&>(ports_), command).value();
}

engine::LockReply Scene::acquire(const std::string& name, const std::string& owner, Millis ttl) {
    return lock_call(engine::LockAcquire{"default", name, owner, "token of " + owner, ttl});
}

// ---- what is stored ----------------------------------------------------------------------------

std::optional<JobRow> Scene::find_job(const std::string& id) {
    return tx([id](Tables& tables) {
        auto row = tables.job(id);
        return row ? row : tables.finished_job(id);
    });
}

JobRow Scene::job(const std::string& id) {
    auto row = find_job(id);
    if (!row) throw std::runtime_error("there is no job " + id);
    return *std::move(row);
}

std::optional<RecordRow> Scene::find_record(const std::string& key, const std::string& kind) {
    return tx([=](Tables& tables) { return tables.record({"default", kind, key}); });
}

RecordRow Scene::record(const std::string& key, const std::string& kind) {
    auto row = find_record(key, kind);
    if (!row) throw std::runtime_error("there is no record of key " + key);
    return *std::move(row);
}

std::optional<LockRow> Scene::lock_row(const std::string& name) {
    return tx([=](Tables& tables) { return tables.lock("default", name); });
}

std::vector<engine::StepRow> Scene::steps(const std::string& key) {
    return tx([=](Tables& tables) { return tables.steps({"default", "charge", key}); });
}

std::vector<engine::EventRow> Scene::events(const std::string& key) {
    return tx([=](Tables& tables) { return tables.events_of_key({"default", "charge", key}); });
}

bool Scene::has_event(const std::string& key, engine::EventKind event) {
    for (const engine::EventRow& row : events(key)) {
        if (row.event == event) return true;
    }
    return false;
}

std::vector<engine::AttemptRow> Scene::attempts(const std::string& key) {
    return tx([=](Tables& tables) { return tables.attempts_of_key({"default", "charge", key}); });
}

// ---- outcomes ----------------------------------------------------------------------------------

Outcome success(std::string result) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::kSuccess;
    outcome.result = std::move(result);
    return outcome;
}

Outcome failure(bool nothing_applied) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::kRetry;
    outcome.error = "it failed";
    outcome.nothing_applied = nothing_applied;
    return outcome;
}

Outcome ended(Outcome::Kind kind, std::string reason) {
    Outcome outcome;
    outcome.kind = kind;
    outcome.reason = std::move(reason);
    return outcome;
}

}  // namespace sekali::conformance
