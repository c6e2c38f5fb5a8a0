#include "conformance/witness.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace sekali::conformance {

using engine::JobRow;
using engine::JobState;
using engine::RecordRow;
using engine::RecordState;
using engine::StoreTime;

namespace {

void expect(bool kept, const std::string& promise, const std::string& subject) {
    if (!kept) RC_FAIL(promise + ": " + subject);
}

}  // namespace

void Witness::look(engine::Tables& tables) {
    engine::JobFilter filter;
    filter.ns = ns_;
    filter.limit = 100'000;
    std::map<std::string, JobRow> jobs;
    std::map<engine::RecordKey, RecordRow> records;
    std::set<std::string> slots;
    for (JobRow& row : tables.list_jobs(filter).items) {
        look_at_job(row);
        if (row.slot_held) {
            expect(slots.insert(row.job.kind + "/" + row.job.unique_key).second,
                   "G9 at most one live job for each unique key", row.job.id);
        }
        const engine::RecordKey key{ns_, row.job.kind, row.job.key};
        if (const auto record = tables.record(key)) records.insert_or_assign(key, *record);
        if (!row.job.lock_key.empty()) {
            if (const auto lock = tables.lock(ns_, row.job.lock_key)) look_at_lock(*lock);
        }
        jobs.insert_or_assign(row.job.id, std::move(row));
    }
    // A marked record outlives the history of its jobs.
    for (const auto& [key, row] : records_) {
        if (records.contains(key)) continue;
        if (const auto record = tables.record(key)) records.emplace(key, *record);
    }
    for (const auto& [id, row] : jobs_) {
        expect(may_vanish_ || jobs.contains(id), "G1 nothing is lost", id);
    }
    for (const auto& [key, row] : records)
        look_at_record(row);
    for (const auto& [key, row] : records_) {
        expect(may_vanish_ || records.contains(key), "G2 a record is kept", key.key);
    }
    jobs_ = std::move(jobs);
    records_ = std::move(records);
    may_vanish_ = false;
}

void Witness::look_at_job(const JobRow& row) const {
    const std::string subject = row.job.id + " " + std::string(to_string(row.state));
    if (row.state == JobState::kRunning) {
        expect(!row.owner.empty(), "a running job has an owner", subject);
    } else {
        expect(row.owner.empty() && row.lease_until == StoreTime{} && !row.begun,
               "A08 a job that does not run has no trace of a claim", subject);
    }
    const bool waits = row.state == JobState::kWaiting;
    expect(waits == (row.waiting_for != engine::WaitFor::kNothing) &&
               waits == !row.waiting_name.empty(),
           "G8 a wait is visible", subject);
    expect(is_final(row.state) == row.finished_at.has_value(), "an end has its time", subject);
    expect(!(is_final(row.state) && row.slot_held), "G9 an ended job holds no slot", subject);
    const auto before = jobs_.find(row.job.id);
    if (before == jobs_.end()) return;
    const JobState was = before->second.state;
    if (was == JobState::kSucceeded || was == JobState::kDuplicate || was == JobState::kCancelled) {
        expect(row.state == was, "G1 exactly one final state", subject);
        expect(row.result == before->second.result, "G3 a result is final", subject);
    }
    expect(row.deliveries >= before->second.deliveries, "a delivery token is never used twice",
           subject);
}

void Witness::look_at_record(const RecordRow& row) {
    const std::string& key = row.id.key;
    std::uint64_t& epoch = epochs_[row.id];
    expect(row.epoch >= epoch, "epochs only grow", key);
    const auto before = records_.find(row.id);
    if (before == records_.end()) {
        expect(epoch == 0 || row.epoch > epoch, "I31 a new record starts above the old one", key);
    } else if (before->second.state == RecordState::kSucceeded) {
        expect(row.state == RecordState::kSucceeded && row.job_id == before->second.job_id &&
                   row.result == before->second.result && row.epoch == before->second.epoch,
               "G3 success is final", key);
    } else if (row.state == RecordState::kProcessing && row.epoch != before->second.epoch) {
        expect(row.owner != before->second.owner || row.delivery != before->second.delivery ||
                   row.job_id != before->second.job_id,
               "I08 one delivery begins once", key);
    }
    epoch = row.epoch;
}

void Witness::look_at_lock(const engine::LockRow& row) {
    std::uint64_t& fence = fences_[row.name];
    expect(row.fence >= fence, "fences only grow", row.name);
    fence = row.fence;
}

void Witness::began(const std::optional<RecordRow>& before, const engine::Begin& request,
                    const engine::BeginReply& reply) {
    const auto* started = std::get_if<engine::Started>(&reply);
    if (started == nullptr || !before || request.policy.record == engine::RecordMode::kNone) return;
    const bool same_run =
        before->state == RecordState::kProcessing && before->owner == request.run.worker &&
        before->delivery == request.run.delivery && before->job_id == request.run.job_id;
    if (same_run) return;
    const std::string& key = before->id.key;
    expect(before->state != RecordState::kSucceeded, "G2 one effect", key);
    expect(before->state != RecordState::kHeld, "G6 held waits for an answer", key);
    const bool lost_run = before->state == RecordState::kProcessing && !before->probing &&
                          before->effects == engine::Effects::kOutside;
    const auto strictest = std::max(before->on_unknown, request.policy.on_unknown);
    const bool unknown = before->marked || lost_run;
    expect(!(unknown && strictest == engine::OnUnknown::kHold),
           "G6 under hold no second run starts before the answer", key);
    const bool asks = started->probe_first || started->ask_in_step;
    expect(!(unknown && strictest == engine::OnUnknown::kProbe && !asks),
           "G6 under probe the second run asks first", key);
    expect(started->epoch > before->epoch, "each begin raises the epoch", key);
}

}  // namespace sekali::conformance
