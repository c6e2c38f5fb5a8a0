#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/blocking.hpp"
#include "client/inbox.hpp"
#include "client/lock_keeper.hpp"
#include "sekali/lock.hpp"

namespace sekali {
namespace internal {

/// What the copies of one `LockClient` and its handles share.
class LockClientCore {
 public:
    LockClientCore(std::shared_ptr<client::Backend> backend, std::string_view locks_ns)
        : keeper(std::move(backend)), ns(locks_ns), owner(base::random_hex(8)) {}

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

using engine::LocalTime;
using engine::LockReply;
using engine::Millis;

constexpr Millis kLeastTtl{500};
/// Between two looks for a lock that another holds; a change in the store ends it early.
constexpr Millis kLongestPause{100};

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
    return {};
}

/// One try to take a lock for as long as the caller waits.
class Acquisition {
 public:
    Acquisition(std::shared_ptr<internal::LockClientCore> core, std::string_view name,
                const LockOptions& options)
        : core_(std::move(core)),
          options_(options),
          until_(options.wait ? std::optional(client::local_now() + *options.wait) : std::nullopt) {
        request_ = {.ns = core_->ns,
                    .name = std::string(name),
                    .owner = core_->owner,
                    .token = base::random_hex(16),
                    .ttl = options.ttl};
    }

    Result<LockHandle> run();

 private:
    Result<LockHandle> hold(const LockReply& reply, LocalTime asked);
    Error give_up(Error error);

    std::shared_ptr<internal::LockClientCore> core_;
    const LockOptions& options_;
    const std::optional<LocalTime> until_;
    engine::LockAcquire request_;
    bool maybe_granted_ = false;
};

Result<LockHandle> Acquisition::run() {
    client::Backend& backend = core_->keeper.backend();
    while (true) {
        if (options_.stop.stop_requested()) {
            Error error;
            error.code = ErrorCode::kCancelled;
            error.message = "the wait for the lock was ended";
            return give_up(std::move(error));
        }
        const LocalTime asked = client::local_now();
        const auto reply = client::ask<engine::LockPort, LockReply>(backend.ports(), request_);
        if (reply.ok() && reply->kind == LockReply::Kind::kAcquired) return hold(*reply, asked);
        if (!reply.ok()) {
            maybe_granted_ |= reply.error().applied == Applied::kMaybe;
            if (!reply.error().retryable) return give_up(reply.error());
        }
        const LocalTime now = client::local_now();
        if (until_ && now >= *until_) {
            if (!reply.ok()) return give_up(reply.error());
            return give_up(conflict(
                fmt::format("lock {} is held by {}", base::quoted(request_.name), reply->holder)));
        }
        const Millis left = until_ ? *until_ - now : kLongestPause;
        backend.executor().wait_for_change(std::min(left, kLongestPause));
    }
}

Result<LockHandle> Acquisition::hold(const LockReply& reply, LocalTime asked) {
    auto lock = std::make_shared<client::HeldLock>();
    lock->ns = request_.ns;
    lock->name = request_.name;
    lock->token = request_.token;
    lock->fence = reply.fence;
    lock->ttl = request_.ttl;
    lock->renewed = options_.renew;
    core_->keeper.keep(lock, asked);
    auto state = std::make_unique<internal::LockState>();
    state->core = core_;
    state->lock = std::move(lock);
    return internal::LockAccess::make(std::move(state));
}

/// A request whose reply was lost may have been granted: nobody is to wait for it to lapse.
Error Acquisition::give_up(Error error) {
    if (maybe_granted_) {
        const engine::LockRelease release{
            .ns = request_.ns, .name = request_.name, .token = request_.token};
        static_cast<void>(
            client::ask<engine::LockPort, LockReply>(core_->keeper.backend().ports(), release));
    }
    return error;
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
    const bool held = state_->core->keeper.forget(lock);
    const engine::LockRelease request{.ns = lock.ns, .name = lock.name, .token = lock.token};
    const auto reply =
        client::ask<engine::LockPort, LockReply>(state_->core->keeper.backend().ports(), request);
    if (!reply.ok()) return reply.error();
    if (held && reply->kind == LockReply::Kind::kReleased) return {};
    return conflict(
        fmt::format("lock {} was lost before it was released", base::quoted(lock.name)));
}

Result<LockClient> LockClient::open(std::string_view url, std::string_view ns) {
    if (auto fine = base::check_name("namespace", ns); !fine) return fine.error();
    auto backend = client::open_backend(url);
    if (!backend.ok()) return backend.error();
    return LockClient(std::make_shared<internal::LockClientCore>(*std::move(backend), ns));
}

Result<LockHandle> LockClient::acquire(std::string_view name, const LockOptions& options) {
    if (auto fine = check(name, options); !fine) return fine.error();
    return Acquisition(core_, name, options).run();
}

}  // namespace sekali
