#pragma once

#include <vector>

#include "engine/ports.hpp"
#include "engine/tables.hpp"

namespace sekali::rows {

/// Queue, store and locks of a backend that has rows: each command is the operation of that name in
/// a transaction of the executor, which must outlive the ports. Thread-safe.
class RowPorts final : public engine::QueuePort, public engine::StorePort, public engine::LockPort {
 public:
    explicit RowPorts(engine::Executor& executor) : executor_(executor) {}

    [[nodiscard]] engine::QueueTraits traits() const override {
        // A begin reads what it needs only when the claim has found its job: row by row.
        return {.joint = true, .custody = true, .push = false, .begins = !executor_.is_far()};
    }
    [[nodiscard]] bool in_store() const override { return true; }

    void submit(std::vector<engine::QueuePort::Call> calls) override;
    void submit(std::vector<engine::StorePort::Call> calls) override;
    void submit(std::vector<engine::LockPort::Call> calls) override;

 private:
    engine::Executor& executor_;
};

}  // namespace sekali::rows
