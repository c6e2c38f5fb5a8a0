#include "base/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace sekali {

RetryPolicy apply(RetryPolicy policy, const RetryOverrides& overrides) {
    policy.base = overrides.base.value_or(policy.base);
    policy.factor = overrides.factor.value_or(policy.factor);
    policy.cap = overrides.cap.value_or(policy.cap);
    policy.jitter = overrides.jitter.value_or(policy.jitter);
    policy.max_attempts = overrides.max_attempts.value_or(policy.max_attempts);
    if (overrides.max_age) policy.max_age = overrides.max_age;
    return policy;
}

std::chrono::milliseconds backoff_delay(const RetryPolicy& policy, std::uint64_t attempt,
                                        double random) {
    const double cap = static_cast<double>(policy.cap.count());
    const double exponent = attempt == 0 ? 0.0 : static_cast<double>(attempt - 1);
    const double grown =
        static_cast<double>(policy.base.count()) * std::pow(policy.factor, exponent);
    // A power that left the range of double is infinite, or 0 * infinity: both mean "the cap".
    const double whole = std::isfinite(grown) ? std::min(grown, cap) : cap;
    const double kept = whole * (1.0 - policy.jitter * std::clamp(random, 0.0, 1.0));
    // Compared before it is rounded: the largest cap has no double of its own, and would wrap to 0.
    if (kept >= cap) return policy.cap;
    return std::chrono::milliseconds{std::llround(std::max(kept, 0.0))};
}

}  // namespace sekali
