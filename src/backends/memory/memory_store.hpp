#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/memory/memory_tables.hpp"
#include "engine/tables.hpp"

namespace sekali::memory {

/// A store in this process's memory, with transactions that really roll back.
///
/// `kStepped` is for simulations and tests: the clock stands still until it is told, `submit` only
/// queues, and `step` runs what is queued on the caller's thread. `kThreaded` is `memory:`: the
/// clock runs and a thread of its own runs the tasks. Thread-safe.
class MemoryStore final : public engine::Executor {
 public:
    enum class Mode : std::uint8_t { kStepped, kThreaded };

    explicit MemoryStore(Mode mode = Mode::kStepped);
    /// Answers what is still queued, then ends.
    ~MemoryStore() override;
    MemoryStore(const MemoryStore&) = delete;
    MemoryStore& operator=(const MemoryStore&) = delete;

    void submit(std::vector<engine::Task> tasks) override;
    [[nodiscard]] Result<void> read(const std::function<void(engine::Tables&)>& work) override;
    /// Never blocks in stepped mode.
    void wait_for_change(engine::Millis at_most) override;

    /// Runs what is queued as one group and answers it; false when nothing was queued. Answers may
    /// submit again, which is left to the next step.
    bool step();
    /// Steps until nothing is queued any more.
    void run_all();

    [[nodiscard]] engine::StoreTime now() const;
    void set_now(engine::StoreTime now);
    void advance(engine::Millis by);
    /// What `owner_fate` says of a worker; unknown until it is told.
    void set_fate(const std::string& worker, engine::OwnerFate fate);
    void set_dead(const std::string& worker) { set_fate(worker, engine::OwnerFate::kDead); }

 private:
    struct Answer {
        std::function<void(Result<void>)> done;
        Result<void> result;
    };

    [[nodiscard]] engine::StoreTime read_clock() const;
    [[nodiscard]] std::vector<engine::Task> take_group();
    std::vector<Answer> run_group(std::vector<engine::Task> group);
    Result<void> run_alone(const engine::Task& task);
    void run_until_stopped();

    const Mode mode_;
    mutable std::mutex mutex_;
    std::condition_variable submitted_;
    std::condition_variable changed_;
    MemoryTables tables_;
    std::deque<engine::Task> urgent_;
    std::deque<engine::Task> queued_;
    engine::Millis offset_;
    std::uint64_t changes_ = 0;
    std::map<std::thread::id, std::uint64_t> seen_changes_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace sekali::memory
