#include <algorithm>

#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

constexpr std::size_t kPromoteAtOnce = 1000;

/// The policy under which the claim itself begins the run, or null. A suspect may have to wait
/// until it is alone, and a lock key may have to be asked for outside.
const KindPolicy* begins_with(const Claim& request, const JobRow& row) {
    if (row.suspect || !row.job.lock_key.empty()) return nullptr;
    const auto found = request.begin.find(row.job.kind);
    return found == request.begin.end() ? nullptr : &found->second;
}

Begin begin_of(const Claim& request, const KindPolicy& policy, const JobRow& row) {
    Begin begin;
    begin.run.job_id = row.job.id;
    begin.run.worker = row.owner;
    begin.run.delivery = row.deliveries;
    begin.policy = policy;
    begin.lease = request.lease;
    begin.attempts = row.attempts;
    begin.may_take_over = request.may_take_over;
    return begin;
}

/// A claim that was lost may be an old one: its lease begins anew.
bool grant_again(Tables& tables, const Claim& request, const JobRow& row,
                 const KindPolicy* policy) {
    Renew renewal;
    renewal.run.job_id = row.job.id;
    renewal.run.record = record_key(row.job);
    renewal.run.worker = row.owner;
    renewal.run.delivery = row.deliveries;
    renewal.run.epoch = row.begun ? row.epoch : 0;
    renewal.lease = request.lease;
    if (policy != nullptr && policy->record == RecordMode::kNone) renewal.run.record.key.clear();
    return renew(tables, renewal).kept;
}

Claimed claim_again(Tables& tables, const Claim& request) {
    Claimed reply;
    reply.more = true;
    for (JobRow& row : tables.running_jobs_of(request.spec.ns, request.worker)) {
        const std::pair claim{row.job.id, row.deliveries};
        if (std::find(request.known.begin(), request.known.end(), claim) != request.known.end()) {
            continue;
        }
        Delivery delivery{std::move(row)};
        const KindPolicy* policy = begins_with(request, delivery.row);
        if (!grant_again(tables, request, delivery.row, policy)) continue;
        if (policy != nullptr && delivery.row.begun) {
            Begin repeated = begin_of(request, *policy, delivery.row);
            repeated.job = delivery.row.job;
            delivery.begun = begin(tables, repeated);
        }
        reply.deliveries.push_back(std::move(delivery));
    }
    return reply;
}

}  // namespace

Claimed claim(Tables& tables, const Claim& request) {
    // Nobody hears the answer to a dead worker's late request, and the company that its jobs had at
    // its death has been counted.
    if (!request.begin.empty() && owner_is_gone(tables, request.worker)) return {};
    if (request.repeat) return claim_again(tables, request);
    Claimed reply;
    tables.promote_due(request.spec.ns, kPromoteAtOnce);
    for (JobRow& row : tables.claimable(request.spec)) {
        row.state = JobState::kRunning;
        row.owner = request.worker;
        row.lease_until = tables.now() + request.lease;
        row.begun = false;
        ++row.deliveries;
        Delivery delivery{std::move(row)};
        if (const KindPolicy* policy = begins_with(request, delivery.row)) {
            delivery.begun =
                begin_claimed(tables, begin_of(request, *policy, delivery.row), delivery.row);
        } else {
            tables.update_job(delivery.row);
        }
        reply.deliveries.push_back(std::move(delivery));
    }
    reply.more = reply.deliveries.size() >= request.spec.limit;
    if (!reply.deliveries.empty()) return reply;
    if (const auto due = tables.next_run_at(request.spec)) {
        reply.next_due = std::max(Millis{0}, *due - tables.now());
    }
    if (request.draining) reply.drained = !tables.has_drainable(request.spec);
    return reply;
}

void give_back(Tables& tables, const Return& request) {
    auto row = tables.job(request.run.job_id);
    // What has begun ends by being settled.
    if (!claim_is_mine(row, request.run) || row->begun) return;
    requeue(tables, *row, request.delay.value_or(Millis{0}));
}

Renewed renew(Tables& tables, const Renew& request) {
    const RunRef& run = request.run;
    Renewed reply;
    auto row = tables.job(run.job_id);
    if (!claim_is_mine(row, run)) return reply;
    const StoreTime until = tables.now() + request.lease;
    if (run.epoch != 0 && !run.record.key.empty()) {
        auto record = tables.record(run.record);
        if (!record || record->state != RecordState::kProcessing || record->owner != run.worker ||
            record->epoch != run.epoch || record->delivery != run.delivery) {
            return reply;
        }
        if (!request.look) {
            record->lease_until = until;
            tables.put_record(*record);
        }
    }
    if (run.fence != 0) {
        auto lock = tables.lock(run.record.ns, run.lock_key);
        reply.lock_kept = lock && lock->owner == run.worker && lock->fence == run.fence;
        if (reply.lock_kept && !request.look) {
            lock->lease_until = until;
            tables.put_lock(*lock);
        } else if (!reply.lock_kept) {
            note(tables, EventKind::kLockLost, *row, run.worker, "lock " + run.lock_key);
        }
    }
    if (!request.look) {
        row->lease_until = until;
        tables.update_job(*row);
    }
    reply.kept = true;
    reply.cancel = row->cancel_requested;
    return reply;
}

void heartbeat(Tables& tables, const Heartbeat& request) {
    if (request.leave) {
        tables.erase_worker(request.worker.id);
        return;
    }
    WorkerRow row = request.worker;
    row.lease_until = tables.now() + request.lease;
    if (const auto known = tables.worker(row.id)) {
        row.started_at = known->started_at;
    } else {
        row.started_at = tables.now();
    }
    tables.put_worker(row);
}

}  // namespace sekali::engine
