#pragma once

#include <cstdint>
#include <initializer_list>

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

/// Signals as a descriptor to poll. One at a time in a process, since handlers belong to the
/// process; a second one is refused. The handlers, unlike a blocked mask, are not inherited by
/// programs that a handler of the user starts. Restores the previous handlers at its end.
class SignalSource {
 public:
    [[nodiscard]] static Result<SignalSource> install(std::initializer_list<int> signals);

    SignalSource(SignalSource&& other) noexcept;
    SignalSource& operator=(SignalSource&&) = delete;
    ~SignalSource();

    /// Readable while `next` has something to tell.
    [[nodiscard]] int fd() const { return read_end_.get(); }
    /// The number of the next signal that came in; 0 when there is none. Does not block.
    [[nodiscard]] int next();

    /// For a child after fork: default handlers, and no tie to the parent's source any more.
    static void reset_in_child();

 private:
    SignalSource(UniqueFd read_end, UniqueFd write_end);
    UniqueFd read_end_;
    UniqueFd write_end_;
};

}  // namespace sekali::process
