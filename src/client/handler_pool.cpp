#include "client/handler_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sekali::client {
namespace {

/// Keeps threads that nobody waits for, because a handler in them does not end.
void abandon(std::vector<std::thread> threads) {
    static auto* mutex = new std::mutex;
    static auto* abandoned = new std::vector<std::thread>;
    const std::lock_guard guard(*mutex);
    std::move(threads.begin(), threads.end(), std::back_inserter(*abandoned));
}

}  // namespace

/// Outlives the pool for as long as a thread of it is stuck in a handler.
struct HandlerPool::Shared {
    explicit Shared(std::size_t thread_limit) : limit(thread_limit) {}

    void work() {
        std::unique_lock guard(mutex);
        while (true) {
            ++idle;
            changed.wait(guard, [this] { return !tasks.empty() || closed; });
            --idle;
            if (tasks.empty()) break;
            auto task = std::move(tasks.front());
            tasks.pop_front();
            guard.unlock();
            task();
            task = nullptr;
            guard.lock();
        }
        --working;
        ended.notify_all();
    }

    const std::size_t limit;
    std::mutex mutex;
    std::condition_variable changed;
    std::condition_variable ended;
    std::deque<std::function<void()>> tasks;
    std::vector<std::thread> threads;
    std::size_t working = 0;  ///< Threads that have not come to their end.
    std::size_t idle = 0;
    bool closed = false;
};

HandlerPool::HandlerPool(std::size_t limit) : shared_(std::make_shared<Shared>(limit)) {}

HandlerPool::~HandlerPool() {
    close(std::chrono::milliseconds{0});
}

void HandlerPool::run(std::function<void()> task) {
    {
        const std::lock_guard guard(shared_->mutex);
        if (shared_->closed) return;
        shared_->tasks.push_back(std::move(task));
        if (shared_->tasks.size() > shared_->idle && shared_->working < shared_->limit) {
            ++shared_->working;
            shared_->threads.emplace_back([shared = shared_] { shared->work(); });
        }
    }
    shared_->changed.notify_one();
}

bool HandlerPool::close(std::chrono::milliseconds patience) {
    std::vector<std::thread> threads;
    bool all_ended = false;
    {
        std::unique_lock guard(shared_->mutex);
        shared_->closed = true;
        shared_->changed.notify_all();
        all_ended =
            shared_->ended.wait_for(guard, patience, [this] { return shared_->working == 0; });
        threads = std::exchange(shared_->threads, {});
    }
    if (all_ended) {
        for (std::thread& thread : threads)
            thread.join();
    } else {
        abandon(std::move(threads));
    }
    return all_ended;
}

}  // namespace sekali::client
