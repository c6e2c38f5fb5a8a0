#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "backends/redis/queue_jobs.hpp"
#include "backends/redis/queue_port.hpp"
#include "backends/redis/queue_rows.hpp"
#include "redis/redis_server.hpp"

namespace sekali::redis {
namespace {

using namespace std::chrono_literals;
using engine::AdminReply;
using engine::EnqueueReply;
using engine::EnqueueRequest;
using engine::JobRow;
using engine::JobState;
using sekali::testing::RedisServer;

constexpr auto kPatience = 20s;
constexpr QueueSettings kTestTime{
    .keep_ended = 1h,
    .clock = "local function clock() return tonumber(redis.call('get', 'clock')) end\n"};

class RedisQueue : public ::testing::Test {
 protected:
    RedisQueue() { server_.ask({"SET", "clock", "1700000000000"}); }
    ~RedisQueue() override { client_->close(); }

    static EnqueueRequest request(const std::string& id, const std::string& unique = {}) {
        EnqueueRequest request;
        request.job.id = request.job.key = id;
        request.job.kind = "charge";
        request.job.payload = "{\"id\":\"" + id + "\"}";
        request.job.fingerprint = "digest of " + id;
        request.job.unique_key = unique;
        return request;
    }
    EnqueueReply put(const EnqueueRequest& request) {
        return jobs_.enqueue({request}).at(0).value();
    }
    engine::Claimed claim(const std::string& worker, std::size_t limit = 100, bool draining = false,
                          std::vector<std::string> queues = {"default"}) {
        engine::Claim command;
        command.spec = {.ns = "default",
                        .queues = std::move(queues),
                        .kinds = {"charge", "mail"},
                        .limit = limit};
        command.worker = worker;
        command.lease = 15s;
        command.draining = draining;
        return std::get<engine::Claimed>(send(std::move(command)).value());
    }
    engine::RunRef claim_one(const std::string& worker) {
        const auto deliveries = claim(worker, 1).deliveries;
        return deliveries.empty() ? engine::RunRef{} : run_of(deliveries[0]);
    }
    static engine::RunRef run_of(const engine::Delivery& delivery) {
        engine::RunRef run;
        run.job_id = delivery.row.job.id;
        run.record = {"default", delivery.row.job.kind, delivery.row.job.key};
        run.worker = delivery.row.owner;
        run.delivery = delivery.row.deliveries;
        return run;
    }
    Result<engine::QueueReply> send(engine::QueueCommand command) {
        std::promise<Result<engine::QueueReply>> answered;
        std::vector<QueuePort::Call> calls;
        calls.push_back({std::move(command), [&](Result<engine::QueueReply> reply) {
                             answered.set_value(std::move(reply));
                         }});
        port_.submit(std::move(calls));
        return answered.get_future().get();
    }
    bool settle(const engine::RunRef& run, JobState state, std::string reason = {},
                Millis delay = 0ms) {
        QueueEnd end;
        end.run = run;
        end.state = state;
        end.reason = std::move(reason);
        end.delay = delay;
        end.attempts = 1;
        end.error = "it failed";
        return jobs_.settle("default", end).value();
    }
    JobRow job(const std::string& id) { return jobs_.find("default", id).value().value(); }
    bool exists(const std::string& id) { return jobs_.find("default", id).value().has_value(); }
    AdminReply::Kind cancel(const std::string& id) {
        return jobs_.cancel("default", id, "operator", "cancelled").value().kind;
    }
    void advance(Millis by) { server_.ask({"INCRBY", "clock", std::to_string(by.count())}); }
    /// Keys that belong to no queue as such: what is left when all jobs are gone.
    std::vector<std::string> leftovers() {
        std::vector<std::string> names;
        for (const Reply& key : server_.ask({"KEYS", "sekali:*"}).items) {
            const bool stays = key.text == queue_key("default", "default") ||
                               key.text == queue_key("default", "default") + ":kinds" ||
                               key.text == queues_key("default");
            if (!stays) names.push_back(key.text);
        }
        return names;
    }

    RedisServer server_;
    Loop loop_;
    std::shared_ptr<Client> client_ =
        std::make_shared<Client>(loop_, parse_address(server_.url()).value(), nullptr);
    QueuePort port_{client_, kTestTime};
    QueueJobs jobs_{client_, kTestTime};
};

// ---- enqueue

TEST_F(RedisQueue, G11_EveryByteAndFieldOfAJobComesBack) {
    EnqueueRequest sent = request("j1");
    engine::Envelope& all = sent.job;
    all.payload = std::string("\"\x00\xff \r\n}:job:{ \xc3\xa4 0.10000000000000000555\"", 38);
    all.key = "a:b}:job:c";
    all.lock_key = "order:\xc3\xa4";
    all.unique_key = "u:1";
    all.unique_until = UniqueUntil::kStart;
    all.priority = 7;
    all.retry.base = 1500ms;
    all.retry.jitter = 0.1;
    all.retry.max_attempts = 3;
    all.fingerprint_rule = "fields:/a";
    all.named_end = 4;
    put(sent);
    const auto deliveries = claim("A").deliveries;
    ASSERT_EQ(deliveries.size(), 1U);
    const engine::Envelope& got = deliveries[0].row.job;
    EXPECT_EQ(got.payload, all.payload);
    EXPECT_EQ(got.key, all.key);
    EXPECT_EQ(got.lock_key, all.lock_key);
    EXPECT_EQ(got.unique_key, all.unique_key);
    EXPECT_EQ(got.unique_until, all.unique_until);
    EXPECT_EQ(got.priority, 7);
    EXPECT_EQ(got.retry.base, all.retry.base);
    EXPECT_EQ(got.retry.jitter, all.retry.jitter);
    EXPECT_EQ(got.retry.max_attempts, all.retry.max_attempts);
    EXPECT_EQ(got.retry.cap, std::nullopt);
    EXPECT_EQ(got.fingerprint, all.fingerprint);
    EXPECT_EQ(got.fingerprint_rule, all.fingerprint_rule);
    EXPECT_EQ(got.named_end, 4U);
}

TEST_F(RedisQueue, G9_ARepeatedRequestIsTheSameJobAndAnotherOneIsRefused) {
    put(request("j1", "u"));
    EXPECT_EQ(put(request("j1", "u")).kind, EnqueueReply::Kind::kEnqueued);
    EnqueueRequest other = request("j1");
    other.job.fingerprint = "another";
    const EnqueueReply refused = put(other);
    EXPECT_EQ(refused.kind, EnqueueReply::Kind::kIdTaken);
    EXPECT_EQ(refused.winner.value().job.fingerprint, "digest of j1");
    EXPECT_EQ(claim("A").deliveries.size(), 1U);
}

TEST_F(RedisQueue, ManyJobsOfSeveralQueuesKeepTheirOrder) {
    std::vector<EnqueueRequest> requests;
    for (int i = 0; i < 1000; ++i) {
        requests.push_back(request("j" + std::to_string(i)));
        if (i % 3 == 0) requests.back().job.queue = "other";
    }
    for (const auto& reply : jobs_.enqueue(requests))
        EXPECT_EQ(reply.value().kind, EnqueueReply::Kind::kEnqueued);
    std::map<std::string, std::vector<int>> seen;
    for (std::size_t left = 1000; left > 0;) {
        const auto deliveries = claim("A", 300, false, {"default", "other"}).deliveries;
        ASSERT_FALSE(deliveries.empty());
        left -= deliveries.size();
        for (const auto& delivery : deliveries)
            seen[delivery.row.job.queue].push_back(std::stoi(delivery.row.job.id.substr(1)));
    }
    for (const auto& [queue, numbers] : seen)
        EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << queue;
    EXPECT_EQ(seen["default"].size() + seen["other"].size(), 1000U);
}

// ---- unique keys

TEST_F(RedisQueue, G9_OneLiveJobForAUniqueKeyInAllQueues) {
    put(request("j1", "u"));
    EnqueueRequest second = request("j2", "u");
    second.job.queue = "other";
    const EnqueueReply refused = put(second);
    EXPECT_EQ(refused.kind, EnqueueReply::Kind::kDuplicate);
    EXPECT_EQ(refused.winner.value().job.id, "j1");
    EnqueueRequest mail = request("j3", "u");
    mail.job.kind = "mail";
    EXPECT_EQ(put(mail).kind, EnqueueReply::Kind::kEnqueued) << "another kind's key";
}

TEST_F(RedisQueue, G9_EveryWayOutFreesTheSlot) {
    int n = 0;
    const auto fresh = [&] { return "j" + std::to_string(++n); };
    const auto expect_free = [&](const std::string& after) {
        EXPECT_EQ(put(request(fresh(), "u")).kind, EnqueueReply::Kind::kEnqueued) << after;
    };
    expect_free("nothing");
    cancel("j1");
    expect_free("cancel");
    send(engine::Acknowledge{claim_one("A")}).value();
    expect_free("acknowledge");
    settle(claim_one("A"), JobState::kSucceeded);
    expect_free("success");
    settle(claim_one("A"), JobState::kDead, "permanent");
    expect_free("death");
    jobs_.purge("default", "default", "operator").value();
    expect_free("purge");
    jobs_.free_unique("default", "j6", "operator").value();
    expect_free("being freed");
}

TEST_F(RedisQueue, G9_ASlotOutlivesAnyLeaseButNotItsJob) {
    put(request("j1", "u"));
    advance(std::chrono::hours{24 * 60});
    EXPECT_EQ(put(request("j2", "u")).kind, EnqueueReply::Kind::kDuplicate);
    server_.ask({"DEL", queue_key("default", "default") + ":job:j1"});
    EXPECT_EQ(put(request("j3", "u")).kind, EnqueueReply::Kind::kEnqueued);
}

TEST_F(RedisQueue, G9_AJobFreesNoSlotButItsOwn) {
    put(request("j1", "u"));
    jobs_.free_unique("default", "j1", "operator").value();
    put(request("j2", "u"));
    cancel("j1");
    EXPECT_EQ(put(request("j3", "u")).winner.value().job.id, "j2");
}

TEST_F(RedisQueue, G9_UntilStartPromisesOneUnstartedJob) {
    EnqueueRequest first = request("j1", "u");
    first.job.unique_until = UniqueUntil::kStart;
    put(first);
    const engine::RunRef run = claim_one("A");
    send(engine::Return{run, std::nullopt}).value();
    EXPECT_EQ(put(request("j2", "u")).kind, EnqueueReply::Kind::kDuplicate) << "it was handed back";
    claim_one("A");
    EXPECT_EQ(put(request("j2", "u")).kind, EnqueueReply::Kind::kEnqueued);
}

TEST_F(RedisQueue, ReplaceCancelsAWaitingHolder) {
    put(request("j1", "u"));
    EnqueueRequest second = request("j2", "u");
    second.on_duplicate = OnDuplicate::kReplace;
    const EnqueueReply reply = put(second);
    EXPECT_EQ(reply.kind, EnqueueReply::Kind::kReplaced);
    EXPECT_EQ(reply.winner.value().job.id, "j1");
    EXPECT_EQ(job("j1").state, JobState::kCancelled);
    EXPECT_EQ(job("j1").reason, "replaced");
    EXPECT_EQ(claim_one("A").job_id, "j2");
}

TEST_F(RedisQueue, ReplaceLeavesOneFollowUpBehindARunningJob) {
    put(request("j1", "u"));
    const engine::RunRef running = claim_one("A");
    for (const char* id : {"j2", "j3"}) {
        EnqueueRequest next = request(id, "u");
        next.on_duplicate = OnDuplicate::kReplace;
        EXPECT_EQ(put(next).kind, EnqueueReply::Kind::kReplaced);
    }
    EXPECT_EQ(job("j2").state, JobState::kCancelled);
    EXPECT_EQ(job("j3").state, JobState::kWaiting);
    EXPECT_EQ(job("j3").waiting_name, "j1");
    EXPECT_TRUE(claim("B").deliveries.empty());
    EXPECT_TRUE(settle(running, JobState::kSucceeded));
    EXPECT_EQ(claim_one("B").job_id, "j3");
    EXPECT_EQ(put(request("j4", "u")).winner.value().job.id, "j3");
}

// ---- claims and their ends

TEST_F(RedisQueue, G1_AClaimIsRecordedBeforeItIsHandedOut) {
    put(request("j1"));
    claim_one("A");
    const JobRow row = job("j1");
    EXPECT_EQ(row.state, JobState::kRunning);
    EXPECT_EQ(row.owner, "A");
    EXPECT_EQ(row.deliveries, 1U);
    EXPECT_GT(row.lease_until, row.run_at);
}

TEST_F(RedisQueue, G10_ARetryComesAfterItsDelayWithItsPayloadAndCounters) {
    put(request("j1"));
    EXPECT_TRUE(settle(claim_one("A"), JobState::kScheduled, {}, 30s));
    EXPECT_TRUE(claim("A").deliveries.empty());
    advance(30s);
    const auto again = claim("A").deliveries;
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].row.attempts, 1U);
    EXPECT_EQ(again[0].row.error, "it failed");
    EXPECT_EQ(again[0].row.job.payload, request("j1").job.payload);
}

TEST_F(RedisQueue, G3_ALateEndOfAnEarlierClaimIsRefused) {
    put(request("j1"));
    const engine::RunRef late = claim_one("A");
    advance(16s);
    claim_one("B");
    EXPECT_FALSE(settle(late, JobState::kSucceeded));
    EXPECT_EQ(job("j1").owner, "B");
}

TEST_F(RedisQueue, G8_ClaimsThatDieAreBoundedAndAHandBackIsNone) {
    put(request("j1"));
    for (int i = 0; i < 19; ++i) {
        ASSERT_EQ(claim("A").deliveries.size(), 1U) << i;
        advance(16s);
    }
    send(engine::Return{claim_one("A"), std::nullopt}).value();
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(claim("A").deliveries.size(), 1U) << i;
        advance(16s);
    }
    EXPECT_TRUE(claim("A").deliveries.empty());
    EXPECT_EQ(job("j1").state, JobState::kHeld);
    EXPECT_EQ(job("j1").reason, "claims_lost");
}

TEST_F(RedisQueue, DrainedMeansThatNothingRunsAndNoRetryIsDue) {
    EnqueueRequest delayed = request("later");
    delayed.delay = 1h;
    put(delayed);
    put(request("j1"));
    const engine::RunRef run = claim_one("A");
    EXPECT_FALSE(claim("B", 10, true).drained) << "one runs";
    settle(run, JobState::kScheduled, {}, 10min);
    EXPECT_FALSE(claim("B", 10, true).drained) << "its retry is due later";
    advance(10min);
    send(engine::Acknowledge{claim_one("B")}).value();
    EXPECT_TRUE(claim("B", 10, true).drained) << "a delayed job is not waited for";
}

TEST_F(RedisQueue, WhatIsAcknowledgedLeavesNothingBehind) {
    put(request("j1", "u"));
    send(engine::Acknowledge{claim_one("A")}).value();
    EXPECT_FALSE(exists("j1"));
    EXPECT_EQ(leftovers(), std::vector<std::string>{});
}

TEST_F(RedisQueue, WhatEndedIsForgottenInTimeButNoDeadLetter) {
    put(request("j1"));
    settle(claim_one("A"), JobState::kSucceeded);
    EXPECT_EQ(job("j1").state, JobState::kSucceeded);
    EXPECT_EQ(job("j1").job.payload, "") << "nobody needs it any more";
    put(request("j2"));
    settle(claim_one("A"), JobState::kDead, "permanent");
    advance(1h);
    claim("A");
    EXPECT_FALSE(exists("j1"));
    EXPECT_EQ(job("j2").state, JobState::kDead);
}

// ---- people

TEST_F(RedisQueue, ACancelEndsWhatHasNotStartedAndAsksWhatRuns) {
    put(request("j1"));
    EXPECT_EQ(cancel("j1"), AdminReply::Kind::kDone);
    EXPECT_EQ(cancel("j1"), AdminReply::Kind::kWrongState);
    EXPECT_EQ(cancel("nobody"), AdminReply::Kind::kNotFound);
    put(request("j2"));
    const engine::RunRef run = claim_one("A");
    EXPECT_EQ(cancel("j2"), AdminReply::Kind::kRequested);
    EXPECT_TRUE(job("j2").cancel_requested);
    settle(run, JobState::kScheduled, {}, 30s);
    EXPECT_EQ(job("j2").state, JobState::kCancelled) << "instead of its retry";
    EXPECT_EQ(job("j2").requested_by, "operator");
}

TEST_F(RedisQueue, G10_ADeadLetterIsRetriedWithItsKeyAndTakesItsSlotAgain) {
    put(request("j1", "u"));
    settle(claim_one("A"), JobState::kDead, "permanent");
    put(request("j2", "u"));
    const AdminReply refused = jobs_.retry_dead("default", "j1", "operator").value();
    EXPECT_EQ(refused.kind, AdminReply::Kind::kSlotTaken);
    EXPECT_EQ(refused.winner.value().job.id, "j2");
    cancel("j2");
    EXPECT_EQ(jobs_.retry_dead("default", "j1", "operator").value().kind, AdminReply::Kind::kDone);
    const auto again = claim("A").deliveries;
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].row.job.payload, request("j1").job.payload);
    EXPECT_EQ(again[0].row.attempts, 0U);
    EXPECT_EQ(again[0].row.deliveries, 2U);
    EXPECT_EQ(put(request("j3", "u")).winner.value().job.id, "j1");
}

TEST_F(RedisQueue, ADeadLetterThatIsDroppedIsGone) {
    put(request("j1"));
    EXPECT_EQ(jobs_.drop_dead("default", "j1", "operator").value().kind,
              AdminReply::Kind::kWrongState);
    settle(claim_one("A"), JobState::kDead, "permanent");
    EXPECT_EQ(jobs_.drop_dead("default", "j1", "operator").value().kind, AdminReply::Kind::kDone);
    EXPECT_EQ(leftovers(), std::vector<std::string>{});
}

TEST_F(RedisQueue, AWaitingRetryRunsNow) {
    put(request("j1"));
    settle(claim_one("A"), JobState::kScheduled, {}, 1h);
    EXPECT_EQ(jobs_.retry_now("default", "j1", "operator").value().kind, AdminReply::Kind::kDone);
    EXPECT_EQ(claim_one("A").job_id, "j1");
}

TEST_F(RedisQueue, APurgeEndsAllThatHasNotStarted) {
    std::vector<EnqueueRequest> requests;
    for (int i = 0; i < 1200; ++i) {
        requests.push_back(request("j" + std::to_string(i)));
        if (i % 2 == 0) requests.back().delay = 1h;
    }
    for (const auto& reply : jobs_.enqueue(requests))
        ASSERT_TRUE(reply.ok());
    claim("A", 10);
    EXPECT_EQ(jobs_.purge("default", "default", "operator").value(), 1190U);
    EXPECT_TRUE(claim("A").deliveries.empty());
    EXPECT_EQ(jobs_.counts("default").value().at(0).by_state.at("running"), 10U);
}

TEST_F(RedisQueue, ListsGoPageByPageThroughAllQueues) {
    for (int i = 0; i < 7; ++i) {
        EnqueueRequest one = request("j" + std::to_string(i));
        if (i >= 4) one.job.queue = "other";
        put(one);
    }
    cancel("j1");
    engine::JobFilter filter;
    filter.ns = "default";
    filter.state = "ready";
    filter.limit = 2;
    std::vector<std::string> seen;
    do {
        const auto page = jobs_.list(filter).value();
        EXPECT_LE(page.items.size(), 2U);
        for (const JobRow& row : page.items)
            seen.push_back(row.job.id);
        filter.after = page.next;
    } while (!filter.after.empty());
    EXPECT_EQ(seen, (std::vector<std::string>{"j0", "j2", "j3", "j4", "j5", "j6"}));
}

TEST_F(RedisQueue, CountsSayWhatEachQueueHas) {
    put(request("j1"));
    put(request("j2"));
    EnqueueRequest delayed = request("j3");
    delayed.delay = 1h;
    put(delayed);
    claim_one("A");
    jobs_.pause("default", "default", true).value();
    const auto counts = jobs_.counts("default").value();
    ASSERT_EQ(counts.size(), 1U);
    EXPECT_TRUE(counts[0].paused);
    EXPECT_EQ(counts[0].by_state.at("ready"), 1U);
    EXPECT_EQ(counts[0].by_state.at("running"), 1U);
    EXPECT_EQ(counts[0].by_state.at("scheduled"), 1U);
    EXPECT_TRUE(counts[0].oldest_ready);
}

// ---- a server in trouble

TEST_F(RedisQueue, AnEnqueueWakesWhoListens) {
    std::promise<void> subscribed;
    std::promise<void> woken;
    int told = 0;
    loop_.run([&] {
        port_.listen("default", "default", [&] {
            ++told;
            if (told == 1) subscribed.set_value();
            if (told == 2) woken.set_value();
        });
    });
    ASSERT_EQ(subscribed.get_future().wait_for(kPatience), std::future_status::ready);
    put(request("j1"));
    EXPECT_EQ(woken.get_future().wait_for(kPatience), std::future_status::ready);
    loop_.run([&] { port_.forget("default", "default"); });
}

TEST_F(RedisQueue, ScriptsAreLoadedAgain) {
    put(request("j1"));
    server_.ask({"SCRIPT", "FLUSH"});
    EXPECT_EQ(claim_one("A").job_id, "j1");
}

TEST_F(RedisQueue, G1_AKeyOfAnotherTypeIsReportedAndLosesNothing) {
    put(request("j1"));
    server_.ask({"SET", queue_key("default", "default") + ":ready:mail", "stranger"});
    engine::Claim command;
    command.spec = {.ns = "default", .queues = {"default"}, .kinds = {"mail"}, .limit = 1};
    command.worker = "A";
    command.lease = 15s;
    const auto refused = send(std::move(command));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(job("j1").state, JobState::kReady);
}

TEST(RedisQueueCrash, G1_WhatWasAnsweredSurvivesAServerThatSyncsAlways) {
    RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
    Loop loop;
    const auto client =
        std::make_shared<Client>(loop, parse_address(server.url()).value(), nullptr);
    QueueJobs jobs(client, {});
    std::vector<EnqueueRequest> requests(300);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].job.id = requests[i].job.key = "j" + std::to_string(i);
        requests[i].job.kind = "charge";
        requests[i].job.unique_key = "u" + std::to_string(i);
    }
    for (const auto& reply : jobs.enqueue(requests))
        ASSERT_TRUE(reply.ok());
    server.stop();
    server.start();
    for (const auto& reply : jobs.enqueue(requests))
        EXPECT_EQ(reply.value().kind, EnqueueReply::Kind::kEnqueued) << "each knows itself";
    EXPECT_EQ(jobs.counts("default").value().at(0).by_state.at("ready"), 300U);
    client->close();
}

/// By the server's own clock, with several workers on connections of their own.
TEST(RedisQueueRace, G1_EveryJobIsAcknowledgedOnceByOneOfMany) {
    constexpr int kJobs = 3000;
    RedisServer server;
    Loop loop;
    const auto client =
        std::make_shared<Client>(loop, parse_address(server.url()).value(), nullptr);
    QueueJobs jobs(client, {});
    std::vector<EnqueueRequest> requests;
    for (int i = 0; i < kJobs; ++i) {
        EnqueueRequest one;
        one.job.id = one.job.key = "j" + std::to_string(i);
        one.job.kind = "charge";
        one.job.payload = "{}";
        requests.push_back(std::move(one));
    }
    for (const auto& reply : jobs.enqueue(requests))
        ASSERT_TRUE(reply.ok());

    std::mutex mutex;
    std::multiset<std::string> worked;
    const auto work = [&](const std::string& name) {
        Loop own_loop;
        const auto own =
            std::make_shared<Client>(own_loop, parse_address(server.url()).value(), nullptr);
        QueuePort port(own, {});
        const auto send = [&](engine::QueueCommand command) {
            std::promise<Result<engine::QueueReply>> answered;
            std::vector<QueuePort::Call> calls;
            calls.push_back({std::move(command), [&](Result<engine::QueueReply> reply) {
                                 answered.set_value(std::move(reply));
                             }});
            port.submit(std::move(calls));
            return answered.get_future().get().value();
        };
        for (bool drained = false; !drained;) {
            engine::Claim command;
            command.spec = {
                .ns = "default", .queues = {"default"}, .kinds = {"charge"}, .limit = 50};
            command.worker = name;
            command.lease = 60s;
            command.draining = true;
            const auto claimed = std::get<engine::Claimed>(send(std::move(command)));
            drained = claimed.drained;
            for (const engine::Delivery& delivery : claimed.deliveries) {
                engine::RunRef run;
                run.job_id = delivery.row.job.id;
                run.worker = name;
                run.delivery = delivery.row.deliveries;
                {
                    const std::lock_guard guard(mutex);
                    worked.insert(run.job_id);
                }
                send(engine::Acknowledge{run});
            }
        }
        own->close();
    };
    std::vector<std::thread> workers;
    for (const char* name : {"A", "B", "C", "D"})
        workers.emplace_back(work, name);
    for (std::thread& worker : workers)
        worker.join();
    EXPECT_EQ(worked.size(), std::size_t{kJobs});
    EXPECT_EQ(std::set<std::string>(worked.begin(), worked.end()).size(), std::size_t{kJobs});
    client->close();
}

}  // namespace
}  // namespace sekali::redis
