#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

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
    /// Longest time to hold it: it lapses then, however often it was renewed. Default: no bound.
    std::optional<std::chrono::milliseconds> max_hold{};
    /// 0: a lock. Else one permit of a semaphore that has so many; redis only. Permits have no
    /// fence. All callers should say the same number; the last one counts.
    std::uint32_t permits = 0;
    /// Ends the waiting with `kCancelled`.
    std::stop_token stop{};
};

/// How a lock is written in a Redis, which is whom it is shared with.
enum class LockProfile : std::uint8_t {
    kRedisson,  ///< As Redisson's RLock and RFencedLock, which it wakes and is woken by.
    kString,    ///< As Laravel's `Cache::lock`, redis-py and Spring: the owner in a string.
};

/// How the locks of a client are named and written. A plain value.
struct LockClientOptions {
    std::string ns = "default";
    LockProfile profile = LockProfile::kRedisson;
    /// Before every name in a Redis; default is `sekali:NS:lock:`. Empty: the names as they are,
    /// for locks that other programs take too.
    std::optional<std::string> prefix{};
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
    /// Fires when the lock is lost: taken by another, broken, or not renewed in time; then a
    /// twentieth of its life before another can have it.
    [[nodiscard]] std::stop_token stop_token() const;
    /// Frees the lock if it is still held. `kConflict` when it was lost before. Blocks until the
    /// store has answered; throws nothing. A second call does nothing.
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
    /// Opens the lock service of a store, or a Redis (`redis://…`, `rediss://…`, `redis+unix:…`),
    /// which is connected to by the first call; the default store for an empty URL.
    [[nodiscard]] static Result<LockClient> open(std::string_view url,
                                                 std::string_view ns = "default");
    [[nodiscard]] static Result<LockClient> open(std::string_view url,
                                                 const LockClientOptions& options);

    /// Takes a lock. `kConflict` when it was busy for as long as `options.wait`; `kCancelled` when
    /// `options.stop` fired; `kUsage` for a bad name or life; `kUnreachable` and `kRefused` for the
    /// service, and with `applied` as maybe nobody knows whether it was granted: it is given back
    /// as far as that can be done, else it lapses. Blocks for so long.
    [[nodiscard]] Result<LockHandle> acquire(std::string_view name,
                                             const LockOptions& options = {});

    /// Asks once: `kConflict` when it is busy.
    [[nodiscard]] Result<LockHandle> try_lock(std::string_view name) { return acquire(name); }
    /// Waits for so long, or until `stop` fires; without end when `wait` is empty.
    [[nodiscard]] Result<LockHandle> lock(
        std::string_view name, std::optional<std::chrono::milliseconds> wait = std::nullopt,
        std::stop_token stop = {}) {
        LockOptions options;
        options.wait = wait;
        options.stop = std::move(stop);
        return acquire(name, options);
    }

 private:
    friend class internal::LockAccess;
    explicit LockClient(std::shared_ptr<internal::LockClientCore> core) : core_(std::move(core)) {}
    std::shared_ptr<internal::LockClientCore> core_;
};

}  // namespace sekali
