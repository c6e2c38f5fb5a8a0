#include "backends/redis/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace sekali::redis {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    SEKALI_ASSERT(epoll_ >= 0 && wake_ >= 0, "the process has no descriptors left");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wake_;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
    thread_ = std::thread([this] { work(); });
}

Loop::~Loop() {
    post([this] { stopping_ = true; });
    thread_.join();
    ::close(wake_);
    ::close(epoll_);
}

bool Loop::on_thread() const {
    return std::this_thread::get_id() == thread_.get_id();
}

void Loop::post(Task task) {
    bool first = false;
    {
        const std::lock_guard guard(mutex_);
        first = tasks_.empty();
        tasks_.push_back(std::move(task));
    }
    if (!first) return;
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof one));
}

void Loop::run(const Task& task) {
    SEKALI_ASSERT(!on_thread(), "the loop cannot wait for itself");
    // Shared, because the answering thread may still be in it when the waiting one is gone.
    const auto ran = std::make_shared<std::promise<void>>();
    auto answer = ran->get_future();
    post([&task, ran] {
        task();
        ran->set_value();
    });
    answer.wait();
}

Loop::TimerId Loop::at(TimePoint time, Task task) {
    TimerId timer{time, next_number_++};
    timers_.emplace(timer, std::move(task));
    return timer;
}

void Loop::cancel(const TimerId& timer) {
    timers_.erase(timer);
}

void Loop::watch(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready) {
    watchers_[descriptor] = std::make_shared<Watcher>(Watcher{next_number_++, std::move(ready)});
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

void Loop::change(int descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void Loop::forget(int descriptor) {
    watchers_.erase(descriptor);
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void Loop::work() {
    std::array<epoll_event, 64> events{};
    while (!stopping_) {
        const int count =
            ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), patience());
        const std::uint64_t newest = next_number_;
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.fd == wake_) {
                std::uint64_t value = 0;
                static_cast<void>(::read(wake_, &value, sizeof value));
                continue;
            }
            const auto found = watchers_.find(event.data.fd);
            // A descriptor that was closed and opened again meanwhile is another one.
            if (found == watchers_.end() || found->second->number >= newest) continue;
            const std::shared_ptr<Watcher> watcher = found->second;
            watcher->ready(event.events);
        }
        run_tasks();
        run_timers();
    }
}

int Loop::patience() const {
    if (timers_.empty()) return -1;
    const auto left = std::chrono::ceil<Millis>(timers_.begin()->first.first - base::steady_now());
    return static_cast<int>(std::clamp(left, Millis{0}, Millis{60'000}).count());
}

void Loop::run_timers() {
    const TimePoint now = base::steady_now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
        auto node = timers_.extract(timers_.begin());
        node.mapped()();
    }
}

void Loop::run_tasks() {
    std::vector<Task> tasks;
    {
        const std::lock_guard guard(mutex_);
        tasks.swap(tasks_);
    }
    for (Task& task : tasks) {
        if (stopping_) return;
        task();
    }
}

}  // namespace sekali::redis
