#include "client/wake_line.hpp"

#include <utility>

namespace sekali::client {
namespace {

constexpr std::size_t kAbreast = 2;

}  // namespace

void WakeLine::call(std::shared_ptr<Place> place) {
    std::shared_ptr<Place> next;
    {
        const std::lock_guard guard(mutex_);
        line_.push_back(std::move(place));
        if (waking_ < kAbreast) next = call_next();
    }
    if (next) next->changed_.notify_one();
}

void WakeLine::wait(Place& place) {
    std::shared_ptr<Place> next;
    {
        std::unique_lock guard(mutex_);
        place.changed_.wait(guard, [&place] { return place.called_; });
        --waking_;
        if (!line_.empty()) next = call_next();
    }
    if (next) next->changed_.notify_one();
}

std::shared_ptr<WakeLine::Place> WakeLine::call_next() {
    std::shared_ptr<Place> next = std::move(line_.front());
    line_.pop_front();
    next->called_ = true;
    ++waking_;
    return next;
}

}  // namespace sekali::client
