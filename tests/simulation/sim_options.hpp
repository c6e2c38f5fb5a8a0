#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/worker_machine.hpp"
#include "simulation/sim_random.hpp"

namespace sekali::sim {

using engine::Millis;

/// What one seed draws. Each kind of fault is missing in some runs, so that plain bugs show too.
struct Options {
    std::uint64_t seed = 0;
    std::size_t workers = 0;
    std::size_t concurrency = 0;
    std::size_t prefetch = 0;
    std::size_t jobs = 0;
    std::size_t keys = 0;   ///< For each kind; jobs that draw the same one are duplicates.
    std::size_t locks = 0;  ///< 0: no job has a lock key.
    Millis lease{};
    Millis span{};  ///< Of the phase with faults.
    bool tells_changes = false;
    bool proves_deaths = false;  ///< All workers are on one host.
    double drift = 0.0;          ///< Largest error of a worker's clock.

    double lost_request = 0.0;
    double late_request = 0.0;  ///< It arrives after its sender has given up.
    double lost_reply = 0.0;
    double stalls = 0.0;        ///< The store stands still; times a minute.
    double outages = 0.0;       ///< The store refuses; times a minute.
    double crashes = 0.0;       ///< At each action of a worker.
    double pauses = 0.0;        ///< Of a worker, longer than the lease; times a minute.
    double stops = 0.0;         ///< Of a worker, by signal; times a minute.
    double cancels = 0.0;       ///< And other acts of people; times a minute.
    double poison = 0.0;        ///< Jobs that kill their process.
    double misbehaviour = 0.0;  ///< Handlers that hang, or ignore being stopped.
    double failures = 0.0;      ///< Handlers that fail.

    double leaps = 0.0;         ///< Of a worker's clock, as after a sleep of its host.
    double store_drift = 0.0;   ///< Error of the store's clock.
    bool lock_service = false;  ///< Lock keys are taken in a service outside the store first.
    double lock_losses = 0.0;   ///< Its restarts and failovers; times a minute.
    double strangers = 0.0;     ///< Others who take its locks; times a minute.
    bool honours_keys = false;  ///< The outside world does nothing twice for one step key.
    bool broker = false;        ///< Jobs come from a queue without custody.
    double disconnects = 0.0;   ///< Of a worker from it; times a minute.
    double published_twice = 0.0;
    std::size_t delivery_limit = 0;  ///< Of that queue; 0: none.
    bool claims_begin = false;       ///< A claim begins runs in its own commit.
    bool sqlite = false;        ///< The store is SQLite on a disk that loses what is not synced.
    double power_cuts = 0.0;    ///< Of that disk and of all workers; times a minute.
    double late_effects = 0.0;  ///< The outside world acts after its caller has gone on.
};

[[nodiscard]] Options draw_options(std::uint64_t seed);
/// The same world around another store, whose host cannot prove a death.
[[nodiscard]] Options on_sqlite(Options options);
/// A seed of the corpus means the faults that there were when it was found.
[[nodiscard]] Options without_later_faults(Options options);
[[nodiscard]] std::string describe(const Options& options);

/// How the simulated kinds are worked; their names say what they are.
[[nodiscard]] std::map<std::string, engine::KindSetup> draw_kinds(const Options& options,
                                                                  SimRandom& random);

}  // namespace sekali::sim
