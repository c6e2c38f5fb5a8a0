#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace sekali::bench {

/// Measures from its construction on.
class Stopwatch {
 public:
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(base::steady_now() - start_).count();
    }
    [[nodiscard]] double ms() const { return seconds() * 1e3; }

 private:
    std::chrono::steady_clock::time_point start_ = base::steady_now();
};

/// Processor time of all threads of this process so far, in seconds.
[[nodiscard]] double cpu_seconds();

}  // namespace sekali::bench
