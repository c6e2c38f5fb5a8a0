#include "process/terminate.hpp"

#include <algorithm>
#include <utility>

namespace sekali::process {

Termination::Action Termination::request(StopReason reason, Clock::time_point now,
                                         std::chrono::milliseconds grace) {
    if (!record_.reason) record_.reason = reason;
    if (record_.kill_sent) return Action::kNone;
    const Clock::time_point kill_at = now + std::max(grace, std::chrono::milliseconds::zero());
    kill_at_ = kill_at_ ? std::min(*kill_at_, kill_at) : kill_at;
    if (*kill_at_ <= now) return tick(now);
    return std::exchange(record_.term_sent, true) ? Action::kNone : Action::kSendTerm;
}

Termination::Action Termination::tick(Clock::time_point now) {
    if (!kill_at_ || now < *kill_at_) return Action::kNone;
    kill_at_.reset();
    record_.kill_sent = true;
    return Action::kSendKill;
}

}  // namespace sekali::process
