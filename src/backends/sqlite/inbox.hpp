#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/tables.hpp"

namespace sekali::sqlite {

/// What waits for the writer: urgent tasks first, then in order of arrival. Thread-safe.
class Inbox {
 public:
    using Clock = std::chrono::steady_clock;
    struct Entry {
        engine::Task task;
        Clock::time_point since;
        std::uint64_t ticket = 0;
    };

    explicit Inbox(std::size_t limit) : limit_(limit) {}

    /// Waits for room until `deadline`, except for urgent tasks and where `has_priority`; returns
    /// the tasks for which there was none.
    [[nodiscard]] std::vector<engine::Task> add(std::vector<engine::Task> tasks,
                                                Clock::time_point deadline, bool has_priority);
    /// Adds one task, full or not, and names it.
    [[nodiscard]] std::uint64_t add_one(engine::Task task);
    /// Takes a task back; false when the writer has it already.
    [[nodiscard]] bool withdraw(std::uint64_t ticket);

    /// Blocks until something is there; false when the inbox is closed and empty.
    [[nodiscard]] bool wait();
    /// As above, for no longer than `patience`; false when nothing is there by then.
    [[nodiscard]] bool wait_for(Clock::duration patience);
    [[nodiscard]] std::vector<Entry> take(std::size_t at_most);
    /// Takes what has waited since before `since`.
    [[nodiscard]] std::vector<Entry> take_older(Clock::time_point since);
    /// Gives back what `take` gave and nobody ran, to the front.
    void put_back(std::vector<Entry> entries);
    /// What is queued is still handed out; what is added from now on is refused.
    void close();

 private:
    [[nodiscard]] std::size_t size() const { return urgent_.size() + queued_.size(); }
    void push(engine::Task task, std::uint64_t ticket);

    const std::size_t limit_;
    std::mutex mutex_;
    std::condition_variable filled_;
    std::condition_variable drained_;
    std::deque<Entry> urgent_;
    std::deque<Entry> queued_;
    std::uint64_t last_ticket_ = 0;
    bool closed_ = false;
};

}  // namespace sekali::sqlite
