#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace sekali::client {

/// Threads for handlers, started as they are needed. Thread-safe.
class HandlerPool {
 public:
    /// `limit` threads at most.
    explicit HandlerPool(std::size_t limit);
    /// As `close` without patience.
    ~HandlerPool();
    HandlerPool(const HandlerPool&) = delete;
    HandlerPool& operator=(const HandlerPool&) = delete;

    /// Runs `task` on a free thread, or when one gets free. It must not throw.
    void run(std::function<void()> task);
    /// As above, but wakes no thread for it: one that is awake may take it, at last one that
    /// `wake` wakes.
    void add(std::function<void()> task);
    void wake();

    /// Takes no more tasks and waits until those that run have ended, at most `patience`; false
    /// when one has not. Its thread is left alone then, because no thread can be ended from
    /// outside.
    bool close(std::chrono::milliseconds patience);

 private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace sekali::client
