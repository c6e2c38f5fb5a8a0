#pragma once

#include <cstdint>

namespace sekali {

/// Where a kind's effects happen; decides when a run that ended without an answer is *unknown*.
enum class Effects : std::uint8_t {
    kOutside,  ///< Anywhere: every end without an answer is unknown.
    kSteps,    ///< In named steps and in the commit: unknown only while a step is open.
    kCommit,   ///< In the commit alone: never unknown.
};

/// What is done about an unknown run. Larger is stricter.
enum class OnUnknown : std::uint8_t {
    kRerun,  ///< Run again, under the same keys.
    kProbe,  ///< Ask the probe what happened; hold where it cannot be asked.
    kHold,   ///< Wait for an answer from a person or the reconciler.
};

/// What a job does that finds its lock key busy.
enum class OnBusy : std::uint8_t {
    kWait,  ///< Stand in line.
    kSkip,  ///< End as `cancelled` with reason `lock_busy`.
    kFail,  ///< Count as a failed attempt and retry.
};

/// What a job does whose lock service cannot be reached.
enum class OnLockUnavailable : std::uint8_t {
    kWait,     ///< Try again until it can.
    kFail,     ///< Count as a failed attempt and retry.
    kProceed,  ///< Run all the same; among sekali's own jobs the store still excludes.
};

/// Whether a kind has idempotency records.
enum class Record : std::uint8_t {
    kKept,
    kNone,  ///< A crash is a redelivery; effects may happen more than once; keys are refused.
};

/// How long a unique key keeps its slot.
enum class UniqueUntil : std::uint8_t {
    kEnd,    ///< Until the job has ended.
    kStart,  ///< Until its handler starts: one *unstarted* job.
};

/// What an enqueue does that finds the slot of its unique key taken.
enum class OnDuplicate : std::uint8_t {
    kKeep,     ///< The job in the slot stays, the new one is refused.
    kReplace,  ///< A waiting job is cancelled in favour of the new one.
};

}  // namespace sekali
