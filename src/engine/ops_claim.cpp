#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

constexpr std::size_t kPromoteAtOnce = 1000;

}  // namespace

Claimed claim(Tables& tables, const Claim& request) {
    Claimed reply;
    tables.promote_due(request.spec.ns, kPromoteAtOnce);
    for (JobRow& row : tables.claimable(request.spec)) {
        row.state = JobState::kRunning;
        row.owner = request.worker;
        row.lease_until = tables.now() + request.lease;
        row.begun = false;
        ++row.deliveries;
        tables.update_job(row);
        reply.deliveries.push_back(Delivery{std::move(row)});
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
