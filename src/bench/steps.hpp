#pragma once

#include <chrono>
#include <string_view>

#include "bench/bench.hpp"
#include "bench/scratch.hpp"
#include "process/signals.hpp"

namespace sekali::bench {

/// What every part of a bench is given: its options, its folder, and the way to be stopped.
class Steps {
 public:
    Steps(const BenchOptions& options, Scratch& scratch, process::SignalSource& signals)
        : options_(options), scratch_(scratch), signals_(signals) {}

    /// Tells what comes next. Throws `Failure` (`kCancelled`) when a signal has asked to stop.
    void next(std::string_view what);
    void check();

    [[nodiscard]] const BenchOptions& options() const { return options_; }
    [[nodiscard]] Scratch& scratch() { return scratch_; }

 private:
    const BenchOptions& options_;
    Scratch& scratch_;
    process::SignalSource& signals_;
};

}  // namespace sekali::bench
