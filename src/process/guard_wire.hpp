#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/unique_fd.hpp"

/// What a guard and its worker say to each other, over a SOCK_SEQPACKET pair: both are the same
/// program, so messages are plain structs.
namespace sekali::process {

enum class GuardCommandKind : std::uint8_t { kSpawn, kSignal };

/// From the worker. A spawn carries the five descriptors of `SpawnFds`.
struct GuardCommand {
    GuardCommandKind kind{};
    int signal = 0;
    std::uint64_t child = 0;
};

/// Descriptors 0 to 3 of the child, then a memory file that holds a `SpawnBody`: argv and
/// environment may be larger than a message.
inline constexpr std::size_t kSpawnFdCount = 5;
using SpawnFds = std::array<UniqueFd, kSpawnFdCount>;

enum class GuardReportKind : std::uint8_t {
    kReady,        ///< The guard does its duty; the first report.
    kStarted,      ///< `value` is the pid.
    kSpawnFailed,  ///< `value` is the errno.
    kExited,       ///< `value` is the wait status.
    kGone,
};

/// From the guard.
struct GuardReport {
    GuardReportKind kind{};
    bool all_gone = false;  ///< Of `kExited`.
    int value = 0;
    std::uint64_t child = 0;
};

struct SpawnBody {
    std::vector<std::string> argv;
    std::vector<std::string> env;
    std::string cwd;
    std::string attempt_id;
};

enum class WireStatus : std::uint8_t { kDone, kWouldBlock, kClosed };

[[nodiscard]] WireStatus send_command(int socket, const GuardCommand& command,
                                      const SpawnFds* fds = nullptr);
[[nodiscard]] WireStatus receive_command(int socket, GuardCommand& command, SpawnFds& fds);
[[nodiscard]] WireStatus send_report(int socket, const GuardReport& report);
[[nodiscard]] WireStatus receive_report(int socket, GuardReport& report);

/// A memory file with the body; invalid, with errno set, when there is no memory or descriptor.
[[nodiscard]] UniqueFd write_spawn_body(const SpawnBody& body);
[[nodiscard]] std::optional<SpawnBody> read_spawn_body(int fd);

}  // namespace sekali::process
