#include "client/wake_line.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace sekali::client {
namespace {

TEST(WakeLine, EveryThreadThatIsCalledGoesOn) {
    constexpr std::size_t kThreads = 64;
    WakeLine line;
    std::vector<std::shared_ptr<WakeLine::Place>> places;
    for (std::size_t i = 0; i < kThreads; ++i)
        places.push_back(std::make_shared<WakeLine::Place>());
    std::atomic<std::size_t> awake = 0;
    {
        std::vector<std::jthread> threads;
        for (const auto& place : places) {
            threads.emplace_back([&line, &awake, place] {
                line.wait(*place);
                ++awake;
            });
        }
        for (auto& place : places)
            line.call(std::move(place));
    }
    EXPECT_EQ(awake, kThreads);
}

TEST(WakeLine, ACallBeforeTheWaitIsNotLost) {
    WakeLine line;
    std::vector<std::shared_ptr<WakeLine::Place>> places;
    for (std::size_t i = 0; i < 8; ++i) {
        places.push_back(std::make_shared<WakeLine::Place>());
        line.call(places.back());
    }
    // In the order of the calls: the later ones are let go by the earlier.
    for (const auto& place : places)
        line.wait(*place);
}

TEST(WakeLine, AThreadThatIsNotCalledWaits) {
    WakeLine line;
    const auto first = std::make_shared<WakeLine::Place>();
    const auto second = std::make_shared<WakeLine::Place>();
    std::atomic<bool> second_called = false;
    std::jthread waiting([&] {
        line.wait(*second);
        EXPECT_TRUE(second_called);
    });
    line.call(first);
    line.wait(*first);
    second_called = true;
    line.call(second);
}

}  // namespace
}  // namespace sekali::client
