#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/redis/address.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/blocking.hpp"
#include "client/inbox.hpp"
#include "client/lock_keeper.hpp"
#include "client/lock_service.hpp"
#include "sekali/lock.hpp"

namespace sekali {
namespace internal {

/// What the copies of one `LockClient` and its handles share.
class LockClientCore {
 public:
    LockClientCore(std::shared_ptr<client::LockService> service, std::string locks_ns)
        : keeper(std::move(service)), ns(std::move(locks_ns)), owner(base::random_hex(8)) {}

    client::LockKeeper keeper;
    const std::string ns;
    const std::string owner;
};

class LockState {
 public:
    std::shared_ptr<LockClientCore> core;
    std::shared_ptr<client::HeldLock> lock;
    bool released = false;
};

class LockAccess {
 public:
    [[nodiscard]] static LockHandle make(std::unique_ptr<LockState> state) {
        return LockHandle(std::move(state));
    }
};

}  // namespace internal

namespace {

using engine::LockReply;
using engine::Millis;

constexpr Millis kLeastTtl{500};

Error conflict(std::string message) {
    Error error;
    error.code = ErrorCode::kConflict;
    error.message = std::move(message);
    return error;
}

Result<void> check(std::string_view name, const LockOptions& options) {
    if (auto fine = base::check_key("lock", name); !fine) return fine;
    if (options.ttl < kLeastTtl || options.ttl > base::kMaxDuration) {
        return base::usage_error(fmt::format("ttl of a lock must be {} or more, not {} ms",
                                             base::format_duration(kLeastTtl),
                                             options.ttl.count()));
    }
    if (options.wait && options.wait->count() < 0) {
        return base::usage_error("wait of a lock must not be negative");
    }
    if (options.max_hold && *options.max_hold < kLeastTtl) {
        return base::usage_error(fmt::format("max_hold of a lock must be {} or more, not {} ms",
                                             base::format_duration(kLeastTtl),
                                             options.max_hold->count()));
    }
    return {};
}

std::shared_ptr<client::HeldLock> held(const engine::LockAcquire& request,
                                       const LockOptions& options,
                                       const client::LockService::Grant& grant) {
    auto lock = std::make_shared<client::HeldLock>();
    lock->ns = request.ns;
    lock->name = request.name;
    lock->token = request.token;
    lock->fence = grant.reply.fence;
    lock->ttl = request.ttl;
    lock->permit = request.permits != 0;
    lock->renewed = options.renew;
    if (options.max_hold) lock->hold_until = grant.asked + *options.max_hold;
    return lock;
}

}  // namespace

LockHandle::LockHandle(std::unique_ptr<internal::LockState> state) : state_(std::move(state)) {}
LockHandle::LockHandle(LockHandle&&) noexcept = default;

LockHandle& LockHandle::operator=(LockHandle&& other) noexcept {
    if (this != &other) {
        if (state_) static_cast<void>(release());
        state_ = std::move(other.state_);
    }
    return *this;
}

LockHandle::~LockHandle() {
    if (state_) static_cast<void>(release());
}

const std::string& LockHandle::name() const {
    return state_->lock->name;
}
const std::string& LockHandle::token() const {
    return state_->lock->token;
}
std::uint64_t LockHandle::fence() const {
    return state_->lock->fence;
}
std::stop_token LockHandle::stop_token() const {
    return state_->lock->lost.get_token();
}

std::chrono::steady_clock::time_point LockHandle::valid_until() const {
    const Millis left = state_->core->keeper.valid_until(*state_->lock) - client::local_now();
    return std::chrono::steady_clock::now() + left;
}

Result<void> LockHandle::release() {
    if (std::exchange(state_->released, true)) return {};
    client::HeldLock& lock = *state_->lock;
    client::LockKeeper& keeper = state_->core->keeper;
    const bool held = keeper.forget(lock);
    const engine::LockRelease request{
        .ns = lock.ns, .name = lock.name, .token = lock.token, .permit = lock.permit};
    auto reply = client::ask<engine::LockPort, LockReply>(keeper.service().port(), request);
    // A release may be repeated. Where the first answer was lost the second finds nothing to free.
    const bool maybe_freed = !reply.ok() && reply.error().applied == Applied::kMaybe;
    if (!reply.ok() && reply.error().retryable) {
        reply = client::ask<engine::LockPort, LockReply>(keeper.service().port(), request);
    }
    if (!reply.ok()) return reply.error();
    if (held && (reply->kind == LockReply::Kind::kReleased || maybe_freed)) return {};
    return conflict(
        fmt::format("lock {} was lost before it was released", base::quoted(lock.name)));
}

Result<LockClient> LockClient::open(std::string_view url, std::string_view ns) {
    LockClientOptions options;
    options.ns = ns;
    return open(url, options);
}

Result<LockClient> LockClient::open(std::string_view url, const LockClientOptions& options) {
    if (auto fine = base::check_name("namespace", options.ns); !fine) return fine.error();
    auto service = redis::is_redis_url(url) ? client::open_redis_locks(url, options)
                                            : client::open_store_locks(url);
    if (!service.ok()) return service.error();
    return LockClient(std::make_shared<internal::LockClientCore>(*std::move(service), options.ns));
}

Result<LockHandle> LockClient::acquire(std::string_view name, const LockOptions& options) {
    if (auto fine = check(name, options); !fine) return fine.error();
    client::LockService& service = core_->keeper.service();
    const engine::LockAcquire request{
        .ns = core_->ns,
        .name = std::string(name),
        .owner = core_->owner,
        .token = service.new_token(),
        .ttl = options.max_hold ? std::min(options.ttl, *options.max_hold) : options.ttl,
        .permits = options.permits};
    auto grant = service.acquire(request, options.wait, options.stop);
    if (!grant.ok()) return std::move(grant).error();
    auto state = std::make_unique<internal::LockState>();
    state->core = core_;
    state->lock = held(request, options, *grant);
    core_->keeper.keep(state->lock, grant->asked);
    return internal::LockAccess::make(std::move(state));
}

}  // namespace sekali
