"""The guards of the protocol, each with a way to take it out and the tests that miss it then."""

from dataclasses import dataclass

SETTLE = "src/engine/ops_settle.cpp"
BEGIN = "src/engine/ops_begin.cpp"
SHARED = "src/engine/ops_shared.cpp"
RECOVER = "src/engine/ops_recover.cpp"
ADMIN = "src/engine/ops_admin.cpp"
CLAIM = "src/engine/ops_claim.cpp"
STEPS = "src/engine/ops_steps.cpp"
LOCKS = "src/engine/ops_locks.cpp"
ENQUEUE = "src/engine/ops_enqueue.cpp"
MACHINE_BEGIN = "src/engine/worker_machine_begin.cpp"
MACHINE_CLAIMS = "src/engine/worker_machine_claims.cpp"
MACHINE_RUNS = "src/engine/worker_machine_runs.cpp"
MACHINE_LEASES = "src/engine/worker_machine_leases.cpp"

SETUP = "src/backends/sqlite/setup.cpp"
EFFECTS = "src/backends/sqlite/effects.cpp"
GROUP = "src/backends/sqlite/group_commit.cpp"
KNOWN = "src/backends/sqlite/known_rows.cpp"
JOBS = "src/backends/sqlite/tables_jobs.cpp"
TIME = "src/backends/sqlite/store_time.cpp"
SQL = "src/backends/sqlite/sql.cpp"

STORE = "store_conformance"
LOCK = "lock_conformance"
ENGINE = "engine_test"


@dataclass(frozen=True)
class Mutation:
    guard: str
    file: str
    text: str  # stands in the file exactly once
    instead: str
    target: str  # the test program that is built; none where the simulator is to find it
    tests: str  # a regular expression for ctest: at least one of these turns red
    simulator: tuple = ()  # what `sekali-sim` is told beside the seeds


MUTATIONS = [
    # ---- who may write the end of a run
    Mutation("epoch check at settle", SETTLE,
             "record_->epoch == run().epoch &&", "true &&",
             STORE, r"SettleConformance\.G2"),
    Mutation("owner check at settle", SETTLE,
             "record_ && record_->owner == run().worker &&", "record_ &&",
             STORE, r"SettleConformance\.(G2|G3|I18)"),
    Mutation("claim check at settle", SETTLE,
             "if (outcome_.kind != Kind::kSuccess && !job_is_mine()) return superseded();", "",
             STORE, r"SettleConformance\.I03"),
    Mutation("delivery check of every claim", SHARED,
             " &&\n           row->deliveries == run.delivery;", ";",
             STORE, r"SettleConformance\.I03"),
    Mutation("fence check at settle", SETTLE,
             "if (run().fence != 0 && !holds(run().lock_key, run().fence)) return false;", "",
             STORE, r"SettleConformance\.(G4|I01|I07)"),
    Mutation("fence check of a handler's own locks", SETTLE,
             "return lock && lock->fence == fence &&", "return lock && fence != 0 &&",
             STORE, r"SettleConformance\.(G4|I01|I07)"),
    Mutation("success is final", SETTLE,
             "if (record_->state == RecordState::kHeld) return superseded();\n    // This very",
             "if (record_->state != RecordState::kProcessing) return std::nullopt;\n"
             "    // This very",
             STORE, r"SettleConformance\.G3"),
    Mutation("a commit under the key that has succeeded", BEGIN,
             "if (record_->state == RecordState::kSucceeded) {", "if (false) {",
             STORE, r"BeginConformance\.(G2|I09)"),

    # ---- what may begin
    Mutation("begin before handler", MACHINE_BEGIN,
             "    if (run.maybe_begun) {\n        retry_later(run.request);",
             "    if (run.maybe_begun) {\n        begun(run, Started{});",
             ENGINE, r"WorkerBegin\."),
    Mutation("a dead worker's late claim begins nothing", CLAIM,
             "if (!request.begin.empty() && owner_is_gone(tables, request.worker)) return {};", "",
             STORE, r"ClaimThatBegins\.G7"),
    Mutation("a claim begins no suspect", CLAIM,
             "if (row.suspect || !row.job.lock_key.empty()) return nullptr;",
             "if (!row.job.lock_key.empty()) return nullptr;",
             STORE, r"ClaimThatBegins\.G7"),
    Mutation("a claim begins nothing that needs a lock", CLAIM,
             "if (row.suspect || !row.job.lock_key.empty()) return nullptr;",
             "if (row.suspect) return nullptr;",
             STORE, r"ClaimThatBegins\.G4"),
    Mutation("a claim that begins looks at the record", BEGIN,
             "(recorded && tables_.record(record_key(row.job)))", "false",
             STORE, r"ClaimThatBegins\."),
    Mutation("a lost claim is asked for again", MACHINE_CLAIMS,
             "if (config_.queue.begins && may_be_applied) claim_is_lost_ = true;",
             "if (config_.queue.begins && may_be_applied) claim_is_lost_ = false;",
             ENGINE, r"WorkerClaimsThatBegin\."),
    Mutation("a claim that is asked for again gets a whole lease", CLAIM,
             "if (!grant_again(tables, request, delivery.row, policy)) continue;",
             "if (false && !grant_again(tables, request, delivery.row, policy)) continue;",
             STORE, r"ClaimThatBegins\.ARepeat"),
    Mutation("a repeated begin is known", BEGIN,
             "record_->delivery == run().delivery && record_->job_id == row_.job.id;",
             "false;",
             STORE, r"BeginConformance\.I08"),
    Mutation("a begin is of the work that was claimed", BEGIN,
             "record_key(row_.job) != record_key(request_.job)", "false",
             STORE, r"BeginConformance\.I08"),
    Mutation("not_before", BEGIN,
             "if (record_->not_before > tables_.now()) {", "if (false) {",
             STORE, r"BeginConformance\.(G10|I11)"),
    Mutation("fingerprint compare", BEGIN,
             "if (other_payload && (!ended || record_->marked)) {",
             "if (false && other_payload && ended) {",
             STORE, r"BeginConformance\."),
    Mutation("a live run is waited for", BEGIN,
             "if (!proven && record_->lease_until > tables_.now()) return wait_for_key();", "",
             STORE, r"BeginConformance\."),
    Mutation("takeover only after a whole lease of answers", BEGIN,
             "if (!proven && !lapse_is_judged(*record_) && !request_.may_take_over) {",
             "if (false) {",
             STORE, r"BeginConformance\."),
    Mutation("an end is known only by its count", BEGIN,
             "if (!own && row_.job.named_end == record_->ends) return judge_mark();",
             "if (!own) return judge_mark();",
             STORE, r"BeginConformance\.I10"),

    # ---- unknown
    Mutation("policy recorded at begin", BEGIN,
             "switch (std::max(record_->on_unknown, request_.policy.on_unknown)) {",
             "switch (request_.policy.on_unknown) {",
             STORE, r"BeginConformance\.(G6|I12)"),
    Mutation("a lost run is marked", SHARED,
             "record.marked = true;\n    record.mark_cause = proven",
             "record.mark_cause = proven",
             STORE, r"(BeginConformance|RecoveryConformance)\.G6"),
    Mutation("a run without an answer is marked", SETTLE,
             "    record_->marked = true;\n", "",
             STORE, r"SettleConformance\.(G6|I14)"),
    Mutation("the mark outlives a cancel", ADMIN,
             "if (held || (record && record->marked && record->on_unknown != OnUnknown::kRerun)) {",
             "if (false) {",
             STORE, r"(SettleConformance|PeopleConformance)\.(I17|Cancel)"),
    Mutation("no probe while the earlier process may act", BEGIN,
             "if (!record_->death_proven && tables_.now() < record_->probe_after) {",
             "if (false) {",
             STORE, r"(BeginConformance|ProbeConformance|RecoveryConformance)\."),
    Mutation("an answer needs its claim", SETTLE,
             "const bool mine = claim_is_mine(row, request.run) && record &&",
             "const bool mine = record &&",
             STORE, r"ProbeConformance\."),
    Mutation("no whole answer where rows would be missing", ADMIN,
             "if (record->whole_answer && tables.steps(record->id).empty()) return;", "return;",
             STORE, r"PeopleConformance\.I16"),

    # ---- steps
    Mutation("a step's intent before it runs", STEPS,
             "    step.call = request.call;\n    tables.put_step(step);\n",
             "    step.call = request.call;\n",
             STORE, r"StepsConformance\."),
    Mutation("a recorded step never runs again", STEPS,
             "if (step.done) return reply_of(StepIntentReply::Kind::kDone, step.result);", "",
             STORE, r"StepsConformance\.G5"),
    Mutation("a step's name once in a run", STEPS,
             "if (known && step.epoch == request.run.epoch && !repeated) {", "if (false) {",
             STORE, r"StepsConformance\.I29"),
    Mutation("a step belongs to the present run", STEPS,
             "record->epoch != run.epoch || record->delivery", "record->delivery",
             STORE, r"StepsConformance\."),

    # ---- leases, locks, recovery
    Mutation("lease renewal guarded by its owner", CLAIM,
             "    if (!claim_is_mine(row, run)) return reply;\n    const StoreTime until",
             "    if (!row) return reply;\n    const StoreTime until",
             STORE, r"SettleConformance\.I03"),
    Mutation("a begun claim is not given back", CLAIM,
             "if (!claim_is_mine(row, request.run) || row->begun) return;",
             "if (!claim_is_mine(row, request.run)) return;",
             STORE, r"SettleConformance\.G6_WhatHasBegun"),
    Mutation("a live lock is respected", BEGIN,
             "if (lock_is_live(tables_, *lock_)) return lock_busy();", "",
             STORE, r"(LinesConformance|SettleConformance)\."),
    Mutation("no handler behind an answer whose lock is gone", SETTLE,
             "if (has_its_lock(tables, request.run)) return std::nullopt;",
             "if (has_its_lock(tables, request.run) || true) return std::nullopt;",
             STORE, r"ProbeConformance\.G4"),
    Mutation("a begin moves the lease of its claim", BEGIN,
             "    row_.lease_until = record_->lease_until;\n", "",
             STORE, r"LinesConformance\.I21"),
    Mutation("each grant raises the fence", BEGIN,
             "        ++lock_->fence;\n", "",
             STORE, r"(LinesConformance|SettleConformance)\."),
    Mutation("lock released only by its fence", SHARED,
             "if (!lock || lock->owner != run.worker || lock->fence != run.fence) return;",
             "if (!lock) return;",
             STORE, r"(LinesConformance|SettleConformance)\."),
    Mutation("lock client releases only its own", LOCKS,
             "    if (!lock || lock->token != request.token) {\n"
             "        reply.kind = LockReply::Kind::kLost;\n        return reply;\n    }\n"
             "    lock->owner.clear();",
             "    if (!lock) return reply;\n    lock->owner.clear();",
             LOCK, r"LockConformance\."),
    Mutation("recovery takes only the record of its own claim", RECOVER,
             "            record_.reset();\n", "",
             STORE, r"RecoveryConformance\."),
    Mutation("recovery judges only after a whole lease of answers", RECOVER,
             "if (!proven && !request.may_take_over) continue;", "",
             STORE, r"RecoveryConformance\."),
    Mutation("a lost lease stops its handler", MACHINE_LEASES,
             "            ask_stop(run, reason);\n", "",
             ENGINE, r"WorkerLeases\."),

    # ---- poison, attempts
    Mutation("company is not convicted", RECOVER,
             "company_at_death(tables_, row_.job.ns, owner) <= 1;",
             "company_at_death(tables_, row_.job.ns, owner) != 0;",
             STORE, r"RecoveryConformance\.G7"),
    Mutation("suspect runs alone", MACHINE_CLAIMS,
             "if (solo_ != 0 || active() > 0 || claim_is_lost_) return;",
             "if (solo_ != 0) return;",
             ENGINE, r"WorkerSuspects\."),
    Mutation("a hand-back uses no attempt", SETTLE,
             "        case Kind::kInterrupted:\n            ++row_->interruptions;",
             "        case Kind::kInterrupted:\n            ++row_->attempts;",
             STORE, r"SettleConformance\.G8"),
    Mutation("the retry limit", SETTLE,
             "if (row_->attempts >= retry.max_attempts) return end(JobState::kDead,"
             " \"attempts_exhausted\");", "",
             STORE, r"SettleConformance\.G10"),
    Mutation("interruptions are bounded", SETTLE,
             "if (row_->interruptions >= kMaxInterruptions) return hold(\"interruptions\");", "",
             STORE, r"SettleConformance\.(I04|I34|G8)"),
    Mutation("a dead worker takes no crash back", SETTLE,
             "if (!may_be_charged || owner_is_gone(tables_, run().worker)) return false;",
             "if (!may_be_charged) return false;",
             STORE, r"RecoveryConformance\.I22"),

    # ---- unique slots, retention
    Mutation("a unique slot has one holder, who alone frees it", ENQUEUE,
             "if (holder && request.on_duplicate == OnDuplicate::kKeep) {", "if (false) {",
             STORE, r"UniqueConformance\."),
    Mutation("a replay takes the slot or is refused", ADMIN,
             "        if (holder) {\n            AdminReply reply",
             "        if (false) {\n            AdminReply reply",
             STORE, r"UniqueConformance\.I32"),
    Mutation("a record is kept while a live or dead job uses it", ADMIN,
             "if (tables.has_live_or_dead_job(record.id)) continue;", "",
             STORE, r"RetentionConformance\."),
    Mutation("an end wakes who waits for the key", SETTLE,
             "    wake_for_key(tables_, record_key(request_.job));\n    reply.state",
             "    reply.state",
             STORE, r"(LinesConformance|BeginConformance|SettleConformance)\."),

    # ---- what SQLite keeps, also through power cuts
    Mutation("an answered commit is on the disk", SETUP,
             '? "PRAGMA synchronous = FULL"', '? "PRAGMA synchronous = NORMAL"',
             "", "", ("--sqlite",)),
    Mutation("effects that failed are undone", EFFECTS,
             "        Query(statements_, Sql::kSavepointRollBack).run();\n", "",
             "", "", ("--sqlite",)),
    Mutation("known rows are forgotten when a group is undone", GROUP,
             "    tables_.rolled_back();\n", "",
             "", "", ("--sqlite",)),
    Mutation("known rows follow their changes", KNOWN,
             "    std::apply([&](const auto&... field) { (assign(field), ...); },"
             " kJobChangingFields);", "    static_cast<void>(assign);",
             "", "", ("--sqlite",)),
    Mutation("a finished job is no live one", JOBS,
             "    known_.forget_job(row.job.id);\n    not_finished_.clear();",
             "    not_finished_.clear();",
             "", "", ("--sqlite",)),
    Mutation("who waits is known to wait", JOBS,
             "    known_.change(row);\n    note_wait(row);", "    known_.change(row);",
             "", "", ("--sqlite",)),
    Mutation("a boot starts above all times that were stored", TIME,
             "std::max(StoreTime{Millis{hooks_.wall_ms()}}, bound_)",
             "StoreTime{Millis{hooks_.wall_ms()}}",
             "", "", ("--sqlite",)),
    Mutation("a delayed job is promoted when it is due", SQL,
             "state = 0 AND run_at <= ?2 ORDER BY run_at LIMIT ?3",
             "state = 0 AND run_at <= ?2 + 2000 ORDER BY run_at LIMIT ?3",
             "", "", ("--sqlite",)),
    Mutation("a lock row keeps its fence", SQL,
             '"(owner, token, job_id, fence, lease_until, reserved_for, reserved_until) = "\n'
             '        "(?3, ?4, ?5, ?6, ?7, ?8, ?9)"',
             '"(owner, token, job_id, lease_until, reserved_for, reserved_until) = "\n'
             '        "(?3, ?4, ?5, ?7, ?8, ?9)"',
             "", "", ("--sqlite",)),
    Mutation("a step keeps its answer", SQL,
             '"(epoch, call, place, done, result) = (?5, ?6, ?7, ?8, ?9)"',
             '"(epoch, call, place, result) = (?5, ?6, ?7, ?9)"',
             "", "", ("--sqlite",)),
]
