#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/backend.hpp"
#include "engine/worker_machine.hpp"

namespace sekali::client {

/// One lock that is held, shared by its handle and the keeper.
struct HeldLock {
    std::string ns;
    std::string name;
    std::string token;
    std::uint64_t fence = 0;
    engine::Millis ttl{};
    bool renewed = true;  ///< Whether the keeper renews it.
    std::stop_source lost{};

    // Guarded by the keeper's mutex.
    engine::LocalTime valid_until{};
    engine::LocalTime renew_at{};
    bool asking = false;
    bool over = false;  ///< Lost or released.
};

/// Renews locks on a thread of its own, which no holder can starve, and tells when one is lost.
class LockKeeper {
 public:
    explicit LockKeeper(std::shared_ptr<Backend> backend);
    /// Forgets what it still keeps, without releasing it.
    ~LockKeeper();
    LockKeeper(const LockKeeper&) = delete;
    LockKeeper& operator=(const LockKeeper&) = delete;

    /// From now on the lock is watched; `asked` is from before its request was sent.
    void keep(std::shared_ptr<HeldLock> lock, engine::LocalTime asked);
    /// Stops watching; false when the lock had been lost before.
    bool forget(HeldLock& lock);
    [[nodiscard]] engine::LocalTime valid_until(const HeldLock& lock) const;
    [[nodiscard]] Backend& backend() const { return *backend_; }

 private:
    /// What outlives the keeper until the last answer is there.
    struct Shared {
        mutable std::mutex mutex;
        std::condition_variable_any changed;
        std::map<std::string, std::shared_ptr<HeldLock>> locks;  ///< By token.
    };
    using Locks = std::vector<std::shared_ptr<HeldLock>>;

    void watch(const std::stop_token& stop);
    [[nodiscard]] static engine::LocalTime next_look(const Shared& shared);
    [[nodiscard]] static Locks take_lapsed(Shared& shared, engine::LocalTime now);
    [[nodiscard]] static Locks take_due(Shared& shared, engine::LocalTime now);
    void renew(const Locks& due, engine::LocalTime now);
    static void answered(Shared& shared, const std::shared_ptr<HeldLock>& lock,
                         engine::LocalTime asked, const Result<engine::LockReply>& reply);

    std::shared_ptr<Backend> backend_;
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    std::jthread thread_;
};

}  // namespace sekali::client
