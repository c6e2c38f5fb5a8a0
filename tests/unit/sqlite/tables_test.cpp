#include "engine/tables.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "backends/sqlite/sqlite_store.hpp"
#include "unit/sqlite/temp_database.hpp"

// Every field of every row comes back as it was written, and rows move as `Tables` says. What the
// rows mean is the conformance suite's to test, on every backend.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::RecordRow;
using engine::RecordState;
using engine::StoreTime;
using engine::Tables;
using engine::WaitFor;
using namespace std::chrono_literals;

StoreTime at(std::int64_t ms) {
    return StoreTime{engine::Millis{ms}};
}

std::string bytes_of_all_kinds() {
    std::string bytes;
    for (int c = 0; c < 256; ++c)
        bytes.push_back(static_cast<char>(c));
    return bytes;
}

JobRow full_job(const std::string& id) {
    JobRow row;
    row.job.id = id;
    row.job.ns = "tenant";
    row.job.kind = "payment.charge";
    row.job.queue = "slow";
    row.job.payload = bytes_of_all_kinds();
    row.job.key = "payment:" + id;
    row.job.lock_key = "order:1001";
    row.job.unique_key = "unique:" + id;
    row.job.unique_until = engine::UniqueUntil::kStart;
    row.job.priority = 7;
    row.job.retry = {.base = 5ms,
                     .factor = 1.5,
                     .cap = 70ms,
                     .jitter = 0.125,
                     .max_attempts = 3,
                     .max_age = 900ms};
    row.job.fingerprint = std::string(64, 'a');
    row.job.fingerprint_rule = "fields:/a";
    row.job.named_end = 4;
    row.state = JobState::kWaiting;
    row.waiting_for = WaitFor::kLock;
    row.waiting_name = "order:1001";
    row.enqueued_at = at(1'700'000'000'123);
    row.run_at = at(1'700'000'000'456);
    row.attempts = 1;
    row.crashes = 2;
    row.interruptions = 3;
    row.deliveries = 4;
    row.lost_claims = 5;
    row.owner = "worker-a";
    row.lease_until = at(1'700'000'000'789);
    row.begun = true;
    row.suspect = true;
    row.slot_held = true;
    row.cancel_requested = true;
    row.requested_by = "anna";
    row.epoch = 6;
    row.result = "{\"ok\":true}";
    row.error = "stderr \xff bytes";
    row.reason = "because";
    return row;
}

auto fields(const JobRow& row) {
    const engine::Envelope& job = row.job;
    const auto frozen =
        std::tuple(row.seq, job.id, job.ns, job.kind, job.queue, job.key, job.lock_key,
                   job.unique_key, job.unique_until, job.priority, job.retry.base, job.retry.factor,
                   job.retry.cap, job.retry.jitter, job.retry.max_attempts, job.retry.max_age,
                   job.fingerprint, job.fingerprint_rule, job.named_end, row.enqueued_at);
    const auto rest = std::tuple(row.state, row.waiting_for, row.waiting_name, row.run_at,
                                 row.finished_at, row.attempts, row.crashes, row.interruptions,
                                 row.deliveries, row.lost_claims, row.owner, row.lease_until,
                                 row.begun, row.suspect, row.slot_held, row.cancel_requested,
                                 row.requested_by, row.epoch, row.result, row.error, row.reason);
    return std::tuple(frozen, rest);
}

RecordRow full_record() {
    RecordRow row;
    row.id = {"tenant", "payment.charge", "payment:1"};
    row.state = RecordState::kHeld;
    row.job_id = "job-1";
    row.epoch = 9;
    row.owner = "worker-a";
    row.delivery = 3;
    row.lease_until = at(11);
    row.fingerprint = std::string(64, 'b');
    row.fingerprint_rule = "sha256";
    row.not_before = at(12);
    row.effects = engine::Effects::kSteps;
    row.on_unknown = engine::OnUnknown::kProbe;
    row.marked = true;
    row.mark_cause = "worker_crash";
    row.probing = true;
    row.death_proven = true;
    row.probe_after = at(13);
    row.ends = 2;
    row.lock_key = "order:1";
    row.fence = 21;
    row.attempt = 4;
    row.started_at = at(14);
    row.finished_at = at(15);
    row.result = "result";
    row.keep = 16ms;
    row.whole_answer = true;
    return row;
}

auto fields(const RecordRow& row) {
    return std::tuple(row.id, row.state, row.job_id, row.epoch, row.owner, row.delivery,
                      row.lease_until, row.fingerprint, row.fingerprint_rule, row.not_before,
                      row.effects, row.on_unknown, row.marked, row.mark_cause, row.probing,
                      row.death_proven, row.probe_after, row.ends, row.lock_key, row.fence,
                      row.attempt, row.started_at, row.finished_at, row.result, row.keep,
                      row.whole_answer);
}

class SqliteTablesTest : public testing::Test {
 protected:
    void in_transaction(const std::function<void(Tables&)>& work) { write(*store_, work); }

    TempDatabase database_;
    std::unique_ptr<SqliteStore> store_ = database_.open();
};

TEST_F(SqliteTablesTest, LiveJobComesBackWhole) {
    JobRow row = full_job("a");
    in_transaction([&](Tables& tables) { ASSERT_TRUE(tables.insert_job(row)); });
    EXPECT_GT(row.seq, 0);
    read(*store_, [&](Tables& tables) {
        const auto found = tables.job("a");
        ASSERT_TRUE(found);
        EXPECT_EQ(fields(*found), fields(row));
        EXPECT_EQ(found->job.payload, "");
        EXPECT_EQ(tables.payload("a"), bytes_of_all_kinds());
    });
}

TEST_F(SqliteTablesTest, JobWithoutKeyOfItsOwnHasItsIdAsKey) {
    JobRow row = full_job("a");
    row.job.key = "a";
    in_transaction([&](Tables& tables) {
        tables.insert_job(row);
        EXPECT_EQ(tables.job("a")->job.key, "a");
        const RecordKey key{"tenant", "payment.charge", "a"};
        EXPECT_TRUE(tables.live_job_of_key(key));
        EXPECT_EQ(tables.jobs_of_key(key.ns, key.kind, key.key).size(), 1U);
        EXPECT_EQ(tables.kinds_of_key("tenant", "a"), std::vector<std::string>{"payment.charge"});
    });
}

TEST_F(SqliteTablesTest, UpdatesMoveEveryChangingField) {
    JobRow row = full_job("a");
    in_transaction([&](Tables& tables) { tables.insert_job(row); });
    JobRow moved = row;
    moved.state = JobState::kRunning;
    moved.waiting_for = WaitFor::kNothing;
    moved.waiting_name.clear();
    moved.run_at += 1s;
    ++moved.attempts;
    ++moved.deliveries;
    moved.owner = "worker-b";
    moved.slot_held = false;
    in_transaction([&](Tables& tables) {
        tables.update_job(moved);
        EXPECT_EQ(fields(*tables.job("a")), fields(moved));
    });
    // The second write stays in its indexes and takes the narrow statement.
    moved.lease_until += 5s;
    moved.begun = false;
    ++moved.epoch;
    moved.error = "other";
    in_transaction([&](Tables& tables) {
        ASSERT_TRUE(tables.job("a"));
        tables.update_job(moved);
        EXPECT_EQ(fields(*tables.job("a")), fields(moved));
        EXPECT_TRUE(tables.has_jobs_of("worker-b"));
    });
    EXPECT_EQ(store_->write_sync([](Tables& tables) { tables.update_job(full_job("none")); }, 9s)
                  .error()
                  .code,
              ErrorCode::kInternal);
}

TEST_F(SqliteTablesTest, EachChangeAloneIsWritten) {
    JobRow row = full_job("a");
    RecordRow record = full_record();
    in_transaction([&](Tables& tables) {
        tables.insert_job(row);
        tables.put_record(record);
    });
    const std::vector<std::function<void(JobRow&)>> changes{
        [](JobRow& job) { job.state = JobState::kScheduled; },
        [](JobRow& job) { job.waiting_for = WaitFor::kKey; },
        [](JobRow& job) { job.waiting_name += "2"; },
        [](JobRow& job) { job.run_at += 1ms; },
        [](JobRow& job) { job.slot_held = !job.slot_held; },
        [](JobRow& job) { ++job.deliveries; },
        [](JobRow& job) { job.owner += "2"; },
        [](JobRow& job) { ++job.attempts; },
        [](JobRow& job) { ++job.crashes; },
        [](JobRow& job) { ++job.interruptions; },
        [](JobRow& job) { ++job.lost_claims; },
        [](JobRow& job) { job.lease_until += 1ms; },
        [](JobRow& job) { job.begun = !job.begun; },
        [](JobRow& job) { job.suspect = !job.suspect; },
        [](JobRow& job) { job.cancel_requested = !job.cancel_requested; },
        [](JobRow& job) { job.requested_by += "2"; },
        [](JobRow& job) { ++job.epoch; },
        [](JobRow& job) { job.result += "2"; },
        [](JobRow& job) { job.error += "2"; },
        [](JobRow& job) { job.reason += "2"; }};
    for (const auto& change : changes) {
        in_transaction([&](Tables& tables) {
            JobRow changed = tables.job("a").value();
            change(changed);
            tables.update_job(changed);
            EXPECT_EQ(fields(*tables.job("a")), fields(changed));
        });
        change(row);
        read(*store_, [&](Tables& tables) { EXPECT_EQ(fields(*tables.job("a")), fields(row)); });
    }
    const std::vector<std::function<void(RecordRow&)>> record_changes{
        [](RecordRow& to) { to.state = RecordState::kProcessing; },
        [](RecordRow& to) { to.job_id += "2"; },
        [](RecordRow& to) { ++to.epoch; },
        [](RecordRow& to) { to.owner += "2"; },
        [](RecordRow& to) { ++to.delivery; },
        [](RecordRow& to) { to.lease_until += 1ms; },
        [](RecordRow& to) { to.fingerprint += "2"; },
        [](RecordRow& to) { to.fingerprint_rule += "2"; },
        [](RecordRow& to) { to.not_before += 1ms; },
        [](RecordRow& to) { to.effects = engine::Effects::kCommit; },
        [](RecordRow& to) { to.on_unknown = engine::OnUnknown::kHold; },
        [](RecordRow& to) { to.marked = !to.marked; },
        [](RecordRow& to) { to.mark_cause += "2"; },
        [](RecordRow& to) { to.probing = !to.probing; },
        [](RecordRow& to) { to.death_proven = !to.death_proven; },
        [](RecordRow& to) { to.probe_after += 1ms; },
        [](RecordRow& to) { ++to.ends; },
        [](RecordRow& to) { to.lock_key += "2"; },
        [](RecordRow& to) { ++to.fence; },
        [](RecordRow& to) { ++to.attempt; },
        [](RecordRow& to) { to.started_at += 1ms; },
        [](RecordRow& to) { to.finished_at.reset(); },
        [](RecordRow& to) { to.keep += 1ms; },
        [](RecordRow& to) { to.whole_answer = !to.whole_answer; },
        [](RecordRow& to) { to.result += "2"; }};
    for (const auto& change : record_changes) {
        in_transaction([&](Tables& tables) {
            RecordRow changed = tables.record(record.id).value();
            change(changed);
            tables.put_record(changed);
            EXPECT_EQ(fields(*tables.record(record.id)), fields(changed));
        });
        change(record);
        read(*store_,
             [&](Tables& tables) { EXPECT_EQ(fields(*tables.record(record.id)), fields(record)); });
    }
}

TEST_F(SqliteTablesTest, WhatAnotherProcessChangedIsReadAgain) {
    const RecordKey key{"tenant", "payment.charge", "payment:1"};
    const auto first_in_line = [](Tables& tables) {
        return tables.first_waiting("tenant", WaitFor::kLock, {}, "order:1001").has_value();
    };
    JobRow row = full_job("a");
    row.state = JobState::kRunning;
    in_transaction([&](Tables& tables) {
        tables.insert_job(row);
        tables.put_record(full_record());
    });
    in_transaction([&](Tables& tables) {
        EXPECT_EQ(tables.job("a")->owner, "worker-a");
        EXPECT_EQ(tables.record(key)->owner, "worker-a");
        EXPECT_FALSE(first_in_line(tables));
    });
    const auto other = database_.open();
    write(*other, [&](Tables& tables) {
        JobRow taken = tables.job("a").value();
        taken.owner = "worker-b";
        tables.update_job(taken);
        RecordRow record = tables.record(key).value();
        record.owner = "worker-b";
        tables.put_record(record);
        JobRow waiting = full_job("b");
        tables.insert_job(waiting);
    });
    in_transaction([&](Tables& tables) {
        EXPECT_EQ(tables.job("a")->owner, "worker-b");
        EXPECT_EQ(tables.record(key)->owner, "worker-b");
        EXPECT_TRUE(first_in_line(tables));
    });
}

TEST_F(SqliteTablesTest, WhatARollBackTookBackIsNotBelieved) {
    const RecordKey key{"tenant", "payment.charge", "payment:1"};
    JobRow row = full_job("a");
    in_transaction([&](Tables& tables) {
        tables.insert_job(row);
        tables.put_record(full_record());
    });
    const auto refused = store_->write_sync(
        [&](Tables& tables) {
            JobRow changed = tables.job("a").value();
            changed.owner = "worker-b";
            tables.update_job(changed);
            RecordRow record = tables.record(key).value();
            record.owner = "worker-b";
            tables.put_record(record);
            throw Failure(Error{.code = ErrorCode::kConflict, .message = "no"});
        },
        20s);
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    in_transaction([&](Tables& tables) {
        EXPECT_EQ(tables.job("a")->owner, "worker-a");
        EXPECT_EQ(tables.record(key)->owner, "worker-a");
    });
}

TEST_F(SqliteTablesTest, FinishedJobComesBackWholeAndKeepsItsPayloadOnlyForRetry) {
    for (const JobState state :
         {JobState::kSucceeded, JobState::kDuplicate, JobState::kDead, JobState::kCancelled}) {
        const std::string id(to_string(state));
        JobRow row = full_job(id);
        in_transaction([&](Tables& tables) {
            tables.insert_job(row);
            row.state = state;
            row.finished_at = at(1'700'000'001'000);
            row.result = "other result";
            tables.finish_job(row);
            EXPECT_FALSE(tables.job(id));
            EXPECT_FALSE(tables.insert_job(row)) << "the id is taken for ever";
        });
        row.slot_held = false;
        read(*store_, [&](Tables& tables) {
            const auto found = tables.finished_job(id);
            ASSERT_TRUE(found);
            EXPECT_EQ(fields(*found), fields(row));
            const bool kept = state == JobState::kDead || state == JobState::kCancelled;
            EXPECT_EQ(tables.payload(id), kept ? bytes_of_all_kinds() : "");
        });
    }
}

TEST_F(SqliteTablesTest, RevivedJobKeepsItsPlaceAndPayload) {
    JobRow row = full_job("a");
    in_transaction([&](Tables& tables) {
        tables.insert_job(row);
        row.state = JobState::kDead;
        row.finished_at = tables.now();
        tables.finish_job(row);
    });
    row.state = JobState::kReady;
    row.waiting_for = WaitFor::kNothing;
    row.waiting_name.clear();
    row.finished_at.reset();
    row.slot_held = false;
    in_transaction([&](Tables& tables) {
        tables.revive_job(row);
        EXPECT_FALSE(tables.finished_job("a"));
        EXPECT_EQ(fields(*tables.job("a")), fields(row));
        EXPECT_EQ(tables.payload("a"), bytes_of_all_kinds());
    });
}

TEST_F(SqliteTablesTest, FinalJobCanBeWrittenWithoutALiveRow) {
    JobRow row = full_job("a");
    row.state = JobState::kDuplicate;
    row.finished_at = at(5);
    in_transaction([&](Tables& tables) {
        tables.insert_finished(row);
        EXPECT_TRUE(tables.finished_job("a"));
        EXPECT_EQ(tables.payload("a"), "");
    });
    const auto again = store_->write_sync([&](Tables& t) { t.insert_finished(row); }, 9s);
    EXPECT_EQ(again.error().code, ErrorCode::kConflict);
    in_transaction([](Tables& tables) {
        tables.erase_finished("a");
        EXPECT_FALSE(tables.finished_job("a"));
    });
}

TEST_F(SqliteTablesTest, PlacesInLineAreNeverGivenTwice) {
    std::vector<std::int64_t> given;
    for (const std::string id : {"a", "b", "c"}) {
        in_transaction([&](Tables& tables) {
            JobRow row = full_job(id);
            tables.insert_job(row);
            given.push_back(row.seq);
            row.state = JobState::kSucceeded;
            row.finished_at = tables.now();
            tables.finish_job(row);
        });
    }
    EXPECT_LT(given[0], given[1]);
    EXPECT_LT(given[1], given[2]);
}

TEST_F(SqliteTablesTest, ClaimOrderIsPriorityThenArrivalWithPayload) {
    in_transaction([](Tables& tables) {
        const auto add = [&](const std::string& id, const std::string& queue,
                             const std::string& kind, int priority) {
            JobRow row;
            row.job.id = row.job.key = id;
            row.job.queue = queue;
            row.job.kind = kind;
            row.job.priority = priority;
            row.job.payload = "payload of " + id;
            tables.insert_job(row);
        };
        add("late", "q1", "k1", 0);
        add("other kind", "q1", "k9", 9);
        add("first", "q2", "k2", 9);
        add("second", "q1", "k1", 9);
        add("third", "q1", "k2", 5);
        add("paused", "q3", "k1", 9);
        tables.put_queue({"default", "q3", true});
    });
    read(*store_, [](Tables& tables) {
        engine::ClaimSpec spec{"default", {"q1", "q2", "q3"}, {"k1", "k2"}, 3};
        std::vector<std::string> ids;
        for (const JobRow& row : tables.claimable(spec)) {
            ids.push_back(row.job.id);
            EXPECT_EQ(row.job.payload, "payload of " + row.job.id);
        }
        EXPECT_EQ(ids, (std::vector<std::string>{"first", "second", "third"}));
    });
}

TEST_F(SqliteTablesTest, RecordComesBackWholeAndItsEpochOutlivesIt) {
    RecordRow row = full_record();
    in_transaction([&](Tables& tables) {
        tables.put_record(row);
        EXPECT_EQ(fields(*tables.record(row.id)), fields(row));
        row.lease_until = at(77);
        row.result = "other";
        tables.put_record(row);
        EXPECT_EQ(fields(*tables.record(row.id)), fields(row));
        row.state = RecordState::kSucceeded;
        row.marked = false;
        tables.put_record(row);
        EXPECT_EQ(fields(*tables.record(row.id)), fields(row));
        EXPECT_EQ(tables.epoch_floor(), 0U);
    });
    read(*store_, [&](Tables& tables) {
        ASSERT_EQ(tables.prunable_records("tenant", 5).size(), 1U);
        EXPECT_EQ(tables.prunable_records("default", 5).size(), 0U);
    });
    in_transaction([&](Tables& tables) { tables.erase_record(row.id); });
    read(*store_, [&](Tables& tables) {
        EXPECT_FALSE(tables.record(row.id));
        EXPECT_EQ(tables.epoch_floor(), 9U);
    });
}

TEST_F(SqliteTablesTest, StepsComeBackInOrder) {
    const RecordKey key = full_record().id;
    in_transaction([&](Tables& tables) {
        tables.put_step({key, "second", 2, "call-2", 2, false, {}});
        tables.put_step({key, "first", 1, "call-1", 1, true, "done"});
        tables.put_step({key, "second", 3, "call-3", 2, true, "too"});
        const auto steps = tables.steps(key);
        ASSERT_EQ(steps.size(), 2U);
        EXPECT_EQ(steps[0].name, "first");
        EXPECT_EQ(steps[0].record, key);
        EXPECT_EQ(steps[1].name, "second");
        EXPECT_EQ(steps[1].epoch, 3U);
        EXPECT_EQ(steps[1].call, "call-3");
        EXPECT_TRUE(steps[1].done);
        EXPECT_EQ(steps[1].result, "too");
        tables.erase_steps(key);
        EXPECT_TRUE(tables.steps(key).empty());
    });
}

TEST_F(SqliteTablesTest, LockComesBackWholeAndItsFenceOutlivesIt) {
    const engine::LockRow row{"tenant", "order:1", "worker-a", "token", "job-1",
                              31,       at(32),    "job-2",    at(33)};
    in_transaction([&](Tables& tables) {
        tables.put_lock(row);
        const auto found = tables.lock("tenant", "order:1");
        ASSERT_TRUE(found);
        EXPECT_EQ(
            std::tie(found->ns, found->name, found->owner, found->token, found->job_id,
                     found->fence, found->lease_until, found->reserved_for, found->reserved_until),
            std::tie(row.ns, row.name, row.owner, row.token, row.job_id, row.fence, row.lease_until,
                     row.reserved_for, row.reserved_until));
        EXPECT_EQ(tables.idle_locks("tenant", at(34), 9).size(), 1U);
        EXPECT_EQ(tables.idle_locks("tenant", at(33), 9).size(), 0U);
        tables.erase_lock("tenant", "order:1");
        EXPECT_FALSE(tables.lock("tenant", "order:1"));
    });
    read(*store_, [](Tables& tables) { EXPECT_EQ(tables.fence_floor(), 31U); });
}

TEST_F(SqliteTablesTest, HistoryComesBackWholeAndOneRunIsOneRow) {
    const RecordKey key = full_record().id;
    engine::AttemptRow attempt{key.ns,     "job-1", key.kind, key.key,  2,    3,
                               "worker-a", at(41),  at(42),   "failed", "why"};
    const engine::EventRow event{key.ns,  at(43),     engine::EventKind::kAckLost,
                                 "job-1", key.kind,   key.key,
                                 3,       "worker-a", "detail"};
    in_transaction([&](Tables& tables) {
        tables.add_attempt(attempt);
        attempt.outcome = "seen by another";
        tables.add_attempt(attempt);
        tables.add_event(event);
    });
    read(*store_, [&](Tables& tables) {
        const auto attempts = tables.attempts_of_key(key);
        ASSERT_EQ(attempts.size(), 1U);
        EXPECT_EQ(attempts[0].outcome, "failed");
        EXPECT_EQ(attempts[0].error, "why");
        EXPECT_EQ(attempts[0].started_at, at(41));
        EXPECT_EQ(attempts[0].finished_at, at(42));
        EXPECT_EQ(attempts[0].attempt, 2U);
        EXPECT_EQ(attempts[0].epoch, 3U);
        EXPECT_EQ(attempts[0].worker, "worker-a");
        const auto events = tables.events_of_key(key);
        ASSERT_EQ(events.size(), 1U);
        EXPECT_EQ(events[0].event, engine::EventKind::kAckLost);
        EXPECT_EQ(events[0].at, at(43));
        EXPECT_EQ(events[0].detail, "detail");
        EXPECT_EQ(events[0].job_id, "job-1");
    });
    in_transaction([&](Tables& tables) {
        EXPECT_EQ(tables.prune_history(key.ns, at(43), 9), 1U);
        EXPECT_EQ(tables.prune_history(key.ns, at(44), 9), 1U);
    });
}

TEST_F(SqliteTablesTest, WorkersAndQueuesComeBackWhole) {
    const engine::WorkerRow row{"worker-a", "tenant", "host", 77, {"q1", "q.2"}, {"k1"}, 8,
                                at(51),     at(52),   true,   3};
    in_transaction([&](Tables& tables) {
        tables.put_worker(row);
        tables.put_queue({"tenant", "q1", true});
    });
    read(*store_, [&](Tables& tables) {
        const auto found = tables.worker("worker-a");
        ASSERT_TRUE(found);
        EXPECT_EQ(
            std::tie(found->id, found->ns, found->host, found->pid, found->queues, found->kinds,
                     found->concurrency, found->started_at, found->lease_until, found->stopping,
                     found->death_company),
            std::tie(row.id, row.ns, row.host, row.pid, row.queues, row.kinds, row.concurrency,
                     row.started_at, row.lease_until, row.stopping, row.death_company));
        EXPECT_EQ(tables.workers("tenant").size(), 1U);
        EXPECT_EQ(tables.workers("other").size(), 0U);
        ASSERT_TRUE(tables.queue("tenant", "q1"));
        EXPECT_TRUE(tables.queue("tenant", "q1")->paused);
        EXPECT_FALSE(tables.queue("tenant", "q2"));
    });
    in_transaction([](Tables& tables) {
        tables.erase_worker("worker-a");
        EXPECT_FALSE(tables.worker("worker-a"));
    });
}

TEST_F(SqliteTablesTest, KeysAreBytes) {
    const std::vector<std::string> keys{"key",        "KEY",        "key ", std::string("ke\0y", 4),
                                        "k\xc3\xa9y", "ke\xcc\x81y"};
    in_transaction([&](Tables& tables) {
        for (const std::string& key : keys) {
            RecordRow row = full_record();
            row.id.key = key;
            row.job_id = "of " + key;
            tables.put_record(row);
        }
        for (const std::string& key : keys) {
            EXPECT_EQ(tables.record({"tenant", "payment.charge", key})->job_id, "of " + key);
        }
    });
}

TEST_F(SqliteTablesTest, ListsContinueOverBothTables) {
    in_transaction([](Tables& tables) {
        for (int i = 0; i < 7; ++i) {
            JobRow row = full_job("job-" + std::to_string(i));
            tables.insert_job(row);
            if (i % 2 == 0) continue;
            row.state = JobState::kDead;
            row.finished_at = tables.now();
            tables.finish_job(row);
        }
    });
    read(*store_, [](Tables& tables) {
        engine::JobFilter filter;
        filter.ns = "tenant";
        filter.limit = 3;
        std::vector<std::string> ids;
        do {
            auto page = tables.list_jobs(filter);
            for (const JobRow& row : page.items)
                ids.push_back(row.job.id);
            filter.after = page.next;
        } while (!filter.after.empty());
        EXPECT_EQ(ids.size(), 7U);
        EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
        filter.state = "dead";
        EXPECT_EQ(tables.list_jobs(filter).items.size(), 3U);
        filter.key = "payment:job-3";
        EXPECT_EQ(tables.list_jobs(filter).items.size(), 1U);
        filter.state = "no such state";
        EXPECT_TRUE(tables.list_jobs(filter).items.empty());
        filter.after = "x";
        EXPECT_THROW(tables.list_jobs(filter), Failure);
    });
}

}  // namespace
}  // namespace sekali::sqlite
