#include "observe/explain_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sekali::observe {

using engine::AttemptRow;
using engine::JobState;

namespace {

std::vector<Run> read_runs(engine::Tables& tables, const Facts& facts) {
    std::vector<Run> runs;
    for (AttemptRow& row : tables.attempts_of_key(facts.subject)) {
        // The end of one run may be noticed by two: its worker and whoever took it over.
        const bool known = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
            return run.row.job_id == row.job_id && run.row.epoch == row.epoch &&
                   run.row.worker == row.worker;
        });
        const bool open = !row.finished_at;
        if (!known) runs.push_back({std::move(row), open});
    }
    // A run leaves its row when it ends; the one that goes on stands in the record.
    const auto& record = facts.record;
    const bool goes_on =
        record && record->state == engine::RecordState::kProcessing && !record->probing &&
        std::none_of(runs.begin(), runs.end(),
                     [&](const Run& run) { return run.row.epoch == record->epoch; });
    if (goes_on) {
        AttemptRow row;
        row.job_id = record->job_id;
        row.attempt = record->attempt;
        row.epoch = record->epoch;
        row.worker = record->owner;
        row.started_at = record->started_at;
        runs.push_back({std::move(row), true});
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
        return a.row.started_at < b.row.started_at;
    });
    return runs;
}

TimelineEntry enqueued_entry(const JobView& job) {
    const engine::JobRow& row = job.row;
    TimelineEntry entry{row.enqueued_at, "enqueued", row.job.id, {}, {}, "", ""};
    entry.detail = "queue " + row.job.queue;
    if (!row.job.lock_key.empty()) entry.detail += ", lock " + row.job.lock_key;
    return entry;
}

TimelineEntry start_entry(const Run& run) {
    const AttemptRow& row = run.row;
    return {row.started_at, "start", row.job_id, row.attempt, row.epoch, row.worker, ""};
}

TimelineEntry end_entry(const Run& run) {
    const AttemptRow& row = run.row;
    return {*row.finished_at, row.outcome, row.job_id, row.attempt,
            row.epoch,        row.worker,  row.error};
}

TimelineEntry event_entry(const engine::EventRow& event) {
    TimelineEntry entry{event.at,     std::string(engine::to_string(event.event)),
                        event.job_id, {},
                        {},           event.worker,
                        event.detail};
    if (event.epoch != 0) entry.epoch = event.epoch;
    return entry;
}

}  // namespace

Facts read_facts(engine::Tables& tables, const engine::RecordKey& subject,
                 Surroundings& surroundings) {
    Facts facts;
    facts.subject = subject;
    facts.record = tables.record(subject);
    for (engine::JobRow& row : tables.jobs_of_key(subject.ns, subject.kind, subject.key))
        facts.jobs.push_back(view_job(std::move(row), surroundings));
    std::stable_sort(facts.jobs.begin(), facts.jobs.end(), [](const auto& a, const auto& b) {
        return a.row.enqueued_at < b.row.enqueued_at;
    });
    facts.runs = read_runs(tables, facts);
    facts.events = tables.events_of_key(subject);
    std::stable_sort(facts.events.begin(), facts.events.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    return facts;
}

std::vector<TimelineEntry> timeline_of(const Facts& facts) {
    // What happened in one transaction has one time; these go in the order of the protocol.
    std::vector<TimelineEntry> timeline;
    for (const JobView& job : facts.jobs)
        timeline.push_back(enqueued_entry(job));
    for (const Run& run : facts.runs)
        timeline.push_back(start_entry(run));
    for (const engine::EventRow& event : facts.events)
        timeline.push_back(event_entry(event));
    for (const Run& run : facts.runs) {
        if (run.row.finished_at) timeline.push_back(end_entry(run));
    }
    for (const JobView& job : facts.jobs) {
        const engine::JobRow& row = job.row;
        if (row.state != JobState::kDead || !row.finished_at) continue;
        timeline.push_back({*row.finished_at, "dead", row.job.id, {}, {}, "", row.reason});
    }
    std::stable_sort(timeline.begin(), timeline.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    return timeline;
}

bool ended_unknown(const Run& run) {
    static constexpr std::string_view kUnknown[] = {"crashed", "lapsed", "timeout", "interrupted",
                                                    "unknown"};
    return std::find(std::begin(kUnknown), std::end(kUnknown), run.row.outcome) !=
           std::end(kUnknown);
}

}  // namespace sekali::observe
