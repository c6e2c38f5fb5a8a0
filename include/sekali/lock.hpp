#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali {

namespace internal {
class LockClientCore;
class LockState;
class LockAccess;
}  // namespace internal

/// How one lock is taken. A plain value.
struct LockOptions {
    /// Life of the lock after its last renewal; 500 ms or more.
    std::chrono::milliseconds ttl{std::chrono::seconds{30}};
    /// How long to wait for it; 0 asks once, nothing waits without end.
    std::optional<std::chrono::milliseconds> wait = std::chrono::milliseconds{0};
    /// Renew it every third of its life until it is released. Without, it simply lapses.
    bool renew = true;
    /// Ends the waiting with `kCancelled`.
    std::stop_token stop{};
};

/// A lock that this process holds; released by its destructor. Move-only. Thread-safe but for
/// moves.
///
/// It excludes, but it does not fence: after `valid_until`, and once `stop_token` has fired,
/// another may hold the lock. What must not be done twice belongs into a handler, whose commit is
/// checked.
class LockHandle {
 public:
    LockHandle(LockHandle&&) noexcept;
    LockHandle& operator=(LockHandle&&) noexcept;
    LockHandle(const LockHandle&) = delete;
    LockHandle& operator=(const LockHandle&) = delete;
    /// Releases the lock as `release` does and drops the error.
    ~LockHandle();

    [[nodiscard]] const std::string& name() const;
    /// Unique for this grant.
    [[nodiscard]] const std::string& token() const;
    /// Grows with every grant of this lock; for a resource that can refuse the smaller one.
    [[nodiscard]] std::uint64_t fence() const;
    /// Until when the lock is certainly held, by this process's steady clock, counted from before
    /// the last granted request was sent.
    [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const;
    /// Fires when the lock is lost: taken by another, broken, or not renewed in time.
    [[nodiscard]] std::stop_token stop_token() const;
    /// Frees the lock if it is still held. `kConflict` when it was lost before. Blocks until the
    /// store has answered. A second call does nothing.
    Result<void> release();

 private:
    friend class internal::LockAccess;
    explicit LockHandle(std::unique_ptr<internal::LockState> state);
    std::unique_ptr<internal::LockState> state_;
};

/// Takes locks by name, without any queue or worker.
///
/// Names are shared by `sekali lock`, the lock keys of jobs and every `LockClient` of the
/// namespace. A handle: copies share one connection and one thread that renews. Thread-safe.
class LockClient {
 public:
    /// Opens the lock service of a store; the default store for an empty URL.
    [[nodiscard]] static Result<LockClient> open(std::string_view url,
                                                 std::string_view ns = "default");

    /// Takes a lock. `kConflict` when it was busy for as long as `options.wait`; `kCancelled` when
    /// `options.stop` fired; `kUsage` for a bad name or life. Blocks for so long.
    [[nodiscard]] Result<LockHandle> acquire(std::string_view name,
                                             const LockOptions& options = {});

 private:
    friend class internal::LockAccess;
    explicit LockClient(std::shared_ptr<internal::LockClientCore> core) : core_(std::move(core)) {}
    std::shared_ptr<internal::LockClientCore> core_;
};

}  // namespace sekali
