#include "observe/job_view.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace sekali::observe {
namespace {

class JobViewTest : public StoreFixture {
 protected:
    nlohmann::json item(const std::string& id) {
        const auto text = transact([&](engine::Tables& tables) {
            const auto job = find_job(tables, "default", id);
            std::string out;
            base::JsonWriter json(out);
            if (job) write_item(json, *job);
            return out;
        });
        return nlohmann::json::parse(text);
    }
    std::vector<std::string> ids(engine::JobFilter filter) {
        filter.ns = "default";
        std::vector<std::string> out;
        do {
            const auto page =
                transact([&](engine::Tables& tables) { return list_jobs(tables, filter); });
            for (const JobView& job : page.items)
                out.push_back(job.row.job.id);
            EXPECT_LE(page.items.size(), filter.limit);
            filter.after = page.next;
        } while (!filter.after.empty());
        return out;
    }
};

TEST_F(JobViewTest, AnItemHasEveryFieldAlways) {
    const nlohmann::json job = item(enqueue({}));
    for (const char* name :
         {"id",         "kind",        "queue",   "state",       "key",    "lock_key",
          "unique_key", "attempts",    "crashes", "deliveries",  "epoch",  "max_attempts",
          "priority",   "enqueued_at", "run_at",  "finished_at", "worker", "waiting_for",
          "result",     "error",       "reason"}) {
        EXPECT_TRUE(job.contains(name)) << name;
    }
    EXPECT_EQ(job.size(), 21U);
    EXPECT_EQ(job["state"], "ready");
    EXPECT_EQ(job["max_attempts"], 10);
    EXPECT_TRUE(job["lock_key"].is_null());
    EXPECT_TRUE(job["result"].is_null());
    EXPECT_TRUE(job["worker"].is_null());
}

TEST_F(JobViewTest, AReadyJobOfAPausedQueueWaits) {
    add_worker("w1");
    const std::string id = enqueue({});
    EXPECT_EQ(item(id)["state"], "ready");
    transact([](engine::Tables& tables) {
        engine::pause_queue(tables, "default", "default", true);
        return true;
    });
    EXPECT_EQ(item(id)["state"], "waiting");
    EXPECT_EQ(item(id)["waiting_for"], "pause");
}

TEST_F(JobViewTest, AReadyJobWithoutAHandlerWaitsOnceSomebodyServesItsQueue) {
    const std::string id = enqueue({.kind = "mail.send"});
    EXPECT_EQ(item(id)["state"], "ready");
    add_worker("w1");
    EXPECT_EQ(item(id)["state"], "waiting");
    EXPECT_EQ(item(id)["waiting_for"], "handler");
    add_worker("w2", {"mail.send"});
    EXPECT_EQ(item(id)["state"], "ready");
}

TEST_F(JobViewTest, AWorkerIsGoneWithItsLeaseOrItsProcess) {
    add_worker("w1");
    const std::string id = enqueue({.kind = "mail.send"});
    EXPECT_EQ(item(id)["waiting_for"], "handler");
    store_.set_dead("w1");
    EXPECT_EQ(item(id)["state"], "ready");
    add_worker("w2");
    EXPECT_EQ(item(id)["waiting_for"], "handler");
    store_.advance(Millis{60'001});
    EXPECT_EQ(item(id)["state"], "ready");
}

TEST_F(JobViewTest, ADelayedJobIsReadyWhenItsTimeHasCome) {
    const std::string id = enqueue({}, Millis{5000});
    EXPECT_EQ(item(id)["state"], "scheduled");
    store_.advance(Millis{5000});
    EXPECT_EQ(item(id)["state"], "ready");
}

TEST_F(JobViewTest, AParkedJobNamesWhatItWaitsFor) {
    const std::string first = enqueue({.lock_key = "order:1"});
    const std::string second = enqueue({.lock_key = "order:1"});
    for (const engine::Delivery& delivery : claim("w1"))
        begin(delivery, "w1");
    EXPECT_EQ(item(first)["state"], "running");
    EXPECT_EQ(item(first)["worker"], "w1");
    EXPECT_EQ(item(second)["state"], "waiting");
    EXPECT_EQ(item(second)["waiting_for"], "lock:order:1");
}

TEST_F(JobViewTest, ListsByTheStateThatIsShown) {
    add_worker("w1");
    const std::string ready = enqueue({});
    const std::string unhandled = enqueue({.kind = "mail.send"});
    const std::string delayed = enqueue({}, Millis{5000});
    for (const std::size_t limit : {1, 2, 100}) {
        EXPECT_EQ(ids({.state = "ready", .limit = limit}), std::vector{ready});
        EXPECT_EQ(ids({.state = "waiting", .limit = limit}), std::vector{unhandled});
        EXPECT_EQ(ids({.state = "scheduled", .limit = limit}), std::vector{delayed});
        EXPECT_EQ(ids({.limit = limit}), (std::vector{ready, unhandled, delayed}));
    }
    store_.advance(Millis{5000});
    for (const std::size_t limit : {1, 2, 100}) {
        EXPECT_EQ(ids({.state = "ready", .limit = limit}), (std::vector{ready, delayed}));
        EXPECT_TRUE(ids({.state = "scheduled", .limit = limit}).empty());
    }
}

TEST_F(JobViewTest, RefusesWhatIsNoStateAndNoContinuation) {
    EXPECT_THROW(ids({.state = "lost"}), Failure);
    for (const char* after : {"9:", "x", "0", ":"})
        EXPECT_THROW(ids({.state = "ready", .after = after}), Failure) << after;
}

TEST(WriteResult, ShowsJsonAsJsonOnOneLineAndAllElseAsText) {
    const auto shown = [](std::string_view result) {
        std::string out;
        base::JsonWriter json(out);
        write_result(json, result);
        return out;
    };
    EXPECT_EQ(shown(""), "null");
    EXPECT_EQ(shown("{\n  \"a b\": [1, \"x\\\"\\\\ y\"]\n}\n"), R"({"a b":[1,"x\"\\ y"]})");
    EXPECT_EQ(shown("ok\n"), R"("ok\n")");
    EXPECT_EQ(shown("1 2"), R"("1 2")");
    EXPECT_EQ(shown("12\n"), "12");
}

}  // namespace
}  // namespace sekali::observe
