#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "process/unique_fd.hpp"
#include "sekali/result.hpp"

namespace sekali::process {

/// How urgently the process was asked to stop. Only grows.
enum class StopLevel : std::uint8_t { kRun, kGraceful, kNow };

/// Counts stop signals: the first SIGTERM or SIGINT is graceful, the second means at once.
class StopLatch {
 public:
    /// Takes a signal number; other signals change nothing.
    StopLevel feed(int signal);
    [[nodiscard]] StopLevel level() const { return level_; }

 private:
    StopLevel level_ = StopLevel::kRun;
};

struct ReceivedSignal {
    int number = 0;            ///< 0: there was none.
    bool from_kernel = false;  ///< Ctrl-C and the like, which the whole foreground group gets.
};

/// Signals as a descriptor to poll. One at a time in a process, since handlers belong to the
/// process; a second one is refused. The handlers, unlike a blocked mask, are not inherited by
/// programs that a handler of the user starts. Signals that were blocked until then are delivered.
/// Restores the previous handlers at its end.
class SignalSource {
 public:
    [[nodiscard]] static Result<SignalSource> install(std::initializer_list<int> signals);

    SignalSource(SignalSource&& other) noexcept = default;
    SignalSource& operator=(SignalSource&&) = delete;
    ~SignalSource();

    /// Readable while `next` has something to tell.
    [[nodiscard]] int fd() const { return read_end_.get(); }
    /// The next signal that came in. Does not block.
    [[nodiscard]] ReceivedSignal next();

    /// For a child after fork, whose copy of the source is dead from then on: default handlers, and
    /// a new source may be installed. Signals have to be blocked from before the fork.
    void reset_in_child();

 private:
    SignalSource() = default;
    void restore_handlers();

    UniqueFd read_end_;
    UniqueFd write_end_;
    std::vector<std::pair<int, struct sigaction>> previous_;
};

}  // namespace sekali::process
