#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

namespace sekali::base {

/// A place where the test harness may make a process die.
struct FaultPoint {
    std::string_view name;
    std::string_view stands_for;
};

// clang-format off
/// Every fault point there is.
inline constexpr std::array kFaultPoints = {
    FaultPoint{"enqueue.before", "the producer dies before its job is stored"},
    FaultPoint{"enqueue.after", "the job is stored, the producer dies before it learns so"},
    FaultPoint{"claim.before", "the worker dies idle"},
    FaultPoint{"claim.after", "a delivery is leased, nothing else has happened"},
    FaultPoint{"lock.before", "claimed, the lock not yet asked for"},
    FaultPoint{"lock.after", "the lock is held, the record is untouched"},
    FaultPoint{"begin.before", "the begin has not been sent to the store"},
    FaultPoint{"begin.after", "the begin is durable, the handler has not been called"},
    FaultPoint{"handler.before", "at the handler's first instruction"},
    FaultPoint{"handler.after", "the handler has answered, nothing is recorded"},
    FaultPoint{"step.intent.after", "a step's intent is durable, its effect has not happened"},
    FaultPoint{"step.effect.after", "a step's effect happened outside, its result is not recorded"},
    FaultPoint{"step.result.after", "a step's result is durable, the handler does not know it yet"},
    FaultPoint{"commit.before", "the transaction of effects and result has not begun"},
    FaultPoint{"commit.inside", "effects are written, the transaction is open"},
    FaultPoint{"commit.after", "effects and result are durable, the delivery is not acked"},
    FaultPoint{"ack.before", "the ack has not been sent"},
    FaultPoint{"ack.after", "acked, the lock is still held"},
    FaultPoint{"unlock.before", "the lock's release has not been sent"},
    FaultPoint{"unlock.after", "the lock is free, the run is over"},
    FaultPoint{"retry.before", "a failed run, its retry not yet written"},
    FaultPoint{"retry.after", "the retry is durable, the delivery is not settled"},
    FaultPoint{"dead.before", "a run at its limit, not yet dead-lettered"},
    FaultPoint{"dead.after", "the dead letter is durable, the delivery is not settled"},
    FaultPoint{"cancel.before", "a cancel was asked for, not yet written"},
    FaultPoint{"cancel.after", "the cancel is durable, the delivery is not settled"},
    FaultPoint{"renew.before", "leases are due, their renewal has not been sent"},
    FaultPoint{"renew.after", "leases are renewed, the worker does not know it yet"},
    FaultPoint{"recover.before", "a lapsed run was found, its recovery not yet written"},
    FaultPoint{"recover.after", "the recovery is durable, nobody has been woken"},
    FaultPoint{"snooze.before", "a handler asked to snooze, not yet written"},
    FaultPoint{"snooze.after", "the snooze is durable, the delivery is not settled"},
    FaultPoint{"release.before", "a hand-back was decided, not yet written"},
    FaultPoint{"release.after", "the hand-back is durable, the worker has not exited"},
};
// clang-format on

/// The row of a fault point; a name that is not in the table does not compile.
consteval std::size_t fault_index(std::string_view name) {
    for (std::size_t i = 0; i < kFaultPoints.size(); ++i) {
        if (kFaultPoints[i].name == name) return i;
    }
    throw "no fault point of this name: add a row to kFaultPoints";
}

/// Reads `SEKALI_FAULT_AT` and `SEKALI_FAULT_LOG`; a fault in them prints a message and exits
/// with 2. The first fault point that is reached does it too; `main` calls it to refuse a typing
/// error early.
///
/// `SEKALI_FAULT_AT` is a comma list of `NAME[:N[:ACTION]]`: at the N-th time (default 1) that this
/// process reaches the point it is killed (`kill`, the default), stopped (`stop`), or told to fail
/// (`error`: `SEKALI_FAULT` is true). `SEKALI_FAULT_LOG` is a file to which every process appends
/// the name of each point it reaches, once, before anything else happens there.
void load_faults();

namespace detail {

inline constinit std::atomic<bool> faults_active{true};  // until the environment has been read

bool fault_hit(std::size_t index);

}  // namespace detail

inline bool fault_reached(std::size_t index) {
    return detail::faults_active.load(std::memory_order_relaxed) && detail::fault_hit(index);
}

}  // namespace sekali::base

/// Marks a fault point of `kFaultPoints`. True when the test asks the caller to fail here.
/// Thread-safe; costs one load and a branch when no fault is asked for.
#define SEKALI_FAULT(name) (::sekali::base::fault_reached(::sekali::base::fault_index(name)))
