#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace sekali::process {

/// A worker's exit statuses that its supervisor understands.
inline constexpr int kWorkerDone = 0;      ///< Stopped as asked, or nothing left to do.
inline constexpr int kWorkerUsage = 2;     ///< Its configuration is wrong: a restart cannot help.
inline constexpr int kWorkerRecycle = 86;  ///< Start me again now: no crash, no back-off.

enum class RestartPolicy : std::uint8_t {
    kAlways,     ///< Every end that was not asked for is followed by a restart.
    kUntilDone,  ///< As `kAlways`, but a worker that exits 0 is done (`work --drain`).
};

struct SupervisorOptions {
    int processes = 1;
    RestartPolicy policy = RestartPolicy::kAlways;
    /// From the first stop signal to SIGKILL; longer than the grace that the workers give to
    /// handlers, so that they can hand back.
    std::chrono::milliseconds grace{30'000};
    /// From the second stop signal to SIGKILL.
    std::chrono::milliseconds kill_after{2'000};
    std::chrono::milliseconds restart_base{
        100};  ///< Doubled with each crash in a row, up to the cap.
    std::chrono::milliseconds restart_cap{30'000};
    std::chrono::milliseconds stable_after{60'000};  ///< A run this long starts the count anew.
    /// Told, in the supervisor, about starts and ends in words; may be empty.
    std::function<void(const std::string& line)> log;
};

/// Runs `processes` workers, each in a forked child in its own process group, and starts crashed
/// ones again. Must be called from a process with one thread and no open database.
///
/// SIGTERM or SIGINT is passed on as SIGTERM; so is a second one, which means at once. SIGUSR1
/// (no new work) is passed on, and no worker is started again behind it. A worker that exits with
/// `kWorkerUsage` ends them all. Blocks until every child, also the guards of dead workers, is
/// gone. Returns 0 after a stop by signal or when all are done, `kWorkerUsage` when a worker said
/// so, 1 when it could not start.
[[nodiscard]] int supervise(const SupervisorOptions& options,
                            const std::function<int(int index)>& worker_body);

}  // namespace sekali::process
