#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/lock_service.hpp"

namespace sekali::client {

/// One lock that is held, shared by its handle and the keeper.
struct HeldLock {
    std::string ns;
    std::string name;
    std::string token;
    std::uint64_t fence = 0;
    engine::Millis ttl{};
    bool permit = false;
    bool renewed = true;                            ///< Whether the keeper renews it.
    std::optional<engine::LocalTime> hold_until{};  ///< It is renewed no further than this.
    std::stop_source lost{};

    // Guarded by the keeper's mutex.
    engine::LocalTime valid_until{};
    engine::LocalTime tell_at{};  ///< When it counts as lost, a little before it is.
    engine::LocalTime renew_at{};
    bool asking = false;
    bool over = false;  ///< Lost or released.
    std::pair<engine::LocalTime, std::uint64_t> agenda_key{};
};

/// Renews locks on a thread of its own, which no holder can starve, and tells when one is lost.
/// What is due together goes out together; the renewals of many locks spread over their period.
class LockKeeper {
 public:
    explicit LockKeeper(std::shared_ptr<LockService> service);
    /// Forgets what it still keeps, without releasing it.
    ~LockKeeper();
    LockKeeper(const LockKeeper&) = delete;
    LockKeeper& operator=(const LockKeeper&) = delete;

    /// From now on the lock is watched; `asked` is from before its request was sent.
    void keep(std::shared_ptr<HeldLock> lock, engine::LocalTime asked);
    /// Stops watching; false when the lock had been lost before. No renewal is sent behind it.
    bool forget(HeldLock& lock);
    [[nodiscard]] engine::LocalTime valid_until(const HeldLock& lock) const;
    [[nodiscard]] LockService& service() const { return *service_; }

 private:
    using LockRef = std::shared_ptr<HeldLock>;
    /// Any will do: it spreads the renewals of one process.
    static constexpr std::uint32_t kSpreadSeed = 1;
    /// What outlives the keeper until the last answer is there.
    struct Shared {
        mutable std::mutex mutex;
        std::condition_variable_any changed;
        std::map<std::pair<engine::LocalTime, std::uint64_t>, LockRef> agenda;
        std::uint64_t next_number = 0;
        std::minstd_rand random{kSpreadSeed};
    };
    struct Renewal {
        LockRef lock;
        engine::Millis life;
    };

    void watch(const std::stop_token& stop);
    void look(std::vector<LockRef>& lapsed, std::vector<Renewal>& due, engine::LocalTime now);
    void submit(const std::vector<Renewal>& due, engine::LocalTime now);
    static void schedule(Shared& shared, const LockRef& lock);
    static void granted(Shared& shared, HeldLock& lock, engine::LocalTime asked,
                        engine::Millis certain, engine::Millis life);

    std::shared_ptr<LockService> service_;
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    std::jthread thread_;
};

}  // namespace sekali::client
