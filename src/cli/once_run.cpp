#include "cli/once_run.hpp"

#include <unistd.h>

#include <array>
#include <utility>

#include "base/faults.hpp"
#include "base/ids.hpp"

namespace sekali::cli {

using engine::BeginReply;
using engine::JobState;
using engine::Millis;
using engine::Renewed;

namespace {

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "";
    return name.data();
}

/// Jobs of earlier callers that ended without a word and that no worker will ever take.
void end_orphans(engine::Tables& tables, const engine::RecordKey& key, std::string_view own_id) {
    for (const engine::JobRow& row : tables.jobs_of_key(key.ns, key.kind, key.key)) {
        const bool waits = row.state == JobState::kReady || row.state == JobState::kScheduled;
        if (!waits || row.job.id == own_id) continue;
        engine::cancel_job(tables, row.job.id, "once", "run again as " + std::string(own_id));
    }
}

}  // namespace

OnceCaller::OnceCaller(Store& store, OncePlan plan) : store_(store), plan_(std::move(plan)) {
    constexpr std::size_t kIdBytes = 8;
    worker_.id = base::random_hex(kIdBytes);
    worker_.ns = plan_.ns;
    worker_.host = host_name();
    worker_.pid = ::getpid();
    worker_.queues = {std::string(kOnceKind)};
    worker_.kinds = {std::string(kOnceKind)};
    worker_.concurrency = 1;

    job_.id = base::new_uuid7();
    job_.ns = plan_.ns;
    job_.kind = kOnceKind;
    job_.queue = kOnceKind;
    job_.payload = plan_.payload;
    job_.key = plan_.key;
    // The key alone says what is the same work: a script that got another flag is still that
    // script.
    job_.fingerprint_rule = "none";

    run_.job_id = job_.id;
    run_.record = {plan_.ns, std::string(kOnceKind), plan_.key};
    run_.worker = worker_.id;
    run_.delivery = 1;
    alive_ = store_.hold_liveness(worker_.id).value();
}

/// Workers prune in their own time; here the end of the retention is looked at when it matters.
void OnceCaller::forget_expired(engine::Tables& tables) {
    const auto record = tables.record(run_.record);
    const bool expired = record && record->finished_at && !record->marked &&
                         *record->finished_at + record->keep <= tables.now();
    if (expired && !tables.has_live_or_dead_job(run_.record)) tables.erase_record(run_.record);
}

BeginReply OnceCaller::begin_in(engine::Tables& tables) {
    engine::Begin request;
    request.job = job_;
    request.run = run_;
    request.policy = plan_.policy;
    request.lease = kOnceLease;
    const Clock::time_point now = Clock::now();
    request.may_take_over = answering_since_ && now - *answering_since_ >= kOnceLease;

    engine::Recover recovery;
    recovery.ns = plan_.ns;
    recovery.worker = worker_.id;
    recovery.kinds = {std::string(kOnceKind)};
    recovery.policies[std::string(kOnceKind)] = plan_.policy;
    recovery.may_take_over = request.may_take_over;
    recovery.unclaimed_kinds = recovery.kinds;
    engine::recover(tables, recovery);

    forget_expired(tables);
    BeginReply reply = engine::begin_inline(tables, request);
    if (std::holds_alternative<engine::Started>(reply)) {
        end_orphans(tables, run_.record, job_.id);
        engine::heartbeat(tables, {.worker = worker_, .lease = kOnceLease, .leave = false});
    }
    return reply;
}

BeginReply OnceCaller::begin() {
    static_cast<void>(SEKALI_FAULT("begin.before"));
    BeginReply reply = store_.transact([&](engine::Tables& tables) { return begin_in(tables); });
    static_cast<void>(SEKALI_FAULT("begin.after"));
    const Clock::time_point now = Clock::now();
    const bool gap = !answering_since_ || now - answered_at_ > kOnceLease / 3;
    if (gap) answering_since_ = now;
    answered_at_ = now;
    return reply;
}

void OnceCaller::enter(const engine::Started& started) {
    run_.epoch = started.epoch;
    run_.fence = started.fence;
    begun_ = Clock::now();
}

engine::Settled OnceCaller::settle(engine::Outcome outcome) {
    engine::Settle request;
    request.run = run_;
    request.job = job_;
    request.policy = plan_.policy;
    request.outcome = std::move(outcome);
    request.ran_for = std::chrono::duration_cast<Millis>(Clock::now() - begun_);
    static_cast<void>(SEKALI_FAULT("commit.before"));
    const engine::Settled settled = store_.transact([&](engine::Tables& tables) {
        engine::Settled reply = engine::settle(tables, request);
        // A retry is the next caller's: nobody would ever claim this one.
        const bool waits = reply.state == JobState::kReady || reply.state == JobState::kScheduled;
        if (waits) engine::cancel_job(tables, job_.id, "once", "caller_ended");
        engine::heartbeat(tables, {.worker = worker_, .lease = kOnceLease, .leave = true});
        return reply;
    });
    static_cast<void>(SEKALI_FAULT("commit.after"));
    return settled;
}

LeaseKeeper::LeaseKeeper(Store& store, const OnceCaller& caller) : store_(store) {
    request_.run = caller.run();
    request_.lease = kOnceLease;
    heartbeat_ = {.worker = caller.worker(), .lease = kOnceLease, .leave = false};
    thread_ = std::jthread([this](const std::stop_token& over) { keep(over); });
}

LeaseKeeper::~LeaseKeeper() {
    thread_.request_stop();
    thread_.join();
}

std::string LeaseKeeper::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

void LeaseKeeper::lose(std::string reason) {
    {
        const std::lock_guard lock(mutex_);
        reason_ = std::move(reason);
    }
    lost_.request_stop();
}

void LeaseKeeper::keep(const std::stop_token& over) {
    // Clocks of two machines may run apart by a little, and a stop takes its time.
    constexpr Millis kMargin{1000};
    Clock::time_point valid_until = Clock::now() + kOnceLease - kMargin;
    while (true) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, over, kOnceLease / 3, [] { return false; });
            if (over.stop_requested()) return;
        }
        const Clock::time_point sent = Clock::now();
        const std::optional<Renewed> renewed = renew(valid_until);
        if (renewed && !renewed->kept) return lose("lease_lost");
        if (renewed && renewed->cancel) return lose("cancel");
        if (renewed) valid_until = sent + kOnceLease - kMargin;
        if (Clock::now() >= valid_until) return lose("lease_lost");
    }
}

/// Nothing when the store did not answer in time, or refused for now.
std::optional<Renewed> LeaseKeeper::renew(Clock::time_point until) {
    const auto answer = std::make_shared<Answer>();
    const auto renewed = std::make_shared<Renewed>();
    engine::Task task;
    task.urgent = true;
    task.work = [renewed, request = request_, heartbeat = heartbeat_](engine::Tables& tables) {
        *renewed = engine::renew(tables, request);
        engine::heartbeat(tables, heartbeat);
    };
    task.done = [answer, renewed](const Result<void>& result) {
        const std::lock_guard lock(answer->mutex);
        answer->reply = result ? Result<Renewed>(*renewed) : Result<Renewed>(result.error());
        answer->arrived.notify_one();
    };
    std::vector<engine::Task> tasks;
    tasks.push_back(std::move(task));
    store_.executor().submit(std::move(tasks));
    std::unique_lock lock(answer->mutex);
    answer->arrived.wait_until(lock, until, [&] { return answer->reply.has_value(); });
    if (!answer->reply || !answer->reply->ok()) return std::nullopt;
    return answer->reply->value();
}

}  // namespace sekali::cli
