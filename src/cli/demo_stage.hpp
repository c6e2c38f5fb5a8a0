#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sekali::cli {

struct DemoPlan {
    std::string folder;           ///< For the store, the gateway's socket and the ledgers.
    std::uint64_t orders = 1200;  ///< Payments and refunds, each of them once.
    std::uint64_t accounts = 40;
    std::uint64_t kills = 20;  ///< At least so many, each of a worker with a begun handler.
    int workers = 4;
    int concurrency = 4;
};

/// The document that `sekali demo --json` ends with.
struct DemoReport {
    std::uint64_t orders = 0;
    std::uint64_t enqueued = 0;  ///< Jobs, duplicates included.
    std::uint64_t kills = 0;     ///< Of workers whose handlers had begun.
    std::uint64_t effects = 0;   ///< Rows written through `ctx.commit`.
    std::uint64_t gateway_calls = 0;
    std::uint64_t gateway_charges = 0;  ///< Movements in the gateway's own ledger.
    std::uint64_t balance_errors = 0;
    std::uint64_t lost = 0;
    std::uint64_t double_effects = 0;
    double seconds = 0;

    [[nodiscard]] bool proven() const {
        return lost == 0 && double_effects == 0 && balance_errors == 0;
    }
};

/// Told how far it is, for a terminal.
using DemoProgress =
    std::function<void(std::uint64_t done, std::uint64_t all, std::uint64_t kills)>;

/// Plays the main job with real processes: a gateway, a producer that repeats itself, and workers
/// that are killed in the middle of their handlers; then compares the two ledgers. To be called
/// from a process with one thread and no open store. Blocks; leaves no process behind. Throws
/// `Failure`.
[[nodiscard]] DemoReport play_demo(const DemoPlan& plan, const DemoProgress& progress);

}  // namespace sekali::cli
