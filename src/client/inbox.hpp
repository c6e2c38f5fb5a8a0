#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/worker_machine.hpp"

namespace sekali::client {

/// The clock of the worker machine: goes on while the host sleeps.
[[nodiscard]] engine::LocalTime local_now();

/// What other threads have to tell the pump of a worker. Thread-safe.
///
/// It needs no limit of its own: there is at most one event for each command in flight, one end and
/// one commit for each run, and changes count as one.
class Inbox {
 public:
    void push(engine::Event event);
    /// Something may have become ready.
    void push_change();
    /// Everything that came in, in order, as soon as there is something; nothing once it is
    /// `until`.
    [[nodiscard]] std::vector<engine::Event> wait(std::optional<engine::LocalTime> until);

 private:
    std::mutex mutex_;
    const std::shared_ptr<std::condition_variable> arrived_ =
        std::make_shared<std::condition_variable>();
    std::vector<engine::Event> events_;
    bool change_pending_ = false;
};

}  // namespace sekali::client
