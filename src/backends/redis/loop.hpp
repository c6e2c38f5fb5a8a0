#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/redis/call.hpp"

namespace sekali::redis {

/// One thread that waits for sockets, times and tasks of others.
///
/// A client has a handful of sockets and one owner for all its state, so that nothing in it needs a
/// lock; epoll is all that takes.
class Loop {
 public:
    using Task = std::function<void()>;
    using TimerId = std::pair<TimePoint, std::uint64_t>;

    Loop();
    /// Ends the thread; tasks that are still to run are dropped. Not to be called on it.
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Runs the task on the thread, in order. Thread-safe.
    void post(Task task);
    /// As above, and waits until it has run. Not to be called on the thread.
    void run(const Task& task);
    [[nodiscard]] bool on_thread() const;

    // The rest only on the thread.

    TimerId at(TimePoint time, Task task);
    void cancel(const TimerId& timer);
    /// `ready` is called with what epoll says. One watcher for each descriptor.
    void watch(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready);
    void change(int descriptor, std::uint32_t events);
    void forget(int descriptor);

 private:
    struct Watcher {
        std::uint64_t number;
        std::function<void(std::uint32_t)> ready;
    };

    void work();
    [[nodiscard]] int patience() const;
    void run_timers();
    void run_tasks();

    int epoll_;
    int wake_;
    std::mutex mutex_;
    std::vector<Task> tasks_;
    bool stopping_ = false;

    std::map<TimerId, Task> timers_;
    std::uint64_t next_number_ = 0;
    std::unordered_map<int, std::shared_ptr<Watcher>> watchers_;
    std::thread thread_;
};

}  // namespace sekali::redis
