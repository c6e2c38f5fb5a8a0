#include "bench/bench.hpp"

#include <csignal>

#include "bench/enqueue_process.hpp"
#include "bench/environment.hpp"
#include "bench/idle_worker.hpp"
#include "bench/postgres_target.hpp"
#include "bench/scale.hpp"
#include "bench/sqlite_target.hpp"
#include "bench/steps.hpp"
#include "bench/throughput.hpp"

namespace sekali::bench {

namespace {

BenchResult run_on(Target& target, const BenchOptions& options, Scratch* scratch) {
    process::SignalSource signals =
        process::SignalSource::install({SIGINT, SIGTERM, SIGHUP}).value();
    Steps steps(options, target, signals);
    steps.next("looking around");
    BenchResult result;
    result.environment = target.look_around();
    // First, because it forks; it waits for what the throughput finds.
    IdleWorker worker;
    measure_enqueue_process(steps, result);
    measure_throughput(steps, result);
    measure_idle_worker(steps, worker, result);
    if (scratch != nullptr && options.scale) measure_scale(steps, *scratch, result);
    return result;
}

}  // namespace

BenchResult run_bench(const BenchOptions& options) {
    if (!options.postgres.empty()) {
        PostgresTarget target(options.postgres);
        return run_on(target, options, nullptr);
    }
    SqliteTarget target(options.parent, options.synchronous);
    return run_on(target, options, &target.scratch());
}

}  // namespace sekali::bench
