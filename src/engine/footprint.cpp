#include "engine/ops_internal.hpp"

// Which rows the operations read, as far as the request tells. Kept beside them: what one of them
// reads and this leaves out is found only after a round trip of its own.
namespace sekali::engine {
namespace {

void add_lock(Footprint& rows, const std::string& ns, const std::string& name) {
    if (!name.empty()) rows.locks.emplace_back(ns, name);
}

void add_run(Footprint& rows, const RunRef& run) {
    rows.jobs.push_back(run.job_id);
    if (!run.record.key.empty()) rows.records.push_back(run.record);
}

class CommandFootprint {
 public:
    explicit CommandFootprint(Footprint& rows) : rows_(rows) {}

    void operator()(const Claim& /*request*/) const {}
    void operator()(const Return& request) const { rows_.jobs.push_back(request.run.job_id); }
    void operator()(const Acknowledge& /*request*/) const {}
    void operator()(const Extend& request) const { add_run(rows_, request.run); }

    void operator()(const Begin& request) const {
        rows_.jobs.push_back(request.run.job_id);
        if (request.policy.record == RecordMode::kKept) {
            rows_.records.push_back(record_key(request.job));
        }
        add_lock(rows_, request.job.ns, request.job.lock_key);
    }
    void operator()(const Settle& request) const {
        add_run(rows_, request.run);
        rows_.key_lines.push_back(record_key(request.job));
        const std::string& ns = request.run.record.ns;
        if (request.run.fence != 0) {
            add_lock(rows_, ns, request.run.lock_key);
            rows_.lock_lines.emplace_back(ns, request.run.lock_key);
        }
        add_lock(rows_, request.job.ns, request.job.lock_key);
        for (const Settle::ExtraLock& lock : request.extra_locks) {
            add_lock(rows_, ns, lock.name);
            rows_.lock_lines.emplace_back(ns, lock.name);
        }
    }
    void operator()(const Renew& request) const {
        add_run(rows_, request.run);
        if (request.run.fence != 0) {
            add_lock(rows_, request.run.record.ns, request.run.lock_key);
        }
    }
    void operator()(const StepIntent& request) const {
        rows_.records.push_back(request.run.record);
        rows_.steps.push_back(request.run.record);
    }
    void operator()(const StepResult& request) const {
        rows_.records.push_back(request.run.record);
        rows_.steps.push_back(request.run.record);
    }
    void operator()(const Answer& request) const {
        add_run(rows_, request.run);
        rows_.steps.push_back(request.run.record);
        rows_.key_lines.push_back(request.run.record);
    }
    void operator()(const Recover& /*request*/) const {}
    void operator()(const Heartbeat& request) const { rows_.workers.push_back(request.worker.id); }

    void operator()(const LockAcquire& request) const { add_lock(rows_, request.ns, request.name); }
    void operator()(const LockRenew& request) const { add_lock(rows_, request.ns, request.name); }
    void operator()(const LockRelease& request) const {
        add_lock(rows_, request.ns, request.name);
        rows_.lock_lines.emplace_back(request.ns, request.name);
    }

 private:
    Footprint& rows_;
};

}  // namespace

void add_footprint(Footprint& rows, const QueueCommand& command) {
    std::visit(CommandFootprint{rows}, command);
}

void add_footprint(Footprint& rows, const StoreCommand& command) {
    std::visit(CommandFootprint{rows}, command);
}

void add_footprint(Footprint& rows, const LockCommand& command) {
    std::visit(CommandFootprint{rows}, command);
}

void foresee(Tables& tables, std::span<const EnqueueRequest> requests) {
    if (!tables.is_far()) return;
    Footprint rows;
    for (const EnqueueRequest& request : requests) {
        const Envelope& job = request.job;
        (request.has_fresh_id ? rows.fresh_jobs : rows.new_jobs).push_back(job.id);
        const RecordKey key = record_key(job);
        if (!request.has_fresh_id || job.key != job.id) rows.records.push_back(key);
        if (job.key != job.id) rows.live_of_keys.push_back(key);
        if (!job.unique_key.empty()) rows.slots.push_back({job.ns, job.kind, job.unique_key});
    }
    tables.foresee(rows);
}

}  // namespace sekali::engine
