#pragma once

#include <chrono>
#include <string_view>

#include "bench/bench.hpp"
#include "bench/target.hpp"
#include "process/signals.hpp"

namespace sekali::bench {

/// What every part of a bench is given: its options, what it measures, and the way to be stopped.
class Steps {
 public:
    Steps(const BenchOptions& options, Target& target, process::SignalSource& signals)
        : options_(options), target_(target), signals_(signals) {}

    /// Tells what comes next. Throws `Failure` (`kCancelled`) when a signal has asked to stop.
    void next(std::string_view what);
    void check();

    [[nodiscard]] const BenchOptions& options() const { return options_; }
    [[nodiscard]] Target& target() { return target_; }

 private:
    const BenchOptions& options_;
    Target& target_;
    process::SignalSource& signals_;
};

}  // namespace sekali::bench
