#include "bench/bench.hpp"

#include <csignal>

#include "bench/enqueue_process.hpp"
#include "bench/environment.hpp"
#include "bench/idle_worker.hpp"
#include "bench/scale.hpp"
#include "bench/steps.hpp"
#include "bench/throughput.hpp"

namespace sekali::bench {

BenchResult run_bench(const BenchOptions& options) {
    Scratch scratch(options.parent);
    process::SignalSource signals =
        process::SignalSource::install({SIGINT, SIGTERM, SIGHUP}).value();
    Steps steps(options, scratch, signals);
    steps.next("timing the disk");
    BenchResult result;
    result.environment = look_around(scratch.folder(), options.synchronous);
    // First, because it forks.
    measure_idle_worker(steps, result);
    measure_enqueue_process(steps, result);
    measure_throughput(steps, result);
    if (options.scale) measure_scale(steps, result);
    return result;
}

}  // namespace sekali::bench
