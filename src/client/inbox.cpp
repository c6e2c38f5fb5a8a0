#include "client/inbox.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/gathered_wakes.hpp"

namespace sekali::client {

engine::LocalTime local_now() {
    return engine::LocalTime{engine::Millis{base::boot_ms()}};
}

void Inbox::push(engine::Event event) {
    {
        const std::lock_guard guard(mutex_);
        events_.push_back(std::move(event));
    }
    base::GatheredWakes::wake_one(arrived_);
}

void Inbox::push_change() {
    {
        const std::lock_guard guard(mutex_);
        if (change_pending_) return;
        change_pending_ = true;
        events_.emplace_back(engine::event::ChangeSeen{});
    }
    base::GatheredWakes::wake_one(arrived_);
}

std::vector<engine::Event> Inbox::wait(std::optional<engine::LocalTime> until) {
    std::unique_lock guard(mutex_);
    const auto has_events = [this] { return !events_.empty(); };
    if (until) {
        arrived_->wait_for(guard, *until - local_now(), has_events);
    } else {
        arrived_->wait(guard, has_events);
    }
    change_pending_ = false;
    return std::exchange(events_, {});
}

}  // namespace sekali::client
