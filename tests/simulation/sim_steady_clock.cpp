#include "base/clock.hpp"

// The linker puts this in the place of `base::steady_now`: a group commit that looks at the time
// would make every run another one.
namespace sekali::sim {

std::chrono::steady_clock::time_point standing_clock() __asm__(
    "__wrap__ZN6sekali4base10steady_nowEv");

std::chrono::steady_clock::time_point standing_clock() {
    return {};
}

}  // namespace sekali::sim
