#include "client/outside_locks.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/lock_port.hpp"
#include "backends/redis/open.hpp"
#include "base/clock.hpp"
#include "base/errors.hpp"
#include "engine/operations.hpp"

namespace sekali::client {
namespace {

using engine::LockReply;
using engine::Millis;

/// A line in which nobody stands for so long is forgotten.
constexpr Millis kForget{5000};
/// A message that was missed costs no more; the holder's end is looked for by itself.
constexpr Millis kLongestRest{2000};
constexpr Millis kShortestRest{20};
/// A job that found its lock busy stands in line a little later; a release in between wakes nobody.
constexpr Millis kOnItsWay{500};

/// Listens to the locks that jobs wait for. Only on the loop's thread but for `busy`. Shared with
/// answers of the store that come when it is gone.
class LineWakers : public std::enable_shared_from_this<LineWakers> {
 public:
    LineWakers(redis::LockPort& port, std::shared_ptr<Backend> backend)
        : port_(port), loop_(port.server().loop()), backend_(std::move(backend)) {}

    /// A job found the lock busy and will stand in line. Thread-safe.
    void busy(const engine::LockAcquire& request, Millis remaining) {
        loop_.post(
            [self = shared_from_this(), request, remaining] { self->listen(request, remaining); });
    }

    /// `drained` is called when the store has answered everything.
    void close(std::function<void()> drained) {
        drained_ = std::move(drained);
        for (const auto& [channel, line] : lines_) {
            if (line.timer) loop_.cancel(*line.timer);
            port_.server().unsubscribe(channel);
        }
        lines_.clear();
        if (asking_ == 0) drained_();
    }

 private:
    struct Line {
        std::string ns;
        std::string name;
        redis::TimePoint last_busy{};
        std::optional<redis::Loop::TimerId> timer;
        bool waking = false;
        bool again = false;
    };

    void listen(const engine::LockAcquire& request, Millis remaining) {
        if (drained_) return;
        const std::string channel = port_.channel_of(request);
        const bool is_new = !lines_.contains(channel);
        Line& line = lines_[channel];
        line.ns = request.ns;
        line.name = request.name;
        line.last_busy = base::steady_now();
        rest(channel, line, remaining.count() < 0 ? kLongestRest : remaining);
        if (!is_new) return;
        port_.server().subscribe(channel, [this, channel](const redis::ChannelEvent& event) {
            if (event.kind != redis::ChannelEvent::Kind::kLost) wake(channel);
        });
    }

    void rest(const std::string& channel, Line& line, Millis time) {
        if (line.timer) loop_.cancel(*line.timer);
        const Millis bounded = std::clamp(time, kShortestRest, kLongestRest);
        line.timer = loop_.at(base::steady_now() + bounded, [this, channel] {
            lines_.at(channel).timer.reset();
            wake(channel);
        });
    }

    /// Lets the first in line try. Where nobody stands there any more the line is forgotten.
    void wake(const std::string& channel) {
        const auto found = lines_.find(channel);
        if (found == lines_.end()) return;
        Line& line = found->second;
        if (std::exchange(line.waking, true)) {
            line.again = true;
            return;
        }
        const auto stands = std::make_shared<bool>(false);
        ++asking_;
        std::vector<engine::Task> tasks;
        tasks.push_back(
            {.work =
                 [stands, ns = line.ns, name = line.name](engine::Tables& tables) {
                     *stands =
                         tables.first_waiting(ns, engine::WaitFor::kLock, {}, name).has_value();
                     const auto lock = tables.lock(ns, name);
                     // For whom the store keeps it free, that one tries by itself.
                     const bool reserved =
                         lock && !lock->reserved_for.empty() && lock->reserved_until > tables.now();
                     if (*stands && !reserved) engine::wake_for_lock(tables, ns, name);
                 },
             .done =
                 [self = shared_from_this(), stands, channel](const Result<void>&) {
                     self->loop_.post([self, stands, channel] { self->woken(channel, *stands); });
                 }});
        backend_->executor().submit(std::move(tasks));
    }

    void woken(const std::string& channel, bool stood) {
        --asking_;
        if (drained_ && asking_ == 0) drained_();
        const auto found = lines_.find(channel);
        if (found == lines_.end()) return;
        Line& line = found->second;
        line.waking = false;
        if (std::exchange(line.again, false)) return wake(channel);
        const Millis since_busy = std::chrono::floor<Millis>(base::steady_now() - line.last_busy);
        if (!stood && since_busy < kOnItsWay) return rest(channel, line, kShortestRest);
        if (stood || since_busy < kForget) {
            if (!line.timer) rest(channel, line, kLongestRest);
            return;
        }
        if (line.timer) loop_.cancel(*line.timer);
        lines_.erase(found);
        port_.server().unsubscribe(channel);
    }

    redis::LockPort& port_;
    redis::Loop& loop_;
    std::shared_ptr<Backend> backend_;
    std::map<std::string, Line> lines_;  ///< By channel.
    std::size_t asking_ = 0;
    std::function<void()> drained_;
};

/// Lock keys go to the Redis. What a handler takes by `ctx.lock` is the store's, whose fence its
/// commit checks; only its renewals and its release come through here.
class OutsideLocks final : public engine::LockPort {
 public:
    OutsideLocks(redis::OpenServer opened, redis::LockSettings settings,
                 std::shared_ptr<Backend> backend)
        : opened_(std::move(opened)),
          store_(backend->ports()),
          port_(opened_.server, std::move(settings)),
          wakers_(std::make_shared<LineWakers>(port_, std::move(backend))) {}
    ~OutsideLocks() override {
        // Shared, because the answering thread may still be in it when the waiting one is gone.
        const auto drained = std::make_shared<std::promise<void>>();
        auto answer = drained->get_future();
        opened_.loop->post(
            [wakers = wakers_, drained] { wakers->close([drained] { drained->set_value(); }); });
        answer.wait();
        opened_.server->close();
    }
    OutsideLocks(const OutsideLocks&) = delete;
    OutsideLocks& operator=(const OutsideLocks&) = delete;

    void submit(std::vector<Call> calls) override {
        std::vector<Call> outside;
        std::vector<Call> inside;
        for (Call& call : calls) {
            if (const auto* wanted = std::get_if<engine::LockAcquire>(&call.command)) {
                taken_here_.insert(wanted->token);
                outside.push_back({*wanted, telling(*wanted, std::move(call.done))});
            } else {
                (is_ours(call.command) ? outside : inside).push_back(std::move(call));
            }
        }
        if (!outside.empty()) port_.submit(std::move(outside));
        if (!inside.empty()) store_.submit(std::move(inside));
    }
    bool in_store() const override { return false; }

 private:
    using Done = std::function<void(Result<LockReply>)>;

    Done telling(engine::LockAcquire wanted, Done done) {
        return [wakers = wakers_, wanted = std::move(wanted),
                done = std::move(done)](Result<LockReply> reply) {
            if (reply.ok() && reply->kind == LockReply::Kind::kBusy) {
                wakers->busy(wanted, reply->remaining);
            }
            done(std::move(reply));
        };
    }

    /// Called by the pump alone, so that it needs no lock. A release is the last word of a token.
    bool is_ours(const engine::LockCommand& command) {
        if (const auto* renewed = std::get_if<engine::LockRenew>(&command)) {
            return taken_here_.contains(renewed->token);
        }
        const auto& released = std::get<engine::LockRelease>(command);
        return taken_here_.erase(released.token) != 0;
    }

    redis::OpenServer opened_;
    engine::LockPort& store_;
    redis::LockPort port_;
    std::shared_ptr<LineWakers> wakers_;
    std::set<std::string> taken_here_;
};

}  // namespace

Result<std::unique_ptr<engine::LockPort>> open_outside_locks(const WorkerOptions& options,
                                                             std::shared_ptr<Backend> backend) {
    auto opened = redis::open_server(options.lock_url);
    if (!opened.ok()) return opened.error();
    redis::LockSettings settings{options.lock_profile, options.lock_prefix};
    return std::unique_ptr<engine::LockPort>(std::make_unique<OutsideLocks>(
        *std::move(opened), std::move(settings), std::move(backend)));
}

}  // namespace sekali::client
