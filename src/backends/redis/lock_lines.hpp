#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/redis/lock_port.hpp"
#include "engine/worker_machine.hpp"

namespace sekali::redis {

/// A lock that somebody waits for, and who is told.
struct LockWish {
    engine::LockAcquire request;
    std::optional<TimePoint> until;  ///< None: waits without end.

    struct Grant {
        engine::LockReply reply;
        engine::LocalTime asked;  ///< From before the granting request left.
    };
    /// Called once, on the loop's thread. `kConflict` when it was busy for so long.
    std::function<void(Result<Grant>)> done;
};

/// Waits for locks of others without polling them.
///
/// The waiters for one lock stand in line in this process, and the first of them alone asks the
/// server: when it comes, when a release is published, and when the holder's life ends. A message
/// may be missed, so it also looks by itself, seldom; often where the holder is a program that
/// publishes nothing. A wish keeps its token over all tries: an answer that is lost is settled by
/// the next one, and what may be granted behind a wish that was given up is freed.
class LockLines {
 public:
    using WishId = std::uint64_t;

    explicit LockLines(std::shared_ptr<LockPort> port);
    /// Wishes end with `kCancelled`, and what is granted to one of them by a request that is still
    /// on its way is freed: waits for its answer. Not to be called on the loop's thread.
    ~LockLines();
    LockLines(const LockLines&) = delete;
    LockLines& operator=(const LockLines&) = delete;

    /// Thread-safe; so is `cancel`, which ends a wish with `kCancelled` unless it has ended.
    WishId wait(LockWish wish);
    void cancel(WishId id);

    /// Lines that somebody stands in; for tests. Not to be called on the loop's thread.
    [[nodiscard]] std::size_t size();

 private:
    class Core;
    std::shared_ptr<LockPort> port_;
    std::atomic<WishId> next_id_ = 1;
    std::shared_ptr<Core> core_;
};

}  // namespace sekali::redis
