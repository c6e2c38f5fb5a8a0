#include <future>
#include <utility>

#include "backends/redis/lock_lines.hpp"
#include "backends/redis/open.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"
#include "client/lock_service.hpp"

namespace sekali::client {
namespace {

using engine::Millis;

class RedisLocks final : public LockService {
 public:
    RedisLocks(redis::OpenServer opened, redis::LockSettings settings)
        : opened_(std::move(opened)),
          port_(std::make_shared<redis::LockPort>(opened_.server, std::move(settings))),
          lines_(port_) {}

    engine::LockPort& port() override { return *port_; }

    /// As Redisson signs: a client and a number, so that each side takes the other for its own.
    std::string new_token() override {
        return client_ + ":" + std::to_string(next_number_.fetch_add(1));
    }

    Result<Grant> acquire(engine::LockAcquire request, std::optional<Millis> wait,
                          const std::stop_token& stop) override {
        using Answer = Result<redis::LockWish::Grant>;
        // Shared, because the answering thread may still be in it when the waiting one is gone.
        const auto answered = std::make_shared<std::promise<Answer>>();
        auto answer = answered->get_future();
        redis::LockWish wish;
        wish.request = std::move(request);
        if (wait) wish.until = base::steady_now() + *wait;
        wish.done = [answered](Answer result) { answered->set_value(std::move(result)); };
        const auto id = lines_.wait(std::move(wish));
        const std::stop_callback on_stop(stop, [&] { lines_.cancel(id); });
        Answer result = answer.get();
        if (!result.ok()) return std::move(result).error();
        return Grant{std::move(result->reply), result->asked};
    }

    /// Two clocks count the life, of which one may go a little faster (the drift that the Redlock
    /// description allows for).
    Millis certain(Millis life) const override {
        constexpr int kDriftShare = 100;
        constexpr Millis kRounding{2};
        return life - life / kDriftShare - kRounding;
    }

 private:
    const std::string client_ = base::new_uuid7();
    std::atomic<std::uint64_t> next_number_ = 1;
    redis::OpenServer opened_;
    std::shared_ptr<redis::LockPort> port_;
    redis::LockLines lines_;
};

}  // namespace

Result<std::shared_ptr<LockService>> open_redis_locks(std::string_view url,
                                                      const LockClientOptions& options) {
    auto opened = redis::open_server(url);
    if (!opened.ok()) return opened.error();
    redis::LockSettings settings{options.profile, options.prefix};
    return std::shared_ptr<LockService>(
        std::make_shared<RedisLocks>(*std::move(opened), std::move(settings)));
}

}  // namespace sekali::client
