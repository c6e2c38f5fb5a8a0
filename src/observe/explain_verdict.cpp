#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/durations.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "observe/explain_facts.hpp"

namespace sekali::observe {

using engine::JobRow;
using engine::JobState;
using engine::Millis;
using engine::WaitFor;

namespace {

std::string times(std::size_t count) {
    if (count == 1) return "once";
    if (count == 2) return "twice";
    return fmt::format("{} times", count);
}

/// A moment, and how far it is from now.
std::string when(engine::StoreTime at, engine::StoreTime now) {
    const Millis left = std::max(Millis{0}, at - now);
    // Whole seconds read better, and nothing here is known to the millisecond.
    const Millis shown =
        left < Millis{1000} ? left : std::chrono::round<std::chrono::seconds>(left);
    return fmt::format("{} (in {})", shown_time(at), base::format_duration(shown));
}

std::string behind_lock(engine::Tables& tables, const JobRow& row, engine::StoreTime now) {
    const std::string& name = row.waiting_name;
    const auto lock = tables.lock(row.job.ns, name);
    const std::string what = fmt::format("waits behind lock {}", base::quoted(name));
    if (!lock || (lock->owner.empty() && lock->reserved_for.empty())) {
        return what + ", which is free now: it is about to be woken";
    }
    if (lock->owner.empty()) {
        return fmt::format("{}, which is kept for job {} that comes first, until {}", what,
                           lock->reserved_for, when(lock->reserved_until, now));
    }
    std::string holder = fmt::format("worker {}", lock->owner);
    if (!lock->job_id.empty()) {
        const auto other = tables.job(lock->job_id);
        holder = fmt::format("job {} on worker {}", lock->job_id, lock->owner);
        if (other) {
            holder =
                fmt::format("{} {} ({})", other->job.kind, base::quoted(other->job.key), holder);
        }
    }
    return fmt::format("{}, held by {}; it runs when that one ends, or when its lease lapses: {}",
                       what, holder, when(lock->lease_until, now));
}

std::string behind_key(engine::Tables& tables, const JobRow& row, engine::StoreTime now) {
    const auto record = tables.record({row.job.ns, row.job.kind, row.waiting_name});
    std::string text = fmt::format("waits for the end of key {}", base::quoted(row.waiting_name));
    if (!record) return text;
    text += fmt::format(", whose job {} is {}", record->job_id, engine::to_string(record->state));
    if (record->state == engine::RecordState::kProcessing) {
        text += fmt::format(" on worker {}, under a lease until {}", record->owner,
                            when(record->lease_until, now));
    } else if (record->state == engine::RecordState::kHeld) {
        text += fmt::format(" until somebody answers: sekali held resolve {}", record->job_id);
    } else if (record->not_before > now) {
        text += fmt::format(" and is tried again at {}", when(record->not_before, now));
    }
    return text;
}

std::string handled_kinds(const std::string& queue, const Surroundings& surroundings) {
    std::set<std::string> kinds;
    for (const engine::WorkerRow& worker : surroundings.workers()) {
        const auto& queues = worker.queues;
        if (std::find(queues.begin(), queues.end(), queue) == queues.end()) continue;
        kinds.insert(worker.kinds.begin(), worker.kinds.end());
    }
    return fmt::format("{}", fmt::join(kinds, ", "));
}

/// The last line of an error, which tells most; the timeline has it whole.
std::string in_short(std::string_view error) {
    constexpr std::size_t kShown = 200;
    const std::size_t end = error.find_last_not_of("\r\n ");
    error = error.substr(0, end == std::string_view::npos ? 0 : end + 1);
    const std::size_t line = error.rfind('\n');
    if (line != std::string_view::npos) error.remove_prefix(line + 1);
    return base::printable(base::cut_text(std::string(error), kShown));
}

std::string scheduled_text(const JobRow& row, engine::StoreTime now) {
    const std::string time = when(row.run_at, now);
    if (row.attempts == 0) return fmt::format("is delayed until {}", time);
    return fmt::format("failed at attempt {} and is tried again at {}{}", row.attempts, time,
                       row.error.empty() ? "" : ": " + in_short(row.error));
}

std::string ready_text(const JobRow& row, const Surroundings& surroundings) {
    if (surroundings.is_served(row.job.queue)) {
        return "is ready: a worker takes it when it has a free slot";
    }
    return fmt::format(
        "is ready, and no live worker serves queue {}: start one with "
        "sekali work --queues {}",
        base::quoted(row.job.queue), row.job.queue);
}

/// What the runs of an ended key did, counted.
std::string effect_text(const Facts& facts) {
    const std::size_t starts = facts.runs.size();
    std::string text = "took effect once";
    if (starts > 1) text += fmt::format("; it started {}", times(starts));
    if (facts.jobs.size() > 1)
        text += fmt::format("; it was enqueued {}", times(facts.jobs.size()));
    const auto unknown = static_cast<std::size_t>(
        std::count_if(facts.runs.begin(), facts.runs.end(), ended_unknown));
    const bool outside = facts.record && facts.record->effects == engine::Effects::kOutside;
    if (outside && unknown > 0) {
        text = fmt::format(
            "is recorded as done once, but started {}: what {} of these runs did "
            "outside, before they ended without an answer, nobody recorded, so its "
            "effect may have happened up to {}",
            times(starts), unknown, times(unknown + 1));
    }
    return text;
}

std::string ended_text(const Facts& facts, const JobView& job) {
    const JobRow& row = job.row;
    const std::string why = row.reason.empty() ? "" : ": " + base::printable(row.reason);
    const std::string error = row.error.empty() ? "" : "; " + in_short(row.error);
    switch (row.state) {
        case JobState::kDead:
            return fmt::format("is dead after {} attempts and {} crashes{}{}", row.attempts,
                               row.crashes, why, error);
        case JobState::kCancelled:
            return fmt::format("was cancelled{}{}", why,
                               row.requested_by.empty() ? "" : " by " + row.requested_by);
        default:
            return effect_text(facts);
    }
}

}  // namespace

std::string waiting_text(engine::Tables& tables, const JobView& job, Surroundings& surroundings) {
    const JobRow& row = job.row;
    const engine::StoreTime now = surroundings.now();
    switch (job.state) {
        case JobState::kScheduled:
            return scheduled_text(row, now);
        case JobState::kReady:
            return ready_text(row, surroundings);
        case JobState::kRunning:
            return fmt::format("is running on worker {}, attempt {}, under a lease until {}",
                               row.owner, row.attempts + 1, when(row.lease_until, now));
        case JobState::kHeld:
            return fmt::format(
                "is held ({}) until somebody answers: sekali held resolve {} "
                "--succeeded RESULT | --rerun | --dead",
                base::printable(row.reason), row.job.id);
        case JobState::kWaiting:
            break;
        default:
            return "has ended";
    }
    if (job.waiting_for == "pause") {
        return fmt::format(
            "waits because queue {} is paused, until somebody types: sekali queue "
            "resume {}",
            base::quoted(row.job.queue), row.job.queue);
    }
    if (job.waiting_for == "handler") {
        return fmt::format(
            "waits for a worker that handles {}; the live workers of queue {} "
            "handle {}",
            row.job.kind, base::quoted(row.job.queue), handled_kinds(row.job.queue, surroundings));
    }
    return row.waiting_for == WaitFor::kLock ? behind_lock(tables, row, now)
                                             : behind_key(tables, row, now);
}

std::string verdict_of(engine::Tables& tables, const Facts& facts, Surroundings& surroundings) {
    const std::string name = fmt::format("{} ({}) ", base::printable(facts.subject.key),
                                         base::printable(facts.subject.kind));
    const auto& record = facts.record;
    const bool succeeded = record && record->state == engine::RecordState::kSucceeded;
    const auto live = std::find_if(facts.jobs.begin(), facts.jobs.end(), [](const JobView& job) {
        return !engine::is_final(job.row.state);
    });
    if (succeeded) return name + effect_text(facts) + '.';
    if (live != facts.jobs.end()) return name + waiting_text(tables, *live, surroundings) + '.';
    if (!facts.jobs.empty()) return name + ended_text(facts, facts.jobs.back()) + '.';
    const auto state = record ? engine::to_string(record->state) : "unknown";
    return fmt::format("{}is {}; its jobs are no longer kept.", name, state);
}

}  // namespace sekali::observe
