#include "sekali/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "sekali/middleware.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::Context;
using sekali::Outcome;

struct Greet {
    std::string name;
    static constexpr std::string_view kKind = "greet";
    static constexpr auto kFields = sekali::fields(sekali::field("name", &Greet::name));
};
struct Note {
    std::int64_t number = 0;
    static constexpr std::string_view kKind = "note";
    static constexpr auto kFields = sekali::fields(sekali::field("number", &Note::number));
};

sekali::Worker memory_worker(std::size_t concurrency = 4) {
    sekali::WorkerOptions options;
    options.concurrency = concurrency;
    options.drain = true;
    return sekali::Worker::open("memory:", options).value();
}

std::string state_of(sekali::Worker& worker, const std::string& id) {
    return worker.client().show(id).value().state;
}

TEST(Worker, RunsAJobAndStoresItsResult) {
    auto worker = memory_worker();
    worker.handle<Greet>([](Context& ctx, const Greet& job) {
        EXPECT_EQ(ctx.job().kind, "greet");
        EXPECT_EQ(ctx.attempt(), 1U);
        EXPECT_EQ(ctx.epoch(), 1U);
        EXPECT_FALSE(ctx.stop_token().stop_requested());
        EXPECT_GT(ctx.deadline(), std::chrono::steady_clock::now());
        return "hello " + job.name;
    });
    const auto enqueued = worker.client().enqueue(Greet{"you"}, {.key = "greet:you"}).value();
    EXPECT_EQ(enqueued.status, sekali::Enqueued::Status::kEnqueued);
    EXPECT_TRUE(worker.run().value().drained);
    const auto job = worker.client().show(enqueued.id).value();
    EXPECT_EQ(job.state, "succeeded");
    EXPECT_EQ(job.result, R"("hello you")");
    EXPECT_EQ(job.key, "greet:you");
}

TEST(Worker, DuplicateOfAKeyRunsNothing) {
    auto worker = memory_worker(1);
    std::atomic<int> runs = 0;
    worker.handle<Greet>([&](Context&, const Greet&) { ++runs; });
    const auto first = worker.client().enqueue(Greet{"a"}, {.key = "k"}).value();
    const auto second = worker.client().enqueue(Greet{"a"}, {.key = "k"}).value();
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(state_of(worker, first.id), "succeeded");
    EXPECT_EQ(state_of(worker, second.id), "duplicate");
    EXPECT_EQ(worker.client().show(second.id).value().result, "null");
}

TEST(Worker, OutcomesAndExceptionsEndAtTheJob) {
    auto worker = memory_worker();
    sekali::HandlerOptions once{.retry = {.max_attempts = 1}};
    worker.handle<Note>(
        [](Context&, const Note& job) -> Outcome {
            switch (job.number) {
                case 0:
                    return sekali::fail("never");
                case 1:
                    return sekali::cancel("not wanted");
                case 2:
                    throw std::runtime_error("boom");
                case 3:
                    throw 42;
                case 4:
                    throw sekali::PermanentError("bad");
                default:
                    return sekali::success(7);
            }
        },
        once);
    std::vector<std::string> ids;
    for (std::int64_t i = 0; i < 6; ++i) {
        ids.push_back(worker.client().enqueue(Note{i}).value().id);
    }
    EXPECT_TRUE(worker.run().value().drained);
    const auto show = [&](std::size_t i) { return worker.client().show(ids[i]).value(); };
    EXPECT_EQ(show(0).state, "dead");
    EXPECT_EQ(show(0).error, "never");
    EXPECT_EQ(show(1).state, "cancelled");
    EXPECT_EQ(show(1).reason, "not wanted");
    EXPECT_EQ(show(2).state, "dead");
    EXPECT_EQ(show(2).error, "boom");
    EXPECT_EQ(show(3).error, "the handler threw something that is no std::exception");
    EXPECT_EQ(show(4).reason, "permanent");
    EXPECT_EQ(show(5).result, "7");
}

TEST(Worker, RetriesAndRemembersSteps) {
    auto worker = memory_worker();
    std::atomic<int> charged = 0;
    std::mutex mutex;
    std::set<std::string> keys;
    worker.handle<Note>(
        [&](Context& ctx, const Note&) -> Outcome {
            const int receipt = ctx.step("charge", [&](const sekali::Step& step) {
                const std::lock_guard guard(mutex);
                keys.insert(step.key());
                return ++charged;
            });
            if (ctx.attempt() < 3) return sekali::retry("not yet", 1ms);
            return sekali::success(receipt);
        },
        {.effects = sekali::Effects::kSteps});
    const auto id = worker.client().enqueue(Note{1}, {.key = "a b"}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(state_of(worker, id), "succeeded");
    EXPECT_EQ(worker.client().show(id).value().result, "1");
    EXPECT_EQ(charged, 1);
    EXPECT_EQ(keys, std::set<std::string>{"default:note:a%20b:charge"});
}

TEST(Worker, AStepNameMayBeUsedOnceInARun) {
    auto worker = memory_worker();
    worker.handle<Note>([](Context& ctx, const Note&) {
        ctx.step("one", [](const sekali::Step&) {});
        ctx.step("one", [](const sekali::Step&) {});
    });
    const auto id = worker.client().enqueue(Note{1}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(state_of(worker, id), "dead");
    EXPECT_EQ(worker.client().show(id).value().error, R"(step "one" was used twice in one run)");
}

TEST(Worker, CommitMakesEnqueuesAndSuccessDurableTogether) {
    auto worker = memory_worker();
    std::atomic<int> notes = 0;
    worker.handle<Greet>([&worker](Context& ctx, const Greet&) {
        Outcome outcome = ctx.commit(
            [&](sekali::Transaction& tx) {
                worker.client().enqueue(tx, Note{5}, {.key = "follow-up"}).value();
            },
            std::string("done"));
        // Whatever a handler does behind its commit changes nothing.
        EXPECT_THROW(ctx.step("late", [](const sekali::Step&) {}), sekali::Failure);
        return outcome;
    });
    worker.handle<Note>([&](Context&, const Note&) { ++notes; });
    const auto id = worker.client().enqueue(Greet{"x"}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(worker.client().show(id).value().result, R"("done")");
    EXPECT_EQ(notes, 1);
}

TEST(Worker, EffectsThatThrowUndoEverythingAndComeOut) {
    auto worker = memory_worker();
    std::atomic<int> notes = 0;
    worker.handle<Greet>([&](Context& ctx, const Greet&) -> Outcome {
        try {
            return ctx.commit([&](sekali::Transaction& tx) {
                worker.client().enqueue(tx, Note{1}).value();
                throw std::out_of_range("no such row");
            });
        } catch (const std::out_of_range& error) {
            return sekali::fail(error.what());
        }
    });
    worker.handle<Note>([&](Context&, const Note&) { ++notes; });
    const auto id = worker.client().enqueue(Greet{"x"}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(worker.client().show(id).value().error, "no such row");
    EXPECT_EQ(notes, 0);
}

TEST(Worker, AStepInsideCommitIsRefused) {
    auto worker = memory_worker();
    worker.handle<Greet>([](Context& ctx, const Greet&) {
        return ctx.commit(
            [&](sekali::Transaction&) { ctx.step("inside", [](const sekali::Step&) {}); });
    });
    const auto id = worker.client().enqueue(Greet{"x"}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(state_of(worker, id), "dead");
}

TEST(Worker, UndecodablePayloadIsPermanent) {
    auto worker = memory_worker();
    worker.handle<Note>([](Context&, const Note&) {});
    const auto id = worker.client().enqueue(sekali::RawJob{"note", R"({"number":"x"})"}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(state_of(worker, id), "dead");
    EXPECT_EQ(worker.client().show(id).value().error,
              "payload: field \"number\" must be an integer from -9223372036854775808 to "
              "9223372036854775807, not text");
}

TEST(Worker, MiddlewareWrapsTheFirstOutermost) {
    auto worker = memory_worker(1);
    std::string order;
    const auto mark = [&order](const char* name) {
        return [&order, name](Context& ctx, const sekali::Next& next) {
            order += std::string(name) + "(";
            Outcome outcome = next(ctx);
            order += ")";
            return outcome;
        };
    };
    worker.use(mark("a"));
    worker.use(mark("b"));
    worker.use(sekali::middleware::translate<std::logic_error>(
        [](const std::logic_error& error) { return sekali::fail(error.what()); }));
    worker.handle<Note>([](Context&, const Note&) { throw std::logic_error("wrong"); });
    const auto id = worker.client().enqueue(Note{1}).value().id;
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_EQ(order, "a(b())");
    EXPECT_EQ(worker.client().show(id).value().error, "wrong");
}

TEST(Worker, StopsWhenAskedAndHandsNothingOut) {
    sekali::WorkerOptions options;
    options.concurrency = 1;
    auto worker = sekali::Worker::open("memory:", options).value();
    std::stop_source stop;
    worker.handle<Note>([&](Context&, const Note&) { stop.request_stop(); });
    const auto first = worker.client().enqueue(Note{1}).value().id;
    const auto exit = worker.run(stop.get_token()).value();
    EXPECT_FALSE(exit.drained);
    EXPECT_FALSE(exit.stuck);
    EXPECT_EQ(state_of(worker, first), "succeeded");
}

TEST(Worker, LocksExcludeJobsOfOneKey) {
    auto worker = memory_worker(8);
    std::atomic<int> inside = 0;
    std::atomic<bool> overlapped = false;
    worker.handle<Note>([&](Context&, const Note&) {
        if (++inside > 1) overlapped = true;
        std::this_thread::yield();
        --inside;
    });
    for (std::int64_t i = 0; i < 50; ++i) {
        ASSERT_TRUE(worker.client().enqueue(Note{i}, {.lock = "account:1"}).ok());
    }
    EXPECT_TRUE(worker.run().value().drained);
    EXPECT_FALSE(overlapped);
}

TEST(Worker, RefusesBadRegistrations) {
    auto worker = memory_worker();
    worker.handle<Note>([](Context&, const Note&) {});
    EXPECT_THROW(worker.handle<Note>([](Context&, const Note&) {}), sekali::Failure);
    EXPECT_THROW(worker.handle_raw("not a kind", [](Context&) { return sekali::success(); }),
                 sekali::Failure);
    EXPECT_THROW(worker.handle<Greet>([](Context&, const Greet&) {}, {.lock_ttl = 10ms}),
                 sekali::Failure);
    EXPECT_FALSE(sekali::Worker::open("memory:", {.lease = 100ms}).ok());
    EXPECT_FALSE(sekali::Worker::open("memory:", {.queues = {}}).ok());
}

}  // namespace
