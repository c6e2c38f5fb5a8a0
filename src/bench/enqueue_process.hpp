#pragma once

#include "bench/result.hpp"
#include "bench/steps.hpp"

namespace sekali::bench {

/// Measures `sekali enqueue` as a process, from its start to its end.
void measure_enqueue_process(Steps& steps, BenchResult& result);

}  // namespace sekali::bench
