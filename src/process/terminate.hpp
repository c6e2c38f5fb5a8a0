#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace sekali::process {

/// Why sekali asked a running child to stop.
enum class StopReason : std::uint8_t {
    kTimeout,
    kCancel,
    kShutdown,
    kLeaseLost,  ///< A lost lock or lease.
};

/// What sekali did to stop a child: which reason came first, and which signals were sent.
struct StopRecord {
    std::optional<StopReason> reason;
    bool term_sent = false;
    bool kill_sent = false;
};

/// The way from SIGTERM to SIGKILL for one process group, without I/O: the caller passes the time
/// in, sends the signal it is told to send, and comes back at `deadline()`.
class Termination {
 public:
    using Clock = std::chrono::steady_clock;
    enum class Action : std::uint8_t { kNone, kSendTerm, kSendKill };

    /// Asks for a stop. The first reason is kept; a later request may only bring the end nearer. A
    /// grace of zero or less means SIGKILL now.
    [[nodiscard]] Action request(StopReason reason, Clock::time_point now,
                                 std::chrono::milliseconds grace);
    /// To be called at or after `deadline()`; too early is harmless.
    [[nodiscard]] Action tick(Clock::time_point now);
    /// When SIGKILL falls due; none while nothing is asked for and once it has been sent.
    [[nodiscard]] std::optional<Clock::time_point> deadline() const { return kill_at_; }
    [[nodiscard]] const StopRecord& record() const { return record_; }

 private:
    std::optional<Clock::time_point> kill_at_;
    StopRecord record_;
};

}  // namespace sekali::process
