#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

namespace sekali::client {

/// Wakes threads that wait for an answer each, a few at a time: who wakes up calls the next one.
/// Hundreds that are made runnable at once would keep those that feed them from the processors.
/// Thread-safe.
class WakeLine {
 public:
    /// Where one thread waits, once.
    class Place {
        friend class WakeLine;
        bool called_ = false;
        std::condition_variable changed_;
    };

    /// The thread that waits, or will wait, at `place` goes on when its turn has come.
    void call(std::shared_ptr<Place> place);
    /// Blocks until `place` is called.
    void wait(Place& place);

 private:
    [[nodiscard]] std::shared_ptr<Place> call_next();

    std::mutex mutex_;
    std::deque<std::shared_ptr<Place>> line_;
    std::size_t waking_ = 0;  ///< Called, and not awake yet.
};

}  // namespace sekali::client
