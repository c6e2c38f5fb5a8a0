#pragma once

#include "bench/result.hpp"
#include "bench/steps.hpp"

namespace sekali::bench {

/// Measures bulk enqueue and the drain of every level, in rounds in which sekali and bare
/// statements take turns, each on a new database, so that what else the machine does hits both.
void measure_throughput(Steps& steps, BenchResult& result);

}  // namespace sekali::bench
