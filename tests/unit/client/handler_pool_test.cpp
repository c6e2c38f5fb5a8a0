#include "client/handler_pool.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

namespace sekali::client {
namespace {

using namespace std::chrono_literals;

/// Counts up, and waits for a count.
class Counter {
 public:
    void add() {
        const std::lock_guard guard(mutex_);
        ++count_;
        changed_.notify_all();
    }
    bool wait_for(int count) {
        std::unique_lock guard(mutex_);
        return changed_.wait_for(guard, 60s, [&] { return count_ >= count; });
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

TEST(HandlerPool, WhatWasAddedRunsOnceItIsWoken) {
    constexpr int kTasks = 100;
    Counter ran;
    HandlerPool pool(4);
    for (int i = 0; i < kTasks; ++i)
        pool.add([&] { ran.add(); });
    pool.wake();
    EXPECT_TRUE(ran.wait_for(kTasks));
    EXPECT_TRUE(pool.close(60s));
}

TEST(HandlerPool, TasksThatWaitForEachOtherAllHaveAThread) {
    constexpr int kTasks = 16;
    Counter reached;
    Counter ended;
    HandlerPool pool(kTasks);
    for (int i = 0; i < kTasks; ++i) {
        pool.add([&] {
            reached.add();
            if (reached.wait_for(kTasks)) ended.add();
        });
    }
    pool.wake();
    EXPECT_TRUE(ended.wait_for(kTasks));
    EXPECT_TRUE(pool.close(60s));
}

TEST(HandlerPool, AThreadThatIsAwakeTakesWhatWasAdded) {
    Counter first;
    Counter second;
    Counter added;
    HandlerPool pool(1);
    pool.run([&] {
        first.add();
        added.wait_for(1);
    });
    ASSERT_TRUE(first.wait_for(1));
    pool.add([&] { second.add(); });
    added.add();
    EXPECT_TRUE(second.wait_for(1));
    EXPECT_TRUE(pool.close(60s));
}

TEST(HandlerPool, NothingIsTakenAfterTheEnd) {
    std::atomic<bool> ran{false};
    HandlerPool pool(1);
    EXPECT_TRUE(pool.close(60s));
    pool.add([&] { ran = true; });
    pool.wake();
    pool.run([&] { ran = true; });
    EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace sekali::client
