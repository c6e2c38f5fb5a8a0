#include "simulation/sim_judge.hpp"

#include <algorithm>

namespace sekali::sim {

using engine::Answer;
using engine::Effects;
using engine::JobRow;
using engine::JobState;
using engine::OnUnknown;
using engine::Outcome;
using engine::RecordState;
using engine::Settled;
using engine::StepIntentReply;
using engine::Tables;

void Judge::violation(const std::string& guarantee, const std::string& what) {
    violations_.push_back(guarantee + ": " + what);
}

std::optional<JobRow> Judge::find(Tables& tables, const std::string& job) const {
    auto row = tables.job(job);
    return row ? row : tables.finished_job(job);
}

bool Judge::is_strict(const std::string& kind) const {
    return kinds_.at(kind).policy.on_unknown != OnUnknown::kRerun;
}

void Judge::accepted(const engine::Envelope& job, Millis delay, StoreTime now) {
    const auto [entry, is_new] = jobs_.try_emplace(job.id);
    if (!is_new) return;
    entry->second.job = job;
    entry->second.not_before = now + delay;
    order_.push_back(job.id);
}

void Judge::begun(const engine::Begin& begin, const engine::BeginReply& reply, StoreTime now) {
    const RunRef& ref = begin.run;
    const bool has_record = !ref.record.key.empty();
    if (const auto* ended = std::get_if<engine::Ended>(&reply)) {
        const bool claims_success =
            ended->state == JobState::kSucceeded || ended->state == JobState::kDuplicate;
        if (has_record && claims_success && !key_of(ref).succeeded) {
            violation("G2", ref.job_id + " ended as a success that nobody recorded");
        }
        return;
    }
    const auto* started = std::get_if<engine::Started>(&reply);
    if (started == nullptr) return;
    const Run run = run_of(ref);
    const auto known = runs_.find(run);
    if (known != runs_.end()) {
        // Requests of one that has died may come late and be answered; nobody hears it.
        if (known->second.epoch != started->epoch && !deaths_.contains(ref.worker)) {
            violation("begin",
                      "a repeat by " + ref.worker + " for " + ref.job_id + " got another epoch");
        }
        return;
    }
    runs_[run] = {
        .epoch = started->epoch, .fence = started->fence, .lease_until = now + begin.lease};
    last_run_[ref.job_id] = run;
    JobFacts& facts = jobs_.at(ref.job_id);
    if (const auto death = deaths_.find(ref.worker); death != deaths_.end()) {
        facts.company_at_crash = death->second + 1;  // its request came after its process's death
    }
    if (now < facts.not_before) violation("G10", ref.job_id + " began before its delay");
    if (!ref.lock_key.empty()) {
        std::uint64_t& fence = fences_[ref.lock_key];
        if (started->fence <= fence) violation("G4", "a fence did not grow: " + ref.lock_key);
        fence = std::max(fence, started->fence);
    }
    if (!has_record) return;
    KeyFacts& key = key_of(ref);
    if (started->epoch <= key.epoch) violation("epoch", "it did not grow: " + ref.record.key);
    if (key.succeeded) violation("G3", ref.record.key + " began again after its success");
    if (now < key.not_before) early_.emplace_back(ref.job_id, key.retrying);
    key.epoch = std::max(key.epoch, started->epoch);
    if (key.fingerprint != facts.job.fingerprint) {
        // After an end that is known, another payload is other work under an old name.
        key.fingerprint = facts.job.fingerprint;
        key.recorded_steps.clear();
    }
}

void Judge::settled(const engine::Settle& settle, const Settled& reply, bool effects_ran,
                    StoreTime now) {
    const RunRef& ref = settle.run;
    const bool applied = reply.kind == Settled::Kind::kApplied;
    if (effects_ran && !applied && reply.kind != Settled::Kind::kEffectsFailed) {
        violation("G2", "effects ran for a refused commit of " + ref.job_id);
    }
    if (reply.kind == Settled::Kind::kEffectsFailed) return;
    mark_settled(ref);
    if (!applied && reply.kind != Settled::Kind::kLockFenced) return;
    const bool first = settled_.insert(run_of(ref)).second;
    if (!first) {
        if (effects_ran) violation("G2", "effects of " + ref.job_id + " ran twice");
        return;
    }
    settled_first(settle, reply, effects_ran, now);
}

void Judge::settled_first(const engine::Settle& settle, const Settled& reply, bool effects_ran,
                          StoreTime now) {
    const RunRef& ref = settle.run;
    const Outcome& outcome = settle.outcome;
    const bool fenced = reply.kind == Settled::Kind::kLockFenced;
    JobFacts& facts = jobs_.at(ref.job_id);
    switch (outcome.kind) {
        case Outcome::Kind::kSuccess:
            if (!fenced) succeed(settle, effects_ran);
            break;
        case Outcome::Kind::kRetry:
        case Outcome::Kind::kPermanent:
        case Outcome::Kind::kCancel:
        case Outcome::Kind::kTimeout:
            ++facts.failures;
            break;
        case Outcome::Kind::kCrashed:
            facts.company_at_crash = 1;  // its own child
            break;
        default:
            break;
    }
    if (reply.retry_in) facts.not_before = std::max(facts.not_before, now + *reply.retry_in);
    if (ref.record.key.empty()) return;
    KeyFacts& key = key_of(ref);
    key.not_before = reply.retry_in ? now + *reply.retry_in : StoreTime{};
    key.retrying = ref.job_id;
    const bool answers =
        outcome.kind == Outcome::Kind::kSuccess ? !fenced
        : outcome.kind == Outcome::Kind::kSnooze || outcome.kind == Outcome::Kind::kCancel
            ? true
            : outcome.nothing_applied;
    if (!answers) return;
    if (key.unanswered == ref.epoch) key.unanswered.reset();
    std::erase_if(key.open_steps, [&](const auto& step) { return step.second == ref.epoch; });
}

void Judge::succeed(const engine::Settle& settle, bool effects_ran) {
    const RunRef& ref = settle.run;
    ++jobs_.at(ref.job_id).successes;
    const auto check_fence = [&](const std::string& name, std::uint64_t fence) {
        if (fences_[name] == fence) return;
        violation("G4", ref.job_id + " committed with an old fence of " + name);
    };
    if (ref.fence != 0) check_fence(ref.lock_key, ref.fence);
    for (const auto& lock : settle.extra_locks)
        check_fence(lock.name, lock.fence);
    if (ref.record.key.empty()) return;
    KeyFacts& key = key_of(ref);
    if (ref.epoch != key.epoch) violation("G2", ref.job_id + " committed with an old epoch");
    if (key.succeeded) violation("G2", ref.record.key + " succeeded twice");
    key.succeeded = settle.outcome.result;
    key.succeeded_job = ref.job_id;
    key.by_commit = static_cast<bool>(settle.effects);
    if (key.by_commit != effects_ran) violation("G2", ref.job_id + " lost its effects");
    if (effects_ran) ++key.effects;
}

void Judge::answered(const Answer& answer, const engine::StoreReply& reply) {
    const auto* settled = std::get_if<Settled>(&reply);
    KeyFacts& key = key_of(answer.run);
    if (settled != nullptr) {
        if (settled->kind != Settled::Kind::kApplied) return;
        mark_settled(answer.run);
        const Run run = run_of(answer.run);
        const bool told = answer.kind != Answer::Kind::kCannotTell;
        const bool goes_on = told && settled->state == JobState::kScheduled;
        if (settled->state != JobState::kSucceeded && !goes_on) return;
        if (!settled_.insert(run).second) return;
        if (goes_on) {  // without its lock, so later
            key.unanswered.reset();
            key.open_steps.clear();
            return;
        }
        if (key.succeeded) violation("G3", "an answer met a success of " + answer.run.record.key);
        ++jobs_.at(answer.run.job_id).successes;
        key.succeeded = answer.result;
        key.succeeded_job = answer.run.job_id;
        return;
    }
    if (answer.kind == Answer::Kind::kCannotTell) {
        violation("G6", "a run went on although its probe could not tell");
    }
    key.unanswered.reset();
    key.open_steps.clear();
}

void Judge::renewed(const engine::Renew& renew, const engine::Renewed& reply, StoreTime now) {
    const auto run = runs_.find(run_of(renew.run));
    const bool moved = reply.kept && reply.lock_kept && !renew.look;
    if (moved && run != runs_.end()) run->second.lease_until = now + renew.lease;
}

void Judge::step_intended(const engine::StepIntent& intent, const StepIntentReply& reply) {
    KeyFacts& key = key_of(intent.run);
    if (reply.kind == StepIntentReply::Kind::kUsedTwice) {
        violation("G5", intent.name + " was refused as used twice");
    }
    if (reply.kind != StepIntentReply::Kind::kRun) return;
    if (key.recorded_steps.contains(intent.name)) {
        violation("G5", intent.name + " of " + intent.run.record.key + " may run again");
    }
    const auto open = key.open_steps.find(intent.name);
    const bool left_open = open != key.open_steps.end() && open->second != intent.run.epoch;
    if (left_open && is_strict(intent.run.record.kind) && !intent.probe_said_no) {
        violation("G6", intent.name + " may run again before an answer");
    }
    key.open_steps[intent.name] = intent.run.epoch;
}

void Judge::lock_granted(const engine::LockAcquire& request, std::uint64_t fence) {
    // A late copy of a request may be granted again after the release, as any new one.
    std::uint64_t& granted = grants_[request.token];
    std::uint64_t& highest = fences_[request.name];
    if (fence < highest || (fence == highest && granted != fence)) {
        violation("G4", "a fence did not grow: " + request.name);
    }
    granted = fence;
    highest = std::max(highest, fence);
}

void Judge::lock_broken(const std::string& name, std::uint64_t fence) {
    fences_[name] = std::max(fences_[name], fence);
    breaks_[name] = fence;
}

void Judge::resolved(const JobRow& row, const engine::Resolution& resolution) {
    KeyFacts& key = keys_[key_name(row.job.kind, row.job.key)];
    key.unanswered.reset();
    key.open_steps.clear();
    // Who answers runs it on at once, whatever delay a failure had given it before.
    key.not_before = jobs_.at(row.job.id).not_before = StoreTime{};
    if (resolution.kind == engine::Resolution::Kind::kSucceeded) {
        ++jobs_.at(row.job.id).successes;
    }
    if (row.state == JobState::kSucceeded) key.succeeded = row.result;
}

void Judge::retried_dead(const JobRow& row) {
    JobFacts& facts = jobs_.at(row.job.id);
    facts.ended.reset();
    facts.failures = facts.successes = facts.attempts_seen = 0;
    keys_[key_name(row.job.kind, row.job.key)].not_before = StoreTime{};
}

// ---- rows

void Judge::look(Tables& tables, const std::set<std::string>& jobs) {
    for (const std::string& id : jobs) {
        const auto facts = jobs_.find(id);
        if (facts == jobs_.end()) continue;
        look_at_job(tables, id);
        look_at_record(tables, facts->second.job);
    }
    look_at_slots(tables);
    for (const auto& [job, retrying] : early_) {
        const auto row = find(tables, retrying);
        const bool over = retrying != job && row && is_final(row->state);
        if (!over) violation("G10", job + " began before the retry of " + retrying + " was due");
    }
    early_.clear();
}

void Judge::look_at_job(Tables& tables, const std::string& id) {
    JobFacts& facts = jobs_.at(id);
    const auto row = find(tables, id);
    if (!row) {
        if (!is_queued_(id)) violation("G1", id + " is gone");
        return;
    }
    if (facts.ended && row->state != *facts.ended) {
        violation("G3", id + " left its final state " + std::string(to_string(*facts.ended)));
    }
    const bool convicted = row->state == JobState::kDead && row->reason == "worker_crash";
    if (convicted && !facts.ended && facts.company_at_crash > 1) {
        violation("G7", id + " was convicted although it died in company");
    }
    if (is_final(row->state)) facts.ended = row->state;
    if (row->attempts < facts.attempts_seen) violation("G8", "attempts of " + id + " fell");
    facts.attempts_seen = row->attempts;
    if (row->attempts < facts.failures || row->attempts > facts.failures + facts.successes) {
        violation("G8", id + " has " + std::to_string(row->attempts) + " attempts after " +
                            std::to_string(facts.failures) + " failures and " +
                            std::to_string(facts.successes) + " successes of its own");
    }
    const bool claimed = row->state == JobState::kRunning;
    if (claimed == row->owner.empty() || (!claimed && row->begun)) {
        violation("A08", id + " is half reset");
    }
    if (!facts.job.lock_key.empty()) {
        const auto lock = tables.lock(facts.job.ns, facts.job.lock_key);
        if (lock && lock->fence < fences_[facts.job.lock_key]) violation("G4", "a fence fell");
    }
}

void Judge::look_at_record(Tables& tables, const engine::Envelope& job) {
    if (kinds_.at(job.kind).policy.record == engine::RecordMode::kNone) return;
    KeyFacts& key = keys_[key_name(job.kind, job.key)];
    const auto record = tables.record({job.ns, job.kind, job.key});
    if (!record) return;
    if (record->epoch < key.epoch) violation("epoch", "it fell: " + job.key);
    const bool succeeded = record->state == RecordState::kSucceeded;
    if (key.succeeded && !succeeded) violation("G3", job.key + " is no success any more");
    if (key.succeeded && succeeded && record->result != *key.succeeded) {
        violation("G3", "the result of " + job.key + " changed");
    }
    if (succeeded && !key.succeeded) key.succeeded = record->result;  // a person said so
    for (const auto& step : tables.steps(record->id)) {
        if (!step.done) continue;
        key.recorded_steps.insert(step.name);
        key.open_steps.erase(step.name);
    }
}

void Judge::look_at_slots(Tables& tables) {
    std::set<std::string> held;
    for (const std::string& id : order_) {
        if (jobs_.at(id).job.unique_key.empty()) continue;
        const auto row = tables.job(id);
        if (!row || !row->slot_held) continue;
        if (!held.insert(key_name(row->job.kind, row->job.unique_key)).second) {
            violation("G9", "two live jobs hold the slot " + row->job.unique_key);
        }
    }
}

// ---- processes

/// A handler keeps others out until its end is stored or somebody breaks its lock. A lease that is
/// over excuses it only when it knows: its stop token has fired, or its process is paused and will
/// find out when it wakes.
bool Judge::excludes(const HandlerId& id, const HandlerFacts& facts, StoreTime now) const {
    const RunFacts& run = runs_.at(run_of(facts.ref));
    const auto broken = breaks_.find(facts.ref.lock_key);
    if (facts.settled || (broken != breaks_.end() && run.fence < broken->second)) return false;
    const bool lapsed = run.lease_until <= now;
    return !lapsed || !(facts.told || paused_.contains(id.worker));
}

void Judge::handler_started(const HandlerId& id, const RunRef& ref, StoreTime now) {
    if (!runs_.contains(run_of(ref))) {
        violation("G14", ref.job_id + " started without a durable begin");
    }
    for (const auto& [other, facts] : handlers_) {
        if (!excludes(other, facts, now)) continue;
        if (!ref.lock_key.empty() && facts.ref.lock_key == ref.lock_key) {
            violation("G4", ref.job_id + " runs beside " + facts.ref.job_id + " under one lock");
        }
        const bool same_key = !ref.record.key.empty() && facts.ref.record == ref.record;
        if (same_key) violation("G2", "two handlers of " + ref.record.key + " run at once");
    }
    handlers_[id].ref = ref;
    if (ref.record.key.empty()) return;
    KeyFacts& key = key_of(ref);
    const auto& policy = kinds_.at(ref.record.kind).policy;
    if (policy.effects != Effects::kOutside) return;
    if (key.unanswered && is_strict(ref.record.kind)) {
        violation("G6", ref.record.key + " runs again before an answer");
    }
    key.unanswered = ref.epoch;
}

void Judge::handler_told(const HandlerId& id) {
    const auto found = handlers_.find(id);
    if (found != handlers_.end()) found->second.told = true;
}

void Judge::handler_commits(const HandlerId& id, bool waits) {
    const auto found = handlers_.find(id);
    if (found != handlers_.end()) found->second.committing = waits;
}

void Judge::handler_ended(const HandlerId& id) {
    handlers_.erase(id);
}

void Judge::paused(const std::string& worker, bool is) {
    if (is) {
        paused_.insert(worker);
    } else {
        paused_.erase(worker);
    }
}

void Judge::mark_settled(const RunRef& ref) {
    for (auto& [id, facts] : handlers_) {
        if (facts.ref.worker == ref.worker && facts.ref.job_id == ref.job_id &&
            facts.ref.delivery == ref.delivery) {
            facts.settled = true;
        }
    }
}

void Judge::crashed(const std::string& worker) {
    std::set<std::string> alive;
    for (const auto& [id, facts] : handlers_) {
        // What waits for its commit runs no code of its own.
        if (id.worker == worker && !facts.committing && !facts.settled) {
            alive.insert(facts.ref.job_id);
        }
    }
    deaths_[worker] = alive.size();
    for (const auto& [job, run] : last_run_) {
        // Where its handler ran no code of its own, whatever else ran may be to blame.
        const bool is_here = std::get<0>(run) == worker && !settled_.contains(run);
        if (is_here) jobs_.at(job).company_at_crash = alive.size() + (alive.contains(job) ? 0 : 1);
    }
    std::erase_if(handlers_, [&](const auto& entry) { return entry.first.worker == worker; });
    paused_.erase(worker);
}

std::vector<std::string> Judge::committed() const {
    std::vector<std::string> names;
    for (const auto& [name, key] : keys_) {
        if (key.by_commit) names.push_back(name);
    }
    return names;
}

void Judge::finish(Tables& tables) {
    for (const std::string& id : order_) {
        const auto row = find(tables, id);
        if (!row) {
            violation("G1", id + " is gone");
        } else if (!is_final(row->state)) {
            violation("liveness", id + " (" + row->job.kind + ") is still " +
                                      std::string(to_string(row->state)) + " " + row->reason + " " +
                                      row->waiting_name);
        }
        const auto lock = tables.lock("default", jobs_.at(id).job.lock_key);
        if (lock && !lock->owner.empty() && lock->lease_until > tables.now()) {
            violation("B04", "lock " + lock->name + " is still held by " + lock->owner);
        }
    }
    for (const auto& [name, key] : keys_) {
        if (key.effects > 1) violation("G2", name + " took effect more than once");
        if (key.by_commit && key.effects != 1) violation("G2", name + " lost its effects");
    }
}

}  // namespace sekali::sim
