#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backends/memory/memory_store.hpp"
#include "base/errors.hpp"
#include "engine/tables.hpp"

namespace sekali::testing {

/// Runs every task at once, on the caller's thread, in a store whose clock stands still.
class SteppedExecutor final : public engine::Executor {
 public:
    void submit(std::vector<engine::Task> tasks) override {
        // The caller would wait for ever for what can only run after it.
        if (inside_) {
            throw Failure(
                base::usage_error("inside a transaction only enqueue(tx, …) is possible"));
        }
        inside_ = true;
        store_.submit(std::move(tasks));
        while (store_.step()) {
        }
        inside_ = false;
        if (after_commit) after_commit();
    }
    [[nodiscard]] Result<void> read(const std::function<void(engine::Tables&)>& work) override {
        return store_.read(work);
    }
    void wait_for_change(engine::Millis) override {}

    [[nodiscard]] memory::MemoryStore& store() { return store_; }

    std::function<void()> after_commit;  ///< May be empty.

 private:
    memory::MemoryStore store_{memory::MemoryStore::Mode::kStepped};
    bool inside_ = false;
};

}  // namespace sekali::testing
