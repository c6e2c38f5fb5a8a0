#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "observe/explain_facts.hpp"

namespace sekali::observe {

using engine::EventKind;
using engine::EventRow;

namespace {

std::string evidence_of(const EventRow& event) {
    std::string text = fmt::format("{} {}", shown_time(event.at), engine::to_string(event.event));
    if (!event.worker.empty()) text += " worker " + event.worker;
    if (event.epoch != 0) text += fmt::format(" epoch {}", event.epoch);
    if (!event.detail.empty()) text += ": " + event.detail;
    return text;
}

std::string evidence_of(const Run& run) {
    const engine::AttemptRow& row = run.row;
    std::string text = fmt::format("{} start of attempt {}, epoch {}, worker {}",
                                   shown_time(row.started_at), row.attempt, row.epoch, row.worker);
    if (row.finished_at) {
        text += fmt::format("; {} {}", shown_time(*row.finished_at), row.outcome);
        if (!row.error.empty()) text += ": " + row.error;
    }
    return text;
}

using EventTest = std::function<bool(const EventRow&)>;
using RunTest = std::function<bool(const Run&)>;

/// Looks for causes in one key's facts and collects what speaks for them.
class CauseFinder {
 public:
    CauseFinder(engine::Tables& tables, const Facts& facts) : tables_(tables), facts_(facts) {}

    std::vector<Cause> find() {
        find_lost_leases();
        find_crashes();
        find_repeats();
        find_people();
        find_producers();
        return std::move(causes_);
    }

 private:
    void add(std::string cause, std::vector<std::string> evidence, std::string advice) {
        if (evidence.empty()) return;
        causes_.push_back({std::move(cause), std::move(evidence), std::move(advice)});
    }

    std::vector<std::string> events(const EventTest& test) const {
        std::vector<std::string> evidence;
        for (const EventRow& event : facts_.events) {
            if (test(event)) evidence.push_back(evidence_of(event));
        }
        return evidence;
    }
    std::vector<std::string> events(EventKind kind) const {
        return events([kind](const EventRow& event) { return event.event == kind; });
    }

    /// Runs that pass the test and were followed by another start.
    std::vector<std::string> repeated_runs(const RunTest& test) const {
        std::vector<std::string> evidence;
        for (std::size_t i = 0; i + 1 < facts_.runs.size(); ++i) {
            if (test(facts_.runs[i])) evidence.push_back(evidence_of(facts_.runs[i]));
        }
        return evidence;
    }

    void find_lost_leases() {
        add("lost_ack", events(EventKind::kAckLost),
            "nothing: the record answered the second delivery");
        std::vector<std::string> lapsed = events([](const EventRow& event) {
            return event.event == EventKind::kLeaseLost ||
                   (event.event == EventKind::kTakeover &&
                    event.detail.find("lapsed") != std::string::npos);
        });
        add("lease_lapsed", std::move(lapsed),
            "find out what stopped the worker for longer than its lease (a frozen or starved "
            "machine, the store out of reach), or raise --lease above such pauses");
        add("lock_expired", events(EventKind::kLockFenced),
            "its lock was begun by another run before it could commit, so its writes were "
            "refused; raise --lease above the pauses of the worker, and look who broke the lock");
        add("lock_lost", events([](const EventRow& event) {
                return event.event == EventKind::kLockLost ||
                       event.event == EventKind::kLockUnavailable;
            }),
            "look at the lock service and at who broke the lock: sekali locks show NAME");
    }

    void find_crashes() {
        add("worker_crash", events(EventKind::kWorkerCrash),
            "look for what killed the process (memory limit, signal, abort) at these times");
        const bool commits = facts_.record && facts_.record->effects == engine::Effects::kCommit;
        if (commits) return;
        add("crash_before_record", repeated_runs(ended_unknown),
            "what these runs did before they ended is not recorded: write it through ctx.commit, "
            "or make it a step with a key of the outside system and a probe, or choose "
            "--on-unknown hold to be asked before a second run");
    }

    void find_repeats() {
        add("retry_after_error", repeated_runs([](const Run& run) {
                return run.row.outcome == "failed" || run.row.outcome == "timeout";
            }),
            "mend the error, or let the handler say what a retry cannot help (exit 65), and what "
            "applied nothing (exit 75)");
        const bool outside = facts_.record && facts_.record->effects == engine::Effects::kOutside;
        if (!outside) return;
        add("non_atomic_effect", repeated_runs([](const Run& run) {
                return ended_unknown(run) || run.row.outcome == "failed";
            }),
            "effects = outside: each start may have its effect. Move it into ctx.commit (it then "
            "happens once), or into steps (--effects KIND=steps)");
    }

    void find_people() {
        const auto replay = [](std::string_view what) {
            return [what](const EventRow& event) {
                return event.event == EventKind::kReplay && event.detail.starts_with(what);
            };
        };
        add("replay", events(replay("dead letter retried")),
            "somebody retried the dead letter; its key and history were kept");
        std::vector<std::string> asked = events(replay("run now"));
        for (std::string& text : events([](const EventRow& event) {
                 return event.event == EventKind::kResolved && event.detail.starts_with("rerun");
             })) {
            asked.push_back(std::move(text));
        }
        add("manual_retry", std::move(asked), "somebody asked for another run");
    }

    void find_producers() {
        if (facts_.jobs.size() > 1) {
            std::vector<std::string> evidence;
            for (const JobView& job : facts_.jobs) {
                evidence.push_back(fmt::format("{} enqueued as {}, now {}",
                                               shown_time(job.row.enqueued_at), job.row.job.id,
                                               engine::to_string(job.state)));
            }
            add("double_dispatch", std::move(evidence),
                "the producer sent it more than once and the key made one of it; a unique key "
                "(--unique) refuses the second one at once");
        }
        add("unstable_key", twins(),
            "the same payload came under other keys, which makes it other work: build the key from "
            "what identifies the work (sekali::key(\"payment\", order_id)), not from a time, a "
            "random number or the job's id");
        add("lock_key_too_narrow", overlaps(),
            "runs of this key overlapped under different lock keys: build the lock key from what "
            "they share");
    }

    /// Other keys of the kind whose payload is the same.
    std::vector<std::string> twins() const {
        constexpr std::size_t kScanned = 1000;
        constexpr std::size_t kShown = 5;
        if (facts_.jobs.empty()) return {};
        const engine::Envelope& own = facts_.jobs.front().row.job;
        if (own.fingerprint.empty()) return {};
        engine::JobFilter filter;
        filter.ns = own.ns;
        filter.kind = own.kind;
        filter.limit = kScanned;
        std::vector<std::string> evidence;
        for (const engine::JobRow& row : tables_.list_jobs(filter).items) {
            const bool twin = row.job.key != own.key && row.job.fingerprint == own.fingerprint &&
                              row.job.fingerprint_rule == own.fingerprint_rule;
            if (!twin || evidence.size() == kShown) continue;
            evidence.push_back(fmt::format("{} enqueued as {} with key {} and the same payload",
                                           shown_time(row.enqueued_at), row.job.id, row.job.key));
        }
        return evidence;
    }

    std::string lock_key_of(const std::string& job_id) const {
        for (const JobView& job : facts_.jobs) {
            if (job.row.job.id == job_id) return job.row.job.lock_key;
        }
        return "";
    }

    std::vector<std::string> overlaps() const {
        std::vector<std::string> evidence;
        for (std::size_t i = 0; i + 1 < facts_.runs.size(); ++i) {
            const Run& first = facts_.runs[i];
            const Run& second = facts_.runs[i + 1];
            const bool overlap = first.open || (first.row.finished_at &&
                                                *first.row.finished_at > second.row.started_at);
            const std::string one = lock_key_of(first.row.job_id);
            const std::string two = lock_key_of(second.row.job_id);
            if (!overlap || one == two) continue;
            evidence.push_back(fmt::format("{} under lock \"{}\"; {} under lock \"{}\"",
                                           evidence_of(first), one, evidence_of(second), two));
        }
        return evidence;
    }

    engine::Tables& tables_;
    const Facts& facts_;
    std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> causes_of(engine::Tables& tables, const Facts& facts) {
    return CauseFinder(tables, facts).find();
}

}  // namespace sekali::observe
