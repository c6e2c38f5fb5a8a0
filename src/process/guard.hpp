#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "process/exec_control.hpp"
#include "process/strays.hpp"
#include "sekali/result.hpp"

namespace sekali::process {

/// Tells a child the number of its control descriptor.
inline constexpr const char* kControlFdVariable = "SEKALI_CONTROL_FD";

/// One child of a guard; never used twice.
enum class ChildId : std::uint64_t {};

struct SpawnRequest {
    std::vector<std::string> argv;  ///< Program and arguments; a program without `/` is searched in
                                    ///< the PATH of `env`.
    std::vector<std::string> env;   ///< The whole environment, `NAME=VALUE`; the guard adds
                                    ///< SEKALI_ATTEMPT_ID and SEKALI_CONTROL_FD.
    std::string stdin_bytes;
    std::size_t stdout_cap = 64 * 1024;      ///< Bytes of stdout kept, from its beginning.
    std::size_t stderr_tail_cap = 8 * 1024;  ///< Bytes of stderr kept, from its end.
    std::string cwd;                         ///< Empty: the guard's own.
    std::string attempt_id;                  ///< Unique for each attempt; not empty.
};

/// What a child wrote.
struct ChildOutput {
    std::string stdout_bytes;        ///< The first `stdout_cap` bytes.
    std::uint64_t stdout_total = 0;  ///< All bytes of stdout that were read, kept or not.
    std::string stderr_tail;         ///< The last `stderr_tail_cap` bytes.
    std::uint64_t stderr_total = 0;
    ControlReport control;
};

/// The program runs. The first event of a child, unless it is `SpawnFailed`.
struct ChildStarted {
    ChildId id{};
    pid_t pid = 0;
};
/// The program never ran; the last event of this child.
struct SpawnFailed {
    ChildId id{};
    int errno_value = 0;
    std::string message;  ///< `cannot run ./charge.sh: No such file or directory`
};
struct ChildProgress {
    ChildId id{};
    Progress progress;
};
/// The child's main process ended. What is left of its group is being ended.
struct ChildExited {
    ChildId id{};
    int wait_status = 0;  ///< As `waitpid` gives it; 0 and without meaning when the guard is lost.
    bool guard_lost = false;  ///< The guard died, so the child was killed and its end was not seen.
    bool all_gone = false;    ///< No process of the child is alive; else `ChildGone` follows.
    ChildOutput output;
};
/// No process of the child's group is alive any more; only after a `ChildExited` that could not say
/// so.
struct ChildGone {
    ChildId id{};
};
/// The guard died: every child was killed and reported, nothing more can be spawned, and the worker
/// process is to be recycled. The last event.
struct GuardLost {
    bool all_gone = false;  ///< Every process that carried the id of an attempt is gone.
};
using GuardEvent =
    std::variant<ChildStarted, SpawnFailed, ChildProgress, ChildExited, ChildGone, GuardLost>;

struct GuardOptions {
    /// Kept open by the guard until every descendant is gone; -1: none. Its lock proves to others
    /// that this worker, its children and their children are dead. Never inherited by a child.
    int alive_fd = -1;
    /// What is left of a group after its main process ended gets SIGTERM, and after this SIGKILL.
    std::chrono::milliseconds leftover_grace{5000};
};

/// The process that forks for a worker, and its client in the worker.
///
/// A worker holds threads and a database, so it must not fork: a small single-threaded process does
/// it. It is the subreaper of all that it spawns and, when the worker dies in any way, kills every
/// descendant before it ends itself. All members but `listen` and `close` are thread-safe.
class Guard {
 public:
    using Callback = std::function<void(GuardEvent)>;

    /// Forks the guard. To be called before any thread or database is opened; refused when the
    /// process already has a second thread. Makes the calling process a child subreaper.
    [[nodiscard]] static Result<Guard> start(const GuardOptions& options);

    Guard(Guard&&) noexcept;
    Guard& operator=(Guard&&) noexcept;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    /// As `close`.
    ~Guard();

    /// Starts the I/O thread, once. Events are delivered on it, in order for each child; the
    /// callback must not block and must not close the guard; it may spawn and signal.
    void listen(Callback on_event);

    /// Asks for a child; needs `listen` before. Does not wait: `ChildStarted` or `SpawnFailed`
    /// follows, perhaps before this returns. On an error nothing was run. Errors: `kUsage` for a
    /// request that no exec could take, `kRefused` (retryable) while too many wait to be spawned or
    /// when the guard is lost or closed.
    [[nodiscard]] Result<ChildId> spawn(SpawnRequest request);

    /// Sends a signal to the child's process group; SIGTERM is followed by SIGCONT. Does nothing
    /// once the group is gone.
    void signal_group(ChildId id, int signal);

    [[nodiscard]] pid_t pid() const;
    [[nodiscard]] bool lost() const;

    /// Kills every child that still runs, ends the guard and waits for it, at most some seconds. No
    /// event is delivered after it returns.
    void close();

 private:
    class Impl;
    explicit Guard(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace sekali::process
