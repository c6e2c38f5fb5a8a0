#include "client/handler_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

namespace sekali::client {
namespace {

/// Keeps threads that nobody waits for, because a handler in them does not end.
void abandon(std::vector<std::thread> threads) {
    static auto* mutex = new std::mutex;
    static auto* abandoned = new std::vector<std::thread>;
    const std::lock_guard guard(*mutex);
    std::move(threads.begin(), threads.end(), std::back_inserter(*abandoned));
}

/// A handler that wakes up interrupts nobody: those that bring it its work and commit its result
/// would wait behind hundreds of handlers. What a handler starts has the usual policy again.
void be_patient() {
    constexpr sched_param kNoPriority{};
    sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &kNoPriority);
}

}  // namespace

/// Outlives the pool for as long as a thread of it is stuck in a handler.
struct HandlerPool::Shared : std::enable_shared_from_this<HandlerPool::Shared> {
    explicit Shared(std::size_t thread_limit) : limit(thread_limit) {}

    /// A thread comes as the one that looks for a task, and so it was woken or made.
    void work() {
        be_patient();
        std::unique_lock guard(mutex);
        while (true) {
            searching = false;
            while (!tasks.empty()) {
                auto task = std::move(tasks.front());
                tasks.pop_front();
                const bool wakes = call_another();
                guard.unlock();
                if (wakes) changed.notify_one();
                task();
                task = nullptr;
                guard.lock();
            }
            if (closed) break;
            ++idle;
            changed.wait(guard, [this] { return called || closed; });
            --idle;
            called = false;
        }
        --working;
        ended.notify_all();
    }

    /// One thread at a time is called to look for a task, and calls the next when it has one: where
    /// handlers are short, the threads that are awake do them all. True when an idle thread is to
    /// be notified, which is cheaper without the lock that it needs at once.
    [[nodiscard]] bool call_another() {
        if (tasks.empty() || searching || closed) return false;
        if (idle > 0) return searching = called = true;
        if (working < limit) add_thread();
        return false;
    }

    void add_thread() {
        searching = true;
        ++working;
        try {
            threads.emplace_back([shared = shared_from_this()] { shared->work(); });
        } catch (const std::system_error&) {
            searching = false;
            // Without another thread the others do what there is.
            if (--working == 0) throw;
        }
    }

    const std::size_t limit;
    std::mutex mutex;
    std::condition_variable changed;
    std::condition_variable ended;
    std::deque<std::function<void()>> tasks;
    std::vector<std::thread> threads;
    std::size_t working = 0;  ///< Threads that have not come to their end.
    std::size_t idle = 0;
    bool searching = false;  ///< A thread was called or made and has not looked yet.
    bool called = false;     ///< An idle thread is to wake up.
    bool closed = false;
};

HandlerPool::HandlerPool(std::size_t limit) : shared_(std::make_shared<Shared>(limit)) {}

HandlerPool::~HandlerPool() {
    close(std::chrono::milliseconds{0});
}

void HandlerPool::run(std::function<void()> task) {
    add(std::move(task));
    wake();
}

void HandlerPool::add(std::function<void()> task) {
    const std::lock_guard guard(shared_->mutex);
    if (!shared_->closed) shared_->tasks.push_back(std::move(task));
}

void HandlerPool::wake() {
    bool wakes = false;
    {
        const std::lock_guard guard(shared_->mutex);
        wakes = shared_->call_another();
    }
    if (wakes) shared_->changed.notify_one();
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
