#include <limits>
#include <set>

#include "conformance/scene.hpp"

// What a store must do with rows, below the protocol (engine/tables.hpp).
namespace sekali::conformance {
namespace {

using engine::AttemptRow;
using engine::EventRow;
using engine::OwnerFate;
using engine::StepRow;
using engine::WorkerRow;

class TablesConformance : public Scene {
 protected:
    static JobRow row_of(const std::string& id) {
        JobRow row;
        row.job.id = row.job.key = id;
        row.job.kind = "charge";
        row.job.payload = "payload of " + id;
        return row;
    }
    void insert(JobRow row) {
        tx([row](Tables& tables) {
            JobRow inserted = row;
            ASSERT_TRUE(tables.insert_job(inserted));
        });
    }
    void insert(const std::string& id) { insert(row_of(id)); }
    void update(const std::string& id, const std::function<void(JobRow&, Tables&)>& change) {
        tx([&](Tables& tables) {
            JobRow row = *tables.job(id);
            change(row, tables);
            tables.update_job(row);
        });
    }
    void finish(const std::string& id, JobState end) {
        tx([&](Tables& tables) {
            JobRow row = *tables.job(id);
            row.state = end;
            row.finished_at = tables.now();
            tables.finish_job(row);
        });
    }
    static engine::ClaimSpec spec(std::size_t limit = 100) {
        return {.ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = limit};
    }
    std::vector<std::string> claimable(const engine::ClaimSpec& what) {
        return tx([what](Tables& tables) {
            std::vector<std::string> ids;
            for (const JobRow& row : tables.claimable(what))
                ids.push_back(row.job.id);
            return ids;
        });
    }
    static RecordRow record_of(const std::string& key, RecordState state) {
        RecordRow row;
        row.id = {"default", "charge", key};
        row.state = state;
        row.epoch = 1;
        return row;
    }
    void put_record(const RecordRow& row) {
        tx([row](Tables& tables) { tables.put_record(row); });
    }
};

/// A row in which every field differs from its default.
JobRow full_row(StoreTime at) {
    JobRow row;
    row.job.id = "full";
    row.job.ns = "tenant";
    row.job.kind = "mail";
    row.job.queue = "other";
    row.job.payload = "{\"a\":\"\u00e9\\u0000\"}";
    row.job.key = "key '; DROP";
    row.job.lock_key = "lock \u200b";
    row.job.unique_key = "unique %s";
    row.job.unique_until = UniqueUntil::kStart;
    row.job.priority = 7;
    row.job.retry.base = 1s;
    row.job.retry.factor = 1.5;
    row.job.retry.cap = 2min;
    row.job.retry.jitter = 0.125;
    row.job.retry.max_attempts = std::numeric_limits<std::int64_t>::max();
    row.job.retry.max_age = 3h;
    row.job.fingerprint = std::string(64, 'f');
    row.job.fingerprint_rule = "fields:/a";
    row.job.named_end = 3;
    row.state = JobState::kWaiting;
    row.waiting_for = WaitFor::kLock;
    row.waiting_name = "lock \u200b";
    row.enqueued_at = at;
    row.run_at = at + 1ms;
    row.attempts = 1;
    row.crashes = 2;
    row.interruptions = 3;
    row.deliveries = 4;
    row.lost_claims = 5;
    row.owner = "worker";
    row.lease_until = at + 2ms;
    row.begun = true;
    row.suspect = true;
    row.slot_held = true;
    row.cancel_requested = true;
    row.requested_by = "operator";
    row.epoch = 6;
    row.result = "result \u00e9";
    row.error = "error\nline";
    row.reason = "reason";
    return row;
}

void expect_same(const JobRow& a, const JobRow& b) {
    EXPECT_EQ(a.job.id, b.job.id);
    EXPECT_EQ(a.job.ns, b.job.ns);
    EXPECT_EQ(a.job.kind, b.job.kind);
    EXPECT_EQ(a.job.queue, b.job.queue);
    EXPECT_EQ(a.job.key, b.job.key);
    EXPECT_EQ(a.job.lock_key, b.job.lock_key);
    EXPECT_EQ(a.job.unique_key, b.job.unique_key);
    EXPECT_EQ(a.job.unique_until, b.job.unique_until);
    EXPECT_EQ(a.job.priority, b.job.priority);
    EXPECT_EQ(a.job.retry.base, b.job.retry.base);
    EXPECT_EQ(a.job.retry.factor, b.job.retry.factor);
    EXPECT_EQ(a.job.retry.cap, b.job.retry.cap);
    EXPECT_EQ(a.job.retry.jitter, b.job.retry.jitter);
    EXPECT_EQ(a.job.retry.max_attempts, b.job.retry.max_attempts);
    EXPECT_EQ(a.job.retry.max_age, b.job.retry.max_age);
    EXPECT_EQ(a.job.fingerprint, b.job.fingerprint);
    EXPECT_EQ(a.job.fingerprint_rule, b.job.fingerprint_rule);
    EXPECT_EQ(a.job.named_end, b.job.named_end);
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.waiting_for, b.waiting_for);
    EXPECT_EQ(a.waiting_name, b.waiting_name);
    EXPECT_EQ(a.enqueued_at, b.enqueued_at);
    EXPECT_EQ(a.run_at, b.run_at);
    EXPECT_EQ(a.finished_at, b.finished_at);
    EXPECT_EQ(a.attempts, b.attempts);
    EXPECT_EQ(a.crashes, b.crashes);
    EXPECT_EQ(a.interruptions, b.interruptions);
    EXPECT_EQ(a.deliveries, b.deliveries);
    EXPECT_EQ(a.lost_claims, b.lost_claims);
    EXPECT_EQ(a.owner, b.owner);
    EXPECT_EQ(a.lease_until, b.lease_until);
    EXPECT_EQ(a.begun, b.begun);
    EXPECT_EQ(a.suspect, b.suspect);
    EXPECT_EQ(a.slot_held, b.slot_held);
    EXPECT_EQ(a.cancel_requested, b.cancel_requested);
    EXPECT_EQ(a.requested_by, b.requested_by);
    EXPECT_EQ(a.epoch, b.epoch);
    EXPECT_EQ(a.result, b.result);
    EXPECT_EQ(a.error, b.error);
    EXPECT_EQ(a.reason, b.reason);
}

// ---- jobs
// ------------------------------------------------------------------------------------------

TEST_P(TablesConformance, AJobRowKeepsEveryField) {
    const JobRow row = full_row(now());
    insert(row);
    const JobRow read = *tx([](Tables& tables) { return tables.job("full"); });
    expect_same(read, row);
    EXPECT_EQ(read.job.payload, "") << "rows are read without their payload";
    EXPECT_EQ(tx([](Tables& tables) { return tables.payload("full"); }), row.job.payload);
}

TEST_P(TablesConformance, AnUpdateWritesEveryFieldThatMoves) {
    const JobRow frozen = full_row(now());
    JobRow plain;
    plain.job = frozen.job;
    plain.enqueued_at = frozen.enqueued_at;
    insert(plain);
    update("full", [&](JobRow& row, Tables&) {
        const std::int64_t seq = row.seq;
        row = frozen;
        row.seq = seq;
        row.job.payload.clear();
    });
    expect_same(job("full"), frozen);
    EXPECT_EQ(tx([](Tables& tables) { return tables.payload("full"); }), frozen.job.payload)
        << "an update leaves the payload alone";
}

TEST_P(TablesConformance, AFinalRowKeepsEveryField) {
    JobRow row = full_row(now());
    insert(row);
    row.state = JobState::kDead;
    row.finished_at = now();
    row.slot_held = false;
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    tx([row](Tables& tables) {
        JobRow end = row;
        end.seq = tables.job("full")->seq;
        tables.finish_job(end);
    });
    EXPECT_FALSE(tx([](Tables& tables) { return tables.job("full"); }));
    expect_same(*tx([](Tables& tables) { return tables.finished_job("full"); }), row);
}

TEST_P(TablesConformance, SeqIsTheOrderOfArrival) {
    std::int64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        tx([&](Tables& tables) {
            JobRow row = row_of("j" + std::to_string(i));
            tables.insert_job(row);
            EXPECT_GT(row.seq, last);
            last = row.seq;
        });
    }
}

TEST_P(TablesConformance, AnIdIsGivenOnce) {
    insert("j1");
    const auto insert_again = [&] {
        return tx([](Tables& tables) {
            JobRow row = row_of("j1");
            return tables.insert_job(row);
        });
    };
    EXPECT_FALSE(insert_again());
    finish("j1", JobState::kSucceeded);
    EXPECT_FALSE(insert_again()) << "final ids are taken too";
    EXPECT_THROW(tx([](Tables& tables) { tables.insert_finished(row_of("j1")); }), Failure);
}

TEST_P(TablesConformance, AReadSeesTheWritesBeforeIt) {
    tx([](Tables& tables) {
        JobRow row = row_of("j1");
        tables.insert_job(row);
        EXPECT_TRUE(tables.job("j1"));
        EXPECT_EQ(tables.claimable(spec()).size(), 1U);
        row.state = JobState::kRunning;
        row.owner = "A";
        row.begun = true;
        tables.update_job(row);
        EXPECT_TRUE(tables.claimable(spec()).empty());
        EXPECT_EQ(tables.count_begun("A"), 1U);
        EXPECT_TRUE(tables.has_jobs_of("A"));
        row.state = JobState::kDead;
        row.finished_at = tables.now();
        tables.finish_job(row);
        EXPECT_FALSE(tables.job("j1"));
        EXPECT_TRUE(tables.finished_job("j1"));
        EXPECT_EQ(tables.count_begun("A"), 0U);
    });
}

TEST_P(TablesConformance, AWriteToNoRowIsAnError) {
    EXPECT_THROW(tx([](Tables& tables) { tables.update_job(row_of("nobody")); }), Failure);
    EXPECT_THROW(tx([](Tables& tables) { tables.finish_job(row_of("nobody")); }), Failure);
    EXPECT_THROW(tx([](Tables& tables) { tables.revive_job(row_of("nobody")); }), Failure);
    EXPECT_THROW(tx([](Tables& tables) { tables.erase_finished("nobody"); }), Failure);
}

TEST_P(TablesConformance, AThrowingTransactionLeavesNothing) {
    insert("j1");
    EXPECT_THROW(tx([](Tables& tables) {
                     JobRow row = row_of("j2");
                     tables.insert_job(row);
                     row = *tables.job("j1");
                     row.state = JobState::kDead;
                     tables.finish_job(row);
                     tables.put_record(record_of("k", RecordState::kProcessing));
                     throw Failure({.code = ErrorCode::kRefused, .message = "no"});
                 }),
                 Failure);
    EXPECT_FALSE(find_job("j2"));
    EXPECT_EQ(state("j1"), JobState::kReady);
    EXPECT_FALSE(find_record("k"));
}

TEST_P(TablesConformance, PayloadsAreKeptForWhatMayBeRetried) {
    for (const JobState end :
         {JobState::kDead, JobState::kCancelled, JobState::kSucceeded, JobState::kDuplicate}) {
        const std::string id = "j" + std::to_string(static_cast<int>(end));
        insert(id);
        finish(id, end);
        const bool kept = end == JobState::kDead || end == JobState::kCancelled;
        EXPECT_EQ(tx([&](Tables& tables) { return tables.payload(id); }),
                  kept ? "payload of " + id : "");
    }
}

TEST_P(TablesConformance, ARevivedRowIsLiveWithItsPayloadAndPlace) {
    insert("j1");
    insert("j2");
    const std::int64_t seq = job("j1").seq;
    finish("j1", JobState::kDead);
    tx([](Tables& tables) {
        JobRow row = *tables.finished_job("j1");
        row.state = JobState::kReady;
        row.finished_at.reset();
        row.job.named_end = 4;
        tables.revive_job(row);
    });
    EXPECT_FALSE(tx([](Tables& tables) { return tables.finished_job("j1"); }));
    EXPECT_EQ(job("j1").seq, seq);
    EXPECT_EQ(job("j1").job.named_end, 4U);
    EXPECT_EQ(tx([](Tables& tables) { return tables.claimable(spec())[0].job.payload; }),
              "payload of j1");
}

TEST_P(TablesConformance, AnErasedFinalRowIsForgotten) {
    insert("j1");
    finish("j1", JobState::kDead);
    tx([](Tables& tables) { tables.erase_finished("j1"); });
    EXPECT_FALSE(find_job("j1"));
    EXPECT_EQ(tx([](Tables& tables) { return tables.payload("j1"); }), "");
    insert("j1");
}

TEST_P(TablesConformance, AFinalRowWithoutALiveOneIsFound) {
    tx([](Tables& tables) {
        JobRow row = row_of("j1");
        row.state = JobState::kDuplicate;
        row.finished_at = tables.now();
        tables.insert_finished(row);
    });
    EXPECT_EQ(state("j1"), JobState::kDuplicate);
    EXPECT_EQ(
        tx([](Tables& tables) { return tables.jobs_of_key("default", "charge", "j1"); }).size(),
        1U);
}

TEST_P(TablesConformance, ClaimableIsInClaimOrderOverQueuesAndKinds) {
    struct Made {
        const char* id;
        const char* queue;
        const char* kind;
        std::int32_t priority;
    };
    for (const Made& made : {Made{"a", "default", "charge", 0}, Made{"b", "other", "mail", 5},
                             Made{"c", "default", "mail", 5}, Made{"d", "other", "charge", 9},
                             Made{"e", "default", "charge", 0}, Made{"f", "third", "charge", 9},
                             Made{"g", "default", "none", 9}}) {
        JobRow row = row_of(made.id);
        row.job.queue = made.queue;
        row.job.kind = made.kind;
        row.job.priority = made.priority;
        insert(row);
    }
    engine::ClaimSpec both{
        .ns = "default", .queues = {"other", "default"}, .kinds = {"mail", "charge"}, .limit = 100};
    EXPECT_EQ(claimable(both), (std::vector<std::string>{"d", "b", "c", "a", "e"}));
    both.limit = 3;
    EXPECT_EQ(claimable(both), (std::vector<std::string>{"d", "b", "c"}));
    both.limit = 0;
    EXPECT_TRUE(claimable(both).empty());
    both = {.ns = "default", .queues = {}, .kinds = {"charge"}, .limit = 9};
    EXPECT_TRUE(claimable(both).empty());
    both = {.ns = "default", .queues = {"default", "default"}, .kinds = {"charge"}, .limit = 9};
    EXPECT_EQ(claimable(both), (std::vector<std::string>{"a", "e"})) << "a queue named twice";
}

TEST_P(TablesConformance, DueJobsArePromotedInTheOrderOfTheirTime) {
    for (const auto& [id, delay] :
         {std::pair{"late", 30s}, std::pair{"soon", 10s}, std::pair{"middle", 20s}}) {
        JobRow row = row_of(id);
        row.state = JobState::kScheduled;
        row.run_at = now() + delay;
        insert(row);
    }
    const auto promote = [&](std::size_t limit) {
        return tx([limit](Tables& tables) { return tables.promote_due("default", limit); });
    };
    EXPECT_EQ(promote(100), 0U);
    EXPECT_EQ(tx([](Tables& tables) { return *tables.next_run_at(spec()) - tables.now(); }), 10s);
    advance(20s);
    EXPECT_EQ(promote(1), 1U);
    EXPECT_EQ(state("soon"), JobState::kReady);
    EXPECT_EQ(state("middle"), JobState::kScheduled);
    EXPECT_EQ(promote(100), 1U);
    advance(1h);
    EXPECT_EQ(promote(100), 1U);
    EXPECT_FALSE(tx([](Tables& tables) { return tables.next_run_at(spec()); }));
}

TEST_P(TablesConformance, LapsedJobsAreRunningOnesOfTheGivenKindsBehindASeq) {
    kill("dead");
    for (const auto& [id, owner, lease_of] :
         {std::tuple{"lapsed", "A", 0s}, std::tuple{"live", "A", 10s},
          std::tuple{"of_the_dead", "dead", 10s}}) {
        JobRow row = row_of(id);
        row.state = JobState::kRunning;
        row.owner = owner;
        row.lease_until = now() + lease_of;
        insert(row);
    }
    JobRow other = row_of("other_kind");
    other.job.kind = "mail";
    other.state = JobState::kRunning;
    insert(other);
    const auto lapsed = [&](std::int64_t after, std::size_t limit) {
        return tx([=](Tables& tables) {
            std::vector<std::string> ids;
            for (const JobRow& row : tables.lapsed_jobs("default", {"charge"}, after, limit)) {
                ids.push_back(row.job.id);
            }
            return ids;
        });
    };
    EXPECT_EQ(lapsed(0, 10), (std::vector<std::string>{"lapsed", "of_the_dead"}));
    EXPECT_EQ(lapsed(0, 1), (std::vector<std::string>{"lapsed"}));
    EXPECT_EQ(lapsed(job("lapsed").seq, 10), (std::vector<std::string>{"of_the_dead"}));
    advance(10s);
    EXPECT_EQ(lapsed(0, 10).size(), 3U);
}

TEST_P(TablesConformance, OneLiveRowHoldsASlot) {
    JobRow row = row_of("j1");
    row.job.unique_key = "u";
    row.slot_held = true;
    insert(row);
    const auto holder = [&] {
        return tx([](Tables& tables) { return tables.unique_holder("default", "charge", "u"); });
    };
    ASSERT_TRUE(holder());
    EXPECT_EQ(holder()->job.id, "j1");
    row = row_of("j2");
    row.job.unique_key = "u";
    row.slot_held = true;
    EXPECT_THROW(insert(row), Failure) << "the store itself keeps the slot";
    finish("j1", JobState::kSucceeded);
    EXPECT_FALSE(holder());
    insert(row);
    EXPECT_EQ(holder()->job.id, "j2");
}

TEST_P(TablesConformance, ALineIsOrderedByPriorityThenArrival) {
    for (const auto& [id, priority] : {std::pair{"a", 0}, std::pair{"b", 5}, std::pair{"c", 5}}) {
        JobRow row = row_of(id);
        row.job.priority = priority;
        row.state = JobState::kWaiting;
        row.waiting_for = WaitFor::kLock;
        row.waiting_name = "l";
        insert(row);
    }
    const auto first = [&](WaitFor wait, const std::string& kind) {
        return tx([=](Tables& tables) {
            const auto row = tables.first_waiting("default", wait, kind, "l");
            return row ? row->job.id : std::string{};
        });
    };
    EXPECT_EQ(first(WaitFor::kLock, ""), "b");
    EXPECT_EQ(first(WaitFor::kKey, "charge"), "");
    finish("b", JobState::kCancelled);
    EXPECT_EQ(first(WaitFor::kLock, ""), "c");
    update("a", [](JobRow& row, Tables&) { row.waiting_for = WaitFor::kKey; });
    EXPECT_EQ(first(WaitFor::kKey, "charge"), "a");
    EXPECT_EQ(first(WaitFor::kKey, "mail"), "") << "a key belongs to a kind";
}

TEST_P(TablesConformance, JobsOfAKey) {
    for (const char* id : {"j1", "j2", "j3"}) {
        JobRow row = row_of(id);
        row.job.key = "k";
        insert(row);
    }
    const RecordKey key{"default", "charge", "k"};
    const auto live_or_dead = [&] {
        return tx([&](Tables& tables) { return tables.has_live_or_dead_job(key); });
    };
    const auto live = [&] {
        return tx([&](Tables& tables) {
            const auto row = tables.live_job_of_key(key);
            return row ? row->job.id : std::string{};
        });
    };
    EXPECT_EQ(live(), "j1");
    update("j1", [](JobRow& row, Tables&) {
        row.state = JobState::kWaiting;
        row.waiting_for = WaitFor::kKey;
        row.waiting_name = "k";
    });
    EXPECT_EQ(live(), "j2") << "one that does not wait comes first";
    finish("j2", JobState::kSucceeded);
    finish("j3", JobState::kDuplicate);
    EXPECT_EQ(live(), "j1");
    EXPECT_TRUE(live_or_dead());
    finish("j1", JobState::kDead);
    EXPECT_EQ(live(), "");
    EXPECT_TRUE(live_or_dead());
    tx([](Tables& tables) { tables.erase_finished("j1"); });
    EXPECT_FALSE(live_or_dead());
    const auto all =
        tx([](Tables& tables) { return tables.jobs_of_key("default", "charge", "k"); });
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].job.id, "j2");
    EXPECT_EQ(all[1].job.id, "j3");
}

TEST_P(TablesConformance, ListsAreFilteredAndContinued) {
    for (int i = 0; i < 7; ++i) {
        JobRow row = row_of("j" + std::to_string(i));
        row.job.kind = i % 2 == 0 ? "charge" : "mail";
        insert(row);
    }
    finish("j2", JobState::kDead);
    engine::JobFilter filter;
    filter.ns = "default";
    const auto list = [&] {
        std::vector<std::string> ids;
        engine::JobFilter page_filter = filter;
        for (int pages = 0; pages < 20; ++pages) {
            const auto page =
                tx([page_filter](Tables& tables) { return tables.list_jobs(page_filter); });
            EXPECT_LE(page.items.size(), filter.limit);
            for (const JobRow& row : page.items)
                ids.push_back(row.job.id);
            if (page.next.empty()) break;
            page_filter.after = page.next;
        }
        return ids;
    };
    const std::vector<std::string> all{"j0", "j1", "j2", "j3", "j4", "j5", "j6"};
    EXPECT_EQ(list(), all);
    filter.limit = 3;
    EXPECT_EQ(list(), all);
    filter.limit = 7;
    EXPECT_EQ(list(), all);
    filter.kind = "charge";
    filter.limit = 1;
    EXPECT_EQ(list(), (std::vector<std::string>{"j0", "j2", "j4", "j6"}));
    filter.state = "dead";
    EXPECT_EQ(list(), (std::vector<std::string>{"j2"}));
    filter.kind.reset();
    filter.state.reset();
    filter.key = "j5";
    EXPECT_EQ(list(), (std::vector<std::string>{"j5"}));
    filter.queue = "other";
    EXPECT_TRUE(list().empty());
    filter = {};
    filter.ns = "tenant";
    EXPECT_TRUE(list().empty());
    filter.ns = "default";
    filter.after = "not one of ours";
    EXPECT_THROW(tx([filter](Tables& tables) { return tables.list_jobs(filter); }), Failure);
}

// ---- records, steps, locks
// -------------------------------------------------------------------------

TEST_P(TablesConformance, ARecordKeepsEveryField) {
    RecordRow row;
    row.id = {"tenant", "mail", "k\u00e9"};
    row.state = RecordState::kHeld;
    row.job_id = "j1";
    row.epoch = 3;
    row.owner = "A";
    row.delivery = 4;
    row.lease_until = now() + 1ms;
    row.fingerprint = "f";
    row.fingerprint_rule = "payload";
    row.not_before = now() + 2ms;
    row.effects = Effects::kSteps;
    row.on_unknown = OnUnknown::kProbe;
    row.marked = true;
    row.mark_cause = "worker_crash";
    row.probing = true;
    row.death_proven = true;
    row.probe_after = now() + 3ms;
    row.ends = 5;
    row.lock_key = "l";
    row.fence = 6;
    row.attempt = 7;
    row.started_at = now() + 4ms;
    row.finished_at = now() + 5ms;
    row.result = "r";
    row.keep = 6s;
    row.whole_answer = true;
    put_record(row);
    const RecordRow read = *tx([&](Tables& tables) { return tables.record(row.id); });
    EXPECT_EQ(read.id, row.id);
    EXPECT_EQ(read.state, row.state);
    EXPECT_EQ(read.job_id, row.job_id);
    EXPECT_EQ(read.epoch, row.epoch);
    EXPECT_EQ(read.owner, row.owner);
    EXPECT_EQ(read.delivery, row.delivery);
    EXPECT_EQ(read.lease_until, row.lease_until);
    EXPECT_EQ(read.fingerprint, row.fingerprint);
    EXPECT_EQ(read.fingerprint_rule, row.fingerprint_rule);
    EXPECT_EQ(read.not_before, row.not_before);
    EXPECT_EQ(read.effects, row.effects);
    EXPECT_EQ(read.on_unknown, row.on_unknown);
    EXPECT_EQ(read.marked, row.marked);
    EXPECT_EQ(read.mark_cause, row.mark_cause);
    EXPECT_EQ(read.probing, row.probing);
    EXPECT_EQ(read.death_proven, row.death_proven);
    EXPECT_EQ(read.probe_after, row.probe_after);
    EXPECT_EQ(read.ends, row.ends);
    EXPECT_EQ(read.lock_key, row.lock_key);
    EXPECT_EQ(read.fence, row.fence);
    EXPECT_EQ(read.attempt, row.attempt);
    EXPECT_EQ(read.started_at, row.started_at);
    EXPECT_EQ(read.finished_at, row.finished_at);
    EXPECT_EQ(read.result, row.result);
    EXPECT_EQ(read.keep, row.keep);
    EXPECT_EQ(read.whole_answer, row.whole_answer);
}

TEST_P(TablesConformance, AnErasedRecordRaisesTheFloorAndTakesItsSteps) {
    RecordRow row = record_of("k", RecordState::kSucceeded);
    row.epoch = 9;
    put_record(row);
    tx([](Tables& tables) {
        StepRow step;
        step.record = {"default", "charge", "k"};
        step.name = "s";
        tables.put_step(step);
        EXPECT_EQ(tables.epoch_floor(), 0U);
        tables.erase_record(step.record);
        EXPECT_EQ(tables.epoch_floor(), 9U);
        EXPECT_TRUE(tables.steps(step.record).empty());
        tables.erase_record(step.record);
    });
    row = record_of("small", RecordState::kSucceeded);
    put_record(row);
    tx([&](Tables& tables) { tables.erase_record(row.id); });
    EXPECT_EQ(tx([](Tables& tables) { return tables.epoch_floor(); }), 9U) << "it only grows";
}

TEST_P(TablesConformance, PrunableRecordsHaveEndedUnmarkedAndAreOldestFirst) {
    const auto end = [&](const std::string& key, RecordState state, Millis ago, bool marked) {
        RecordRow row = record_of(key, state);
        row.finished_at = now() - ago;
        row.keep = 10s;
        row.marked = marked;
        put_record(row);
    };
    end("young", RecordState::kSucceeded, 9s, false);
    end("old", RecordState::kSucceeded, 20s, false);
    end("older", RecordState::kDead, 30s, false);
    end("edge", RecordState::kCancelled, 10s, false);
    end("marked", RecordState::kDead, 30s, true);
    for (const RecordState state :
         {RecordState::kProcessing, RecordState::kRetryable, RecordState::kHeld}) {
        end("open " + std::string(to_string(state)), state, 30s, false);
    }
    const auto prunable = [&](std::size_t limit) {
        return tx([limit](Tables& tables) {
            std::vector<std::string> keys;
            for (const RecordRow& row : tables.prunable_records("default", limit)) {
                keys.push_back(row.id.key);
            }
            return keys;
        });
    };
    EXPECT_EQ(prunable(10), (std::vector<std::string>{"older", "old", "edge"}));
    EXPECT_EQ(prunable(1), (std::vector<std::string>{"older"}));
}

TEST_P(TablesConformance, StaleRecordsAreHeldOrLapsed) {
    for (const auto& [key, state, lease_of] : {std::tuple{"held", RecordState::kHeld, 10s},
                                               std::tuple{"lapsed", RecordState::kProcessing, 0s},
                                               std::tuple{"live", RecordState::kProcessing, 10s},
                                               std::tuple{"done", RecordState::kSucceeded, 0s}}) {
        RecordRow row = record_of(key, state);
        row.lease_until = now() + lease_of;
        put_record(row);
    }
    const auto keys = tx([](Tables& tables) {
        std::set<std::string> found;
        for (const RecordRow& row : tables.stale_records("default", 10))
            found.insert(row.id.key);
        return found;
    });
    EXPECT_EQ(keys, (std::set<std::string>{"held", "lapsed"}));
}

TEST_P(TablesConformance, StepsKeepEveryFieldAndTheirOrder) {
    tx([](Tables& tables) {
        StepRow step;
        step.record = {"default", "charge", "k"};
        for (const auto& [name, order] :
             {std::pair{"b", 1}, std::pair{"c", 2}, std::pair{"a", 0}}) {
            step.name = name;
            step.order = order;
            step.epoch = 3;
            step.call = "call";
            step.done = order == 1;
            step.result = "result";
            tables.put_step(step);
        }
        step.name = "b";
        step.order = 1;
        step.result = "again";
        tables.put_step(step);
        const auto steps = tables.steps(step.record);
        ASSERT_EQ(steps.size(), 3U);
        EXPECT_EQ(steps[0].name, "a");
        EXPECT_EQ(steps[1].name, "b");
        EXPECT_EQ(steps[1].result, "again");
        EXPECT_EQ(steps[1].epoch, 3U);
        EXPECT_EQ(steps[1].call, "call");
        EXPECT_EQ(steps[2].name, "c");
        tables.erase_steps(step.record);
        EXPECT_TRUE(tables.steps(step.record).empty());
    });
}

TEST_P(TablesConformance, LocksKeepEveryFieldAndTheFloorOnlyGrows) {
    const StoreTime at = now();
    tx([at](Tables& tables) {
        LockRow row;
        row.ns = "default";
        row.name = "l";
        row.owner = "A";
        row.token = "t";
        row.job_id = "j1";
        row.fence = 7;
        row.lease_until = at + 1s;
        row.reserved_for = "j2";
        row.reserved_until = at + 2s;
        tables.put_lock(row);
        const LockRow read = *tables.lock("default", "l");
        EXPECT_EQ(read.owner, "A");
        EXPECT_EQ(read.token, "t");
        EXPECT_EQ(read.job_id, "j1");
        EXPECT_EQ(read.fence, 7U);
        EXPECT_EQ(read.lease_until, row.lease_until);
        EXPECT_EQ(read.reserved_for, "j2");
        EXPECT_EQ(read.reserved_until, row.reserved_until);
        EXPECT_EQ(tables.held_locks("default").size(), 1U);
        EXPECT_EQ(tables.held_locks("tenant").size(), 0U);
        tables.erase_lock("default", "l");
        EXPECT_FALSE(tables.lock("default", "l"));
        EXPECT_EQ(tables.fence_floor(), 7U);
        tables.erase_lock("default", "l");
        EXPECT_EQ(tables.fence_floor(), 7U);
    });
}

TEST_P(TablesConformance, HeldAndIdleLocks) {
    const auto put_lock = [&](const std::string& name, const std::string& owner, Millis left) {
        LockRow row;
        row.ns = "default";
        row.name = name;
        row.owner = owner;
        row.lease_until = now() + left;
        tx([row](Tables& tables) { tables.put_lock(row); });
    };
    put_lock("held", "A", 1h);
    put_lock("lapsed", "A", -1s);
    put_lock("free", "", -1h);
    put_lock("just free", "", 0s);
    tx([](Tables& tables) {
        const auto held = tables.held_locks("default");
        ASSERT_EQ(held.size(), 1U);
        EXPECT_EQ(held[0].name, "held");
        std::set<std::string> idle;
        for (const LockRow& row : tables.idle_locks("default", tables.now() - 1min, 10)) {
            idle.insert(row.name);
        }
        EXPECT_EQ(idle, (std::set<std::string>{"free"}));
    });
}

TEST_P(TablesConformance, StalledLinesHaveJobsAndNoHolder) {
    const auto wait_for = [&](const std::string& id, const std::string& lock_name) {
        JobRow row = row_of(id);
        row.state = JobState::kWaiting;
        row.waiting_for = WaitFor::kLock;
        row.waiting_name = lock_name;
        insert(row);
    };
    const auto put_lock = [&](const std::string& name, const std::string& owner, Millis left,
                              Millis reserved_left) {
        LockRow row;
        row.ns = "default";
        row.name = name;
        row.owner = owner;
        row.lease_until = now() + left;
        row.reserved_for = "somebody";
        row.reserved_until = now() + reserved_left;
        tx([row](Tables& tables) { tables.put_lock(row); });
    };
    put_lock("held", "A", 10s, 0s);
    put_lock("lapsed", "A", 0s, 0s);
    put_lock("reserved", "", 0s, 10s);
    put_lock("free", "", 0s, 0s);
    put_lock("no line", "", 0s, 0s);
    for (const char* name : {"held", "lapsed", "reserved", "free", "no row"})
        wait_for(name, name);
    const auto stalled = tx([](Tables& tables) {
        const auto names = tables.stalled_lines("default", 10);
        return std::set<std::string>(names.begin(), names.end());
    });
    EXPECT_EQ(stalled, (std::set<std::string>{"free", "lapsed", "no row"}));
}

TEST_P(TablesConformance, StalledKeysHaveJobsAndNoRun) {
    for (const auto& [key, state, lease_of] :
         {std::tuple{"runs", RecordState::kProcessing, 10s},
          std::tuple{"lapsed", RecordState::kProcessing, 0s},
          std::tuple{"held", RecordState::kHeld, 0s},
          std::tuple{"done", RecordState::kSucceeded, 0s},
          std::tuple{"nobody waits", RecordState::kSucceeded, 0s}}) {
        RecordRow row = record_of(key, state);
        row.lease_until = now() + lease_of;
        put_record(row);
    }
    for (const char* key : {"runs", "lapsed", "held", "done", "no record"}) {
        JobRow row = row_of("waits for " + std::string(key));
        row.state = JobState::kWaiting;
        row.waiting_for = WaitFor::kKey;
        row.waiting_name = key;
        insert(row);
    }
    const auto stalled = tx([](Tables& tables) {
        std::set<std::string> keys;
        for (const RecordKey& key : tables.stalled_keys("default", 10))
            keys.insert(key.key);
        return keys;
    });
    EXPECT_EQ(stalled, (std::set<std::string>{"done", "lapsed", "no record"}));
}

TEST_P(TablesConformance, StandingLinesBehindTheLimitAreFoundByTheNextLook) {
    for (int i = 0; i < 10; ++i) {
        JobRow row = row_of("j" + std::to_string(i));
        row.state = JobState::kWaiting;
        row.waiting_for = i % 2 == 0 ? WaitFor::kLock : WaitFor::kKey;
        row.waiting_name = "line " + std::to_string(i);
        insert(row);
    }
    std::set<std::string> lines;
    for (int look = 0; look < 6; ++look) {
        tx([&](Tables& tables) {
            for (const auto& name : tables.stalled_lines("default", 2))
                lines.insert(name);
            for (const auto& key : tables.stalled_keys("default", 2))
                lines.insert(key.key);
        });
    }
    EXPECT_EQ(lines.size(), 10U);
}

// ---- history, workers, queues
// ----------------------------------------------------------------------

TEST_P(TablesConformance, HistoryKeepsEveryField) {
    const StoreTime at = now();
    const RecordKey key{"default", "charge", "k"};
    tx([&](Tables& tables) {
        AttemptRow attempt;
        attempt.ns = key.ns;
        attempt.job_id = "j1";
        attempt.kind = key.kind;
        attempt.key = key.key;
        attempt.attempt = 2;
        attempt.epoch = 3;
        attempt.worker = "A";
        attempt.started_at = at;
        attempt.finished_at = at + 1s;
        attempt.outcome = "failed";
        attempt.error = "error";
        tables.add_attempt(attempt);
        attempt.outcome = "crashed";
        tables.add_attempt(attempt);
        EventRow event;
        event.ns = key.ns;
        event.at = at;
        event.event = engine::EventKind::kTakeover;
        event.job_id = "j1";
        event.kind = key.kind;
        event.key = key.key;
        event.epoch = 3;
        event.worker = "A";
        event.detail = "detail";
        tables.add_event(event);
        tables.add_event(event);
    });
    const auto attempts = tx([&](Tables& tables) { return tables.attempts_of_key(key); });
    ASSERT_EQ(attempts.size(), 1U) << "one row for each run";
    EXPECT_EQ(attempts[0].job_id, "j1");
    EXPECT_EQ(attempts[0].attempt, 2U);
    EXPECT_EQ(attempts[0].epoch, 3U);
    EXPECT_EQ(attempts[0].worker, "A");
    EXPECT_EQ(attempts[0].started_at, at);
    EXPECT_EQ(attempts[0].finished_at, at + 1s);
    EXPECT_EQ(attempts[0].outcome, "failed");
    EXPECT_EQ(attempts[0].error, "error");
    const auto rows = tx([&](Tables& tables) { return tables.events_of_key(key); });
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].at, at);
    EXPECT_EQ(rows[0].event, engine::EventKind::kTakeover);
    EXPECT_EQ(rows[0].job_id, "j1");
    EXPECT_EQ(rows[0].epoch, 3U);
    EXPECT_EQ(rows[0].worker, "A");
    EXPECT_EQ(rows[0].detail, "detail");
}

TEST_P(TablesConformance, KindsAndNeighboursOfAKey) {
    put({.id = "j1", .key = "order:1001"});
    put({.id = "j2", .key = "order:1001", .payload = "2", .kind = "mail"});
    put({.id = "j3", .key = "order:2000"});
    put({.id = "j4", .key = "invoice"});
    put({.id = "j5", .key = "order:1002", .ns = "tenant"});
    tx([](Tables& tables) {
        const auto kinds = tables.kinds_of_key("default", "order:1001");
        EXPECT_EQ(std::set<std::string>(kinds.begin(), kinds.end()),
                  (std::set<std::string>{"charge", "mail"}));
        EXPECT_TRUE(tables.kinds_of_key("default", "order:1002").empty());
        const auto near = tables.nearest_keys("default", "ordr:1001", 2);
        ASSERT_FALSE(near.empty());
        EXPECT_EQ(near[0], "order:1001");
        EXPECT_LE(near.size(), 2U);
    });
}

TEST_P(TablesConformance, PruneHistoryDropsWhatEndedBefore) {
    const RecordKey key{"default", "charge", "k"};
    const auto add = [&] {
        tx([&](Tables& tables) {
            AttemptRow attempt;
            attempt.ns = key.ns;
            attempt.kind = key.kind;
            attempt.key = key.key;
            attempt.job_id = "at " + std::to_string(tables.now().time_since_epoch().count());
            attempt.finished_at = tables.now();
            tables.add_attempt(attempt);
            EventRow event;
            event.ns = key.ns;
            event.kind = key.kind;
            event.key = key.key;
            event.at = tables.now();
            tables.add_event(event);
        });
    };
    insert("j1");
    finish("j1", JobState::kSucceeded);
    add();
    advance(10s);
    insert("j2");
    finish("j2", JobState::kSucceeded);
    add();
    const StoreTime between = now() - 5s;
    EXPECT_EQ(tx([=](Tables& tables) { return tables.prune_history("tenant", between, 100); }), 0U);
    EXPECT_EQ(tx([=](Tables& tables) { return tables.prune_history("default", between, 100); }),
              3U);
    EXPECT_FALSE(find_job("j1"));
    EXPECT_TRUE(find_job("j2"));
    EXPECT_EQ(tx([&](Tables& tables) { return tables.attempts_of_key(key); }).size(), 1U);
    EXPECT_EQ(tx([&](Tables& tables) { return tables.events_of_key(key); }).size(), 1U);
}

TEST_P(TablesConformance, WorkersKeepEveryField) {
    const StoreTime at = now();
    tx([at](Tables& tables) {
        WorkerRow row;
        row.id = "A";
        row.ns = "default";
        row.host = "host";
        row.pid = 4711;
        row.queues = {"default", "other"};
        row.kinds = {"charge", "mail"};
        row.concurrency = 8;
        row.started_at = at;
        row.lease_until = at + 1s;
        row.stopping = true;
        row.death_company = 3;
        tables.put_worker(row);
        const WorkerRow read = *tables.worker("A");
        EXPECT_EQ(read.ns, "default");
        EXPECT_EQ(read.host, "host");
        EXPECT_EQ(read.pid, 4711);
        EXPECT_EQ(read.queues, row.queues);
        EXPECT_EQ(read.kinds, row.kinds);
        EXPECT_EQ(read.concurrency, 8U);
        EXPECT_EQ(read.started_at, at);
        EXPECT_EQ(read.lease_until, at + 1s);
        EXPECT_TRUE(read.stopping);
        EXPECT_EQ(read.death_company, 3U);
        EXPECT_EQ(tables.workers("default").size(), 1U);
        EXPECT_TRUE(tables.workers("tenant").empty());
        tables.erase_worker("A");
        tables.erase_worker("A");
        EXPECT_FALSE(tables.worker("A"));
    });
}

TEST_P(TablesConformance, AFateIsUnknownUntilItIsProven) {
    const auto fate = [&] { return tx([](Tables& tables) { return tables.owner_fate("A"); }); };
    EXPECT_EQ(fate(), OwnerFate::kUnknown);
    kill("A");
    EXPECT_EQ(fate(), OwnerFate::kDead);
}

TEST_P(TablesConformance, CountsOfQueues) {
    insert("j1");
    insert("j2");
    JobRow row = row_of("j3");
    row.state = JobState::kHeld;
    row.job.queue = "other";
    insert(row);
    insert("done");
    finish("done", JobState::kSucceeded);
    tx([](Tables& tables) {
        tables.put_queue({.ns = "default", .name = "idle", .paused = true});
        WorkerRow worker;
        worker.id = "A";
        worker.ns = "default";
        worker.queues = {"default"};
        worker.lease_until = tables.now() + 10s;
        tables.put_worker(worker);
        worker.id = "gone";
        worker.lease_until = tables.now();
        tables.put_worker(worker);
    });
    const auto counts = tx([](Tables& tables) {
        std::map<std::string, engine::QueueCounts> by_name;
        for (const auto& queue : tables.queue_counts("default"))
            by_name[queue.queue] = queue;
        return by_name;
    });
    ASSERT_EQ(counts.size(), 3U);
    EXPECT_EQ(counts.at("default").by_state, (std::map<std::string, std::uint64_t>{{"ready", 2}}));
    EXPECT_EQ(counts.at("default").live_workers, 1U);
    EXPECT_TRUE(counts.at("default").oldest_ready);
    EXPECT_EQ(counts.at("other").by_state, (std::map<std::string, std::uint64_t>{{"held", 1}}));
    EXPECT_FALSE(counts.at("other").oldest_ready);
    EXPECT_TRUE(counts.at("idle").paused);
}

TEST_P(TablesConformance, Drain_WaitsForWhatWillRunAndForNothingElse) {
    const auto drainable = [&] {
        return tx([](Tables& tables) { return tables.has_drainable(spec()); });
    };
    EXPECT_FALSE(drainable());
    insert("j1");
    EXPECT_TRUE(drainable()) << "ready";
    pause("default");
    EXPECT_FALSE(drainable()) << "paused";
    pause("default", false);
    update("j1", [](JobRow& row, Tables&) { row.state = JobState::kRunning; });
    EXPECT_TRUE(drainable()) << "running";
    pause("default");
    EXPECT_TRUE(drainable()) << "running on although paused";
    pause("default", false);
    update("j1", [](JobRow& row, Tables& tables) {
        row.state = JobState::kScheduled;
        row.run_at = tables.now() + 1h;
    });
    EXPECT_FALSE(drainable()) << "delayed";
    update("j1", [](JobRow& row, Tables&) { row.deliveries = 1; });
    EXPECT_TRUE(drainable()) << "a retry";
    update("j1", [](JobRow& row, Tables&) { row.state = JobState::kHeld; });
    EXPECT_FALSE(drainable()) << "held";
    put_record([] {
        RecordRow row = record_of("j1", RecordState::kHeld);
        row.job_id = "j1";
        return row;
    }());
    JobRow waiting = row_of("j2");
    waiting.state = JobState::kWaiting;
    waiting.waiting_for = WaitFor::kKey;
    waiting.waiting_name = "j1";
    insert(waiting);
    EXPECT_FALSE(drainable()) << "waits behind a held key";
    put_record(record_of("j1", RecordState::kProcessing));
    EXPECT_TRUE(drainable()) << "waits behind a running key";
    JobRow unserved = row_of("j3");
    unserved.job.kind = "unheard_of";
    insert(unserved);
    finish("j2", JobState::kCancelled);
    EXPECT_FALSE(drainable()) << "no handler here";
}

SEKALI_CONFORMS(TablesConformance);

}  // namespace
}  // namespace sekali::conformance
