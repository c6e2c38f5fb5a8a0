#include <algorithm>

#include "backends/memory/memory_tables.hpp"
#include "backends/rows/refusals.hpp"

// The job rows of the memory backend.
namespace sekali::memory {
namespace {

using engine::JobRow;
using engine::JobState;
using engine::StoreTime;

JobRow without_payload(const JobRow& row) {
    JobRow bare = row;
    bare.job.payload.clear();
    return bare;
}

std::vector<JobRow> copies(const std::vector<const JobRow*>& rows) {
    std::vector<JobRow> copied;
    copied.reserve(rows.size());
    for (const JobRow* row : rows)
        copied.push_back(*row);
    return copied;
}

std::optional<JobRow> copy_of(const JobRow* row) {
    return row == nullptr ? std::nullopt : std::optional(*row);
}

bool matches(const JobRow& row, const engine::JobFilter& filter) {
    const auto agrees = [](const std::optional<std::string>& wanted, std::string_view found) {
        return !wanted || *wanted == found;
    };
    return agrees(filter.state, to_string(row.state)) && agrees(filter.kind, row.job.kind) &&
           agrees(filter.queue, row.job.queue) && agrees(filter.key, row.job.key);
}

}  // namespace

void MemoryTables::write_job(const JobRow& row) {
    auto before = jobs_.set(row.job.id, without_payload(row));
    undo_.push([this, id = row.job.id, before = std::move(before)]() mutable {
        jobs_.set(id, std::move(before));
    });
}

const JobRow& MemoryTables::require_job(std::string_view id, bool live) const {
    const JobRow* row = jobs_.find(id);
    if (row == nullptr || is_final(row->state) == live) {
        rows::throw_no_job(live ? "live" : "final", id);
    }
    return *row;
}

std::optional<JobRow> MemoryTables::job(std::string_view id) {
    const JobRow* row = jobs_.find(id);
    return row == nullptr || is_final(row->state) ? std::nullopt : std::optional(*row);
}

bool MemoryTables::insert_job(JobRow& row) {
    if (jobs_.find(row.job.id) != nullptr) return false;
    row.seq = static_cast<std::int64_t>(next(last_seq_));
    set(payloads_, row.job.id, row.job.payload);
    write_job(row);
    return true;
}

void MemoryTables::update_job(const JobRow& row) {
    require_job(row.job.id, true);
    write_job(row);
}

void MemoryTables::finish_job(const JobRow& row) {
    require_job(row.job.id, true);
    if (!keeps_payload(row.state)) set(payloads_, row.job.id, std::nullopt);
    JobRow final_row = row;
    final_row.slot_held = false;
    write_job(final_row);
}

std::optional<JobRow> MemoryTables::finished_job(std::string_view id) {
    const JobRow* row = jobs_.find(id);
    return row == nullptr || !is_final(row->state) ? std::nullopt : std::optional(*row);
}

void MemoryTables::insert_finished(const JobRow& row) {
    if (jobs_.find(row.job.id) != nullptr) rows::throw_job_exists(row.job.id);
    JobRow final_row = row;
    if (final_row.seq == 0) final_row.seq = static_cast<std::int64_t>(next(last_seq_));
    if (keeps_payload(row.state)) set(payloads_, row.job.id, row.job.payload);
    write_job(final_row);
}

void MemoryTables::revive_job(const JobRow& row) {
    require_job(row.job.id, false);
    write_job(row);
}

void MemoryTables::erase_finished(std::string_view id) {
    const JobRow row = require_job(id, false);
    set(payloads_, row.job.id, std::nullopt);
    jobs_.set(row.job.id, std::nullopt);
    undo_.push([this, row] { jobs_.set(row.job.id, row); });
}

std::string MemoryTables::payload(std::string_view job_id) {
    const auto found = payloads_.find(job_id);
    return found == payloads_.end() ? std::string{} : found->second;
}

std::size_t MemoryTables::promote_due(std::string_view ns, std::size_t limit) {
    const std::vector<JobRow> due = copies(jobs_.due(ns, now_, limit));
    for (JobRow row : due) {
        row.state = JobState::kReady;
        write_job(row);
    }
    return due.size();
}

std::vector<JobRow> MemoryTables::claimable(const engine::ClaimSpec& spec) {
    std::vector<std::string> open_queues = spec.queues;
    std::erase_if(open_queues, [&](const std::string& name) { return paused(spec.ns, name); });
    std::vector<JobRow> rows = copies(jobs_.ready(spec.ns, open_queues, spec.kinds, spec.limit));
    for (JobRow& row : rows)
        row.job.payload = payload(row.job.id);
    return rows;
}

std::vector<JobRow> MemoryTables::lapsed_jobs(std::string_view ns,
                                              const std::vector<std::string>& kinds,
                                              std::int64_t after_seq, std::size_t limit) {
    const std::set<std::string_view> wanted(kinds.begin(), kinds.end());
    const std::set<std::int64_t>& running = jobs_.running(ns);
    std::vector<JobRow> rows;
    for (auto seq = running.upper_bound(after_seq); seq != running.end(); ++seq) {
        if (rows.size() == limit) break;
        const JobRow& row = jobs_.at(*seq);
        if (!wanted.contains(row.job.kind)) continue;
        const bool lapsed = row.lease_until <= now_;
        if (lapsed || owner_fate(row.owner) == engine::OwnerFate::kDead) rows.push_back(row);
    }
    return rows;
}

std::vector<JobRow> MemoryTables::running_jobs_of(std::string_view ns, std::string_view owner) {
    std::vector<JobRow> rows;
    for (const std::int64_t seq : jobs_.running(ns)) {
        if (jobs_.at(seq).owner != owner) continue;
        rows.push_back(jobs_.at(seq));
        rows.back().job.payload = payload(rows.back().job.id);
    }
    return rows;
}

std::optional<JobRow> MemoryTables::unique_holder(std::string_view ns, std::string_view kind,
                                                  std::string_view unique_key) {
    return copy_of(jobs_.slot_holder(ns, kind, unique_key));
}

std::optional<JobRow> MemoryTables::first_waiting(std::string_view ns, engine::WaitFor wait,
                                                  std::string_view kind, std::string_view name) {
    return copy_of(jobs_.first_in_line(ns, wait, kind, name));
}

bool MemoryTables::has_live_or_dead_job(const RecordKey& key) {
    const auto of_key = jobs_.by_key().find(key);
    return of_key != jobs_.by_key().end() && !of_key->second.live_or_dead.empty();
}

std::optional<JobRow> MemoryTables::live_job_of_key(const RecordKey& key) {
    const auto of_key = jobs_.by_key().find(key);
    if (of_key == jobs_.by_key().end()) return std::nullopt;
    const JobRow* found = nullptr;
    for (const std::int64_t seq : of_key->second.live_or_dead) {
        const JobRow& row = jobs_.at(seq);
        if (is_final(row.state)) continue;
        if (row.state != JobState::kWaiting) return row;
        if (found == nullptr) found = &row;
    }
    return copy_of(found);
}

std::optional<StoreTime> MemoryTables::next_run_at(const engine::ClaimSpec& spec) {
    return jobs_.next_scheduled(spec.ns, spec.queues, spec.kinds);
}

bool MemoryTables::paused(std::string_view ns, std::string_view queue) const {
    const auto found = queues_.find(std::tuple{ns, queue});
    return found != queues_.end() && found->second.paused;
}

bool MemoryTables::held_up(const JobTable::LineName& line) {
    const auto& [ns, wait, kind, name] = line;
    std::string blocker;
    if (wait == engine::WaitFor::kLock) {
        const auto row = lock(ns, name);
        if (row) blocker = row->owner.empty() ? row->reserved_for : row->job_id;
    } else {
        const auto row = record({ns, kind, name});
        if (row && row->state == engine::RecordState::kHeld) return true;
        if (row) blocker = row->job_id;
    }
    const auto row = job(blocker);
    if (!row || row->state == JobState::kRunning) return false;
    const bool delayed = row->state == JobState::kScheduled && row->deliveries == 0;
    return row->state == JobState::kHeld || delayed || paused(ns, row->job.queue);
}

bool MemoryTables::has_drainable(const engine::ClaimSpec& spec) {
    const std::set<std::string_view> queues(spec.queues.begin(), spec.queues.end());
    const std::set<std::string_view> kinds(spec.kinds.begin(), spec.kinds.end());
    const auto served = [&](const JobRow& row) {
        return queues.contains(row.job.queue) && kinds.contains(row.job.kind);
    };
    const auto& running = jobs_.running(spec.ns);
    if (std::any_of(running.begin(), running.end(),
                    [&](std::int64_t seq) { return served(jobs_.at(seq)); })) {
        return true;
    }
    std::vector<std::string> open_queues = spec.queues;
    std::erase_if(open_queues, [&](const std::string& name) { return paused(spec.ns, name); });
    if (!jobs_.ready(spec.ns, open_queues, spec.kinds, 1).empty()) return true;
    if (jobs_.has_retry(spec.ns, open_queues, spec.kinds)) return true;
    for (const auto& [line, places] : jobs_.lines()) {
        if (std::get<0>(line) != spec.ns || held_up(line)) continue;
        if (std::any_of(places.begin(), places.end(), [&](const JobTable::Place& place) {
                const JobRow& row = jobs_.at(place.second);
                return served(row) && !paused(spec.ns, row.job.queue);
            })) {
            return true;
        }
    }
    return false;
}

engine::Page<JobRow> MemoryTables::list_jobs(const engine::JobFilter& filter) {
    engine::Page<JobRow> page;
    const std::set<std::int64_t>& rows = jobs_.of_namespace(filter.ns);
    for (auto at = rows.upper_bound(rows::parse_continuation(filter.after)); at != rows.end();
         ++at) {
        const JobRow& row = jobs_.at(*at);
        if (!matches(row, filter)) continue;
        if (page.items.size() == filter.limit) {
            if (!page.items.empty()) page.next = std::to_string(page.items.back().seq);
            break;
        }
        page.items.push_back(row);
    }
    return page;
}

std::vector<JobRow> MemoryTables::jobs_of_key(std::string_view ns, std::string_view kind,
                                              std::string_view key) {
    std::vector<JobRow> rows;
    const auto of_key = jobs_.by_key().find({std::string(ns), std::string(kind), std::string(key)});
    if (of_key == jobs_.by_key().end()) return rows;
    for (const std::int64_t seq : of_key->second.all)
        rows.push_back(jobs_.at(seq));
    return rows;
}

}  // namespace sekali::memory
