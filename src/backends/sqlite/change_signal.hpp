#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/fd.hpp"
#include "engine/model.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// How those who wait learn of commits: of this process by an event, of other sekali processes by a
/// file that they touch, of foreign connections by the log file. Thread-safe.
class ChangeSignal {
 public:
    struct Paths {
        std::string database;
        std::string log;
        std::string wake;
    };
    /// Throws `Failure`.
    ChangeSignal(Paths paths, bool read_only);

    /// Tells everybody that a commit of this process made something ready or ended something.
    void announce();
    /// Returns after somebody's commit, or after `at_most`; at first, and now and then, at once.
    /// A change between two waits of a process ends the second one.
    void wait(engine::Millis at_most);

 private:
    using Time = std::chrono::steady_clock::time_point;
    enum class Seen { kNothing, kNews, kLogWritten };

    void start_watching();
    void wait_alone(Time deadline);
    /// While `resting` only commits of this process end it early.
    [[nodiscard]] Seen poll_until(Time deadline, bool resting);
    [[nodiscard]] Seen read_events();
    [[nodiscard]] bool database_changed();

    const Paths paths_;
    const Fd wake_;  ///< The file that is touched; missing where it may not be written.
    const Fd own_;   ///< eventfd: commits of this process.

    std::mutex mutex_;
    std::condition_variable round_over_;
    bool somebody_waits_ = false;
    std::uint64_t rounds_ = 0;

    // For the one that waits.
    Fd events_;  ///< inotify; missing where the kernel has none to give.
    int wake_watch_ = -1;
    std::optional<Connection> connection_;
    StatementPtr data_version_;
    std::int64_t last_version_ = 0;
    Time last_return_for_log_{};
};

}  // namespace sekali::sqlite
