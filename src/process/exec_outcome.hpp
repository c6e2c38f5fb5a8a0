#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "process/exec_control.hpp"
#include "process/terminate.hpp"

namespace sekali::process {

/// Exit statuses of an exec handler that mean more than "failed" (`sysexits.h` has the numbers).
inline constexpr int kExitPermanent = 65;  ///< EX_DATAERR: no retry can help.
inline constexpr int kExitRetry = 75;      ///< EX_TEMPFAIL: nothing was applied, try again.

enum class ExecResult : std::uint8_t {
    kSuccess,
    kRetryable,
    kPermanent,
    kSnooze,      ///< Asked for on the control descriptor.
    kCancel,      ///< Asked for on the control descriptor.
    kStopped,     ///< Ended because sekali stopped it; `stopped_by` says why.
    kCrashed,     ///< Ended by a signal that sekali did not send.
    kGuardLost,   ///< The guard died under it, so its end was not seen.
    kNotStarted,  ///< Its program never ran.
};

/// What became of one run of an exec handler. Its result is the child's stdout.
struct ExecOutcome {
    ExecResult result = ExecResult::kRetryable;
    bool nothing_applied = false;  ///< Said by the child (75, `retry-in`, `snooze`) or certain.
    std::optional<StopReason> stopped_by;            ///< Set whenever sekali had asked it to stop.
    std::optional<std::chrono::milliseconds> delay;  ///< Of a snooze, or of a retry.
    std::string reason;                              ///< Text of `cancel`.
    std::string error;  ///< End of stderr, or the end in words; empty when nothing failed.
};

/// The end of a child as its parent saw it.
struct ExecEnd {
    int wait_status = 0;  ///< As `waitpid` gives it.
    bool guard_lost = false;
    std::string_view stderr_tail;
};

/// Maps the end of an exec handler to its outcome.
///
/// The child's own answer comes first: 0 is success, 65 permanent, 75 retryable with nothing
/// applied, even after a SIGTERM (the store still refuses a success that came too late). With 0 or
/// 75 a control directive replaces the status; `retry-in` also sets the delay of any other
/// retryable status. Any other end after a stop request is that stop. An exit status of 128+n is a
/// status, not a signal.
[[nodiscard]] ExecOutcome map_exec_end(const ExecEnd& end, const ControlReport& control,
                                       const StopRecord& stop);

/// The outcome of a child whose program could not be run; `errno_value` is from fork or exec.
[[nodiscard]] ExecOutcome map_spawn_failure(std::string_view program, int errno_value);

/// The end in words: `exit status 3`, `killed by signal 9 (SIGKILL)`.
[[nodiscard]] std::string describe_wait_status(int wait_status);

}  // namespace sekali::process
