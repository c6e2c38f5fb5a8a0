#include "base/gathered_wakes.hpp"

#include <chrono>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace sekali::base {
namespace {

using namespace std::chrono_literals;

/// A thread that waits until it is told.
class Sleeper {
 public:
    void tell() {
        {
            const std::lock_guard guard(mutex_);
            told_ = true;
        }
        GatheredWakes::wake_one(woken_);
    }
    bool wait() {
        std::unique_lock guard(mutex_);
        waiting_ = true;
        woken_->notify_all();
        return woken_->wait_for(guard, 60s, [this] { return told_; });
    }
    void wait_until_it_waits() {
        std::unique_lock guard(mutex_);
        woken_->wait_for(guard, 60s, [this] { return waiting_; });
    }

 private:
    std::mutex mutex_;
    const std::shared_ptr<std::condition_variable> woken_ =
        std::make_shared<std::condition_variable>();
    bool told_ = false;
    bool waiting_ = false;
};

TEST(GatheredWakes, WhoeverWasToldIsAwakeAtTheEnd) {
    Sleeper first;
    Sleeper second;
    bool first_told = false;
    bool second_told = false;
    std::thread one([&] { first_told = first.wait(); });
    std::thread other([&] { second_told = second.wait(); });
    first.wait_until_it_waits();
    second.wait_until_it_waits();
    {
        const GatheredWakes gathered;
        first.tell();
        {
            const GatheredWakes within;
            second.tell();
        }
        other.join();
        EXPECT_TRUE(second_told);
        first.tell();
    }
    one.join();
    EXPECT_TRUE(first_told);
}

TEST(GatheredWakes, WithoutOneItIsAtOnce) {
    Sleeper sleeper;
    bool told = false;
    std::thread thread([&] { told = sleeper.wait(); });
    sleeper.wait_until_it_waits();
    sleeper.tell();
    thread.join();
    EXPECT_TRUE(told);
}

TEST(GatheredWakes, OutlivesWhatItWakes) {
    const GatheredWakes gathered;
    Sleeper gone;
    gone.tell();
}

}  // namespace
}  // namespace sekali::base
