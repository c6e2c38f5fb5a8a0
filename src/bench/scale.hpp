#pragma once

#include "bench/result.hpp"
#include "bench/scratch.hpp"
#include "bench/steps.hpp"

namespace sekali::bench {

/// Measures on SQLite what one job costs beside ever more jobs that wait and records that are kept,
/// with ascending and with random keys, and what its rows cost as bare statements in the same
/// database.
void measure_scale(Steps& steps, Scratch& scratch, BenchResult& result);

}  // namespace sekali::bench
