#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "client/backend.hpp"
#include "client/blocking.hpp"
#include "client/inbox.hpp"
#include "client/lock_service.hpp"

namespace sekali::client {
namespace {

using engine::LocalTime;
using engine::LockReply;
using engine::Millis;

/// Between two looks for a lock that another holds; a change in the store ends it early.
constexpr Millis kLongestPause{100};

class StoreLocks final : public LockService {
 public:
    explicit StoreLocks(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

    engine::LockPort& port() override { return backend_->ports(); }
    std::string new_token() override { return base::random_hex(16); }
    Millis certain(Millis life) const override { return life; }
    Result<Grant> acquire(engine::LockAcquire request, std::optional<Millis> wait,
                          const std::stop_token& stop) override;

 private:
    Error give_up(const engine::LockAcquire& request, Error error, bool maybe_granted);

    std::shared_ptr<Backend> backend_;
};

Result<LockService::Grant> StoreLocks::acquire(engine::LockAcquire request,
                                               std::optional<Millis> wait,
                                               const std::stop_token& stop) {
    if (request.permits != 0) {
        return base::usage_error("permits are not to be had in this store",
                                 "semaphores are on redis: LockClient::open(\"redis://…\")");
    }
    const auto until = wait ? std::optional(local_now() + *wait) : std::nullopt;
    bool maybe_granted = false;
    while (true) {
        if (stop.stop_requested()) {
            Error error;
            error.code = ErrorCode::kCancelled;
            error.message = "the wait for the lock was ended";
            return give_up(request, std::move(error), maybe_granted);
        }
        const LocalTime asked = local_now();
        const auto reply = ask<engine::LockPort, LockReply>(backend_->ports(), request);
        if (reply.ok() && reply->kind == LockReply::Kind::kAcquired) return Grant{*reply, asked};
        if (!reply.ok()) {
            maybe_granted |= reply.error().applied == Applied::kMaybe;
            if (!reply.error().retryable) return give_up(request, reply.error(), maybe_granted);
        }
        const LocalTime now = local_now();
        if (until && now >= *until) {
            if (!reply.ok()) return give_up(request, reply.error(), maybe_granted);
            Error busy;
            busy.code = ErrorCode::kConflict;
            busy.message =
                fmt::format("lock {} is held by {}", base::quoted(request.name), reply->holder);
            return give_up(request, std::move(busy), maybe_granted);
        }
        const Millis left = until ? *until - now : kLongestPause;
        backend_->executor().wait_for_change(std::min(left, kLongestPause));
    }
}

/// A request whose reply was lost may have been granted: nobody is to wait for it to lapse.
Error StoreLocks::give_up(const engine::LockAcquire& request, Error error, bool maybe_granted) {
    if (maybe_granted) {
        const engine::LockRelease release{
            .ns = request.ns, .name = request.name, .token = request.token};
        static_cast<void>(ask<engine::LockPort, LockReply>(backend_->ports(), release));
    }
    return error;
}

}  // namespace

Result<std::shared_ptr<LockService>> open_store_locks(std::string_view url) {
    auto backend = open_backend(url);
    if (!backend.ok()) return backend.error();
    return std::shared_ptr<LockService>(std::make_shared<StoreLocks>(*std::move(backend)));
}

}  // namespace sekali::client
