#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <thread>

#include "redis/redis_server.hpp"
#include "sekali/lock.hpp"
#include "sekali/worker.hpp"

// A worker whose lock keys are taken in a Redis too, where others take them as well.
namespace sekali {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::RedisServer;

constexpr auto kPatience = 20s;
/// Recovery looks at lines that stand still once a second; a wake-up is sooner.
constexpr auto kWoken = 700ms;

class WorkerLocks : public ::testing::Test {
 protected:
    std::string store() const { return "sqlite:" + (redis_.folder() / "jobs.db").string(); }
    WorkerOptions options() const {
        WorkerOptions options;
        options.concurrency = 4;
        options.lock_url = redis_.url();
        options.lock_prefix = "";
        return options;
    }
    void enqueue(Worker& worker, const std::string& kind, const std::string& lock) {
        EnqueueOptions how;
        how.lock = lock;
        ASSERT_TRUE(worker.client().enqueue(RawJob{kind, "{}"}, how).ok());
    }
    LockClient foreign(const std::string& more = {}) {
        return LockClient::open(redis_.url() + more, {.prefix = ""}).value();
    }
    std::string state_of(Worker& worker, const std::string& id) {
        return worker.client().show(id).value().state;
    }

    RedisServer redis_;
};

/// Runs the worker until the test is over.
class Running {
 public:
    explicit Running(Worker& worker)
        : thread_([&worker](const std::stop_token& stop) { worker.run(stop).value(); }) {}

 private:
    std::jthread thread_;
};

TEST_F(WorkerLocks, AJobHoldsItsKeyWhereOthersSeeIt) {
    Worker worker = Worker::open(store(), options()).value();
    std::promise<void> inside;
    std::promise<void> go_on;
    worker.handle_raw("mail", [&](Context&) {
        inside.set_value();
        go_on.get_future().wait();
        return success();
    });
    enqueue(worker, "mail", "order:1");
    const Running running(worker);
    ASSERT_EQ(inside.get_future().wait_for(kPatience), std::future_status::ready);
    LockClient others = foreign();
    EXPECT_EQ(others.try_lock("order:1").error().code, ErrorCode::kConflict);
    go_on.set_value();
    EXPECT_TRUE(others.lock("order:1", kPatience).ok());
}

TEST_F(WorkerLocks, AJobWaitsVisiblyForAForeignHolderAndIsWokenByTheRelease) {
    LockClient others = foreign();
    auto held = others.try_lock("order:1").value();
    Worker worker = Worker::open(store(), options()).value();
    std::promise<steady_clock::time_point> ran;
    worker.handle_raw("mail", [&](Context&) {
        ran.set_value(steady_clock::now());
        return success();
    });
    EnqueueOptions how;
    how.lock = "order:1";
    const std::string id = worker.client().enqueue(RawJob{"mail", "{}"}, how).value().id;
    const Running running(worker);
    while (
        worker.client().show(id).value().waiting_for != "lock:order:1" ||
        redis_.ask({"PUBSUB", "NUMSUB", "redisson_lock__channel:{order:1}"}).items.at(1).integer ==
            0)
        std::this_thread::yield();
    const auto freed = steady_clock::now();
    ASSERT_TRUE(held.release().ok());
    auto result = ran.get_future();
    ASSERT_EQ(result.wait_for(kPatience), std::future_status::ready);
    EXPECT_LT(result.get() - freed, kWoken);
    while (state_of(worker, id) != "succeeded")
        std::this_thread::yield();
    EXPECT_EQ(worker.client().show(id).value().attempts, 1U);
}

TEST_F(WorkerLocks, JobsOfOneKeyRunOneAtATimeOnTwoWorkers) {
    Worker one = Worker::open(store(), options()).value();
    Worker two = Worker::open(store(), options()).value();
    constexpr int kJobs = 20;
    std::atomic<int> inside = 0;
    std::atomic<int> done = 0;
    std::promise<void> all;
    for (Worker* worker : {&one, &two}) {
        worker->handle_raw("mail", [&](Context&) {
            EXPECT_EQ(++inside, 1);
            std::this_thread::yield();
            --inside;
            if (++done == kJobs) all.set_value();
            return success();
        });
    }
    for (int i = 0; i < kJobs; ++i)
        enqueue(one, "mail", "balance");
    const Running first(one);
    const Running second(two);
    ASSERT_EQ(all.get_future().wait_for(3 * kPatience), std::future_status::ready);
}

TEST_F(WorkerLocks, G8_AnOutageOfTheLocksCostsNoAttempt) {
    Worker worker = Worker::open(store(), options()).value();
    std::promise<void> ran;
    worker.handle_raw("mail", [&](Context&) {
        ran.set_value();
        return success();
    });
    EnqueueOptions how;
    how.lock = "order:1";
    redis_.stop();
    const std::string id = worker.client().enqueue(RawJob{"mail", "{}"}, how).value().id;
    const Running running(worker);
    while (worker.client().show(id).value().deliveries < 1)
        std::this_thread::yield();
    redis_.start();
    ASSERT_EQ(ran.get_future().wait_for(kPatience), std::future_status::ready);
    while (state_of(worker, id) != "succeeded")
        std::this_thread::yield();
    EXPECT_EQ(worker.client().show(id).value().attempts, 1U);
}

TEST_F(WorkerLocks, ProceedRunsWithoutTheService) {
    redis_.stop();
    Worker worker = Worker::open(store(), options()).value();
    std::promise<void> ran;
    HandlerOptions how;
    how.on_lock_unavailable = OnLockUnavailable::kProceed;
    worker.handle_raw(
        "mail",
        [&](Context&) {
            ran.set_value();
            return success();
        },
        how);
    enqueue(worker, "mail", "order:1");
    const Running running(worker);
    EXPECT_EQ(ran.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(WorkerLocks, B07_ALostLockStopsTheRun) {
    Worker worker = Worker::open(store(), options()).value();
    std::promise<void> inside;
    std::promise<void> stopped;
    HandlerOptions how;
    how.lock_ttl = 600ms;
    worker.handle_raw(
        "mail",
        [&](Context& ctx) {
            inside.set_value();
            std::promise<void> asked;
            const std::stop_callback callback(ctx.stop_token(), [&] { asked.set_value(); });
            if (asked.get_future().wait_for(kPatience) == std::future_status::ready) {
                stopped.set_value();
            }
            return cancel("stopped");
        },
        how);
    enqueue(worker, "mail", "order:1");
    const Running running(worker);
    ASSERT_EQ(inside.get_future().wait_for(kPatience), std::future_status::ready);
    redis_.ask({"FLUSHALL"});
    redis_.ask({"HSET", "order:1", "another", "1"});
    redis_.ask({"PEXPIRE", "order:1", "60000"});
    EXPECT_EQ(stopped.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(WorkerLocks, ALockOfAHandlerIsTheStores) {
    Worker worker = Worker::open(store(), options()).value();
    std::promise<void> ran;
    worker.handle_raw("mail", [&](Context& ctx) {
        ctx.lock("more", 1s);
        ran.set_value();
        return success();
    });
    enqueue(worker, "mail", "order:1");
    const Running running(worker);
    EXPECT_EQ(ran.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace sekali
