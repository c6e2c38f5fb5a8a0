#include <algorithm>
#include <utility>

#include "backends/postgres/tables.hpp"

// What a unit takes to be so without asking, because this process wrote it last. It saves the round
// trip that loads and locks the rows of running jobs. Each assumption is a condition of a statement
// that the server refuses where it does not hold, and the whole transaction with it; then the unit
// runs again and assumes nothing.
namespace sekali::postgres {

using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::RecordState;

namespace {

constexpr Xid kNone{};

}  // namespace

bool PostgresTables::assume_job(const std::string& id) {
    if (!may_assume_) return false;
    auto known = known_->take_job(id);
    if (!known) return false;
    JobEntry& entry = jobs_[id];
    entry.stored = entry.place = Place::kLive;
    entry.row = std::move(known->row);
    entry.version = known->version;
    return has_assumed_ = true;
}

bool PostgresTables::assume_record(const RecordKey& key) {
    if (!may_assume_) return false;
    if (auto known = known_->take_record(key)) {
        records_[key] = {.stored = true, .row = std::move(known->row), .version = known->version};
        return has_assumed_ = true;
    }
    // A key that nobody chose has no record before its job's first begin.
    const auto job = jobs_.find(key.key);
    if (job == jobs_.end() || job->second.version == kNone) return false;
    const JobRow& row = job->second.row;
    if (row.job.key != row.job.id || row.job.kind != key.kind || row.job.ns != key.ns ||
        row.epoch != 0 || row.deliveries != 1) {
        return false;
    }
    records_[key].absence_assumed = true;
    return has_assumed_ = true;
}

bool PostgresTables::assume_lock(const LockName& name) {
    if (!may_assume_) return false;
    auto known = known_->take_lock(name);
    if (!known) return false;
    locks_[name] = {.stored = true, .row = std::move(known->row), .version = known->version};
    return has_assumed_ = true;
}

bool PostgresTables::assume_empty(const LineName& line) {
    const auto& [ns, wait, kind, name] = line;
    bool is_of_assumed = false;
    if (wait == engine::WaitFor::kLock) {
        const auto lock = locks_.find({ns, name});
        is_of_assumed = lock != locks_.end() && lock->second.version != kNone;
    } else {
        const auto record = records_.find({ns, kind, name});
        is_of_assumed = record != records_.end() && record->second.version != kNone;
    }
    if (!is_of_assumed) return false;
    lines_[line].reset();
    assumed_lines_.insert(line);
    return true;
}

void PostgresTables::assume_time() {
    if (!may_assume_ || has_looked_) return;
    const auto reading = known_->reading();
    if (!reading) return;
    now_ = options_.clock ? options_.clock() : reading->time;
    epoch_floor_ = stored_epoch_floor_ = reading->epoch_floor;
    fence_floor_ = stored_fence_floor_ = reading->fence_floor;
    has_looked_ = true;
    time_is_assumed_ = !options_.clock;
}

bool PostgresTables::has_unproven() const {
    // Only what is written where it stands is written under the condition of its version.
    const auto job_is_open = [](const auto& pair) {
        const JobEntry& entry = pair.second;
        return entry.version != kNone && (!entry.dirty || entry.place == Place::kNone);
    };
    const auto is_open = [](const auto& pair) {
        const auto& entry = pair.second;
        return (entry.version != kNone && (!entry.dirty || !entry.row)) ||
               (entry.absence_assumed && !entry.dirty);
    };
    return std::any_of(jobs_.begin(), jobs_.end(), job_is_open) ||
           std::any_of(records_.begin(), records_.end(), is_open) ||
           std::any_of(locks_.begin(), locks_.end(), is_open);
}

void PostgresTables::check_lines(std::vector<Command>& out) {
    if (assumed_lines_.empty()) return;
    out.push_back({&sql_.lines_are_empty, arrays_of(assumed_lines_)});
    assumed_lines_.clear();
}

void PostgresTables::keep_known(Xid version) {
    if (known_ == nullptr || version_is_unknown_) return;
    for (auto& [id, entry] : jobs_) {
        const bool runs = entry.place == Place::kLive && entry.row.state == JobState::kRunning;
        if (entry.written && runs) known_->put(std::move(entry.row), version);
    }
    for (auto& [key, entry] : records_) {
        if (!entry.written || !entry.row || entry.row->state != RecordState::kProcessing) continue;
        known_->put(*std::move(entry.row), version);
    }
    for (auto& [name, entry] : locks_) {
        if (!entry.written || !entry.row || entry.row->owner.empty()) continue;
        known_->put(*std::move(entry.row), version);
    }
}

}  // namespace sekali::postgres
