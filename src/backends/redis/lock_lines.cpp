#include "backends/redis/lock_lines.hpp"

#include <fmt/format.h>

#include <future>
#include <list>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/redis/errors.hpp"
#include "base/clock.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

using engine::LockReply;

/// A message that was missed costs no more than this.
constexpr Millis kLongestRest{2000};
/// For holders that publish nothing: Laravel, redis-py, a spin lock.
constexpr Millis kShortestRest{50};
constexpr Millis kLongestPolledRest{500};
/// A holder's last millisecond has ended when the server's clock says so, not before.
constexpr Millis kAfterItsEnd{1};

/// Before a wait ends: what could not be sent by then certainly was not applied.
constexpr Millis kToSayWhy{20};

/// `<uuid>:<number>`, as Redisson and lock clients sign, or `<worker>/<number>`, as jobs do: all
/// publish their releases.
bool publishes(std::string_view holder) {
    constexpr std::size_t kUuid = 36;
    constexpr std::size_t kWorker = 16;
    if (holder.size() > kUuid + 1 && holder[kUuid] == ':') {
        return base::is_uuid(holder.substr(0, kUuid));
    }
    return holder.find_first_not_of("0123456789abcdef") == kWorker && holder[kWorker] == '/';
}

Error ended(ErrorCode code, std::string message) {
    Error error;
    error.code = code;
    error.message = std::move(message);
    return error;
}

Error conflict(std::string_view name, std::string_view holder) {
    const std::string what = "lock " + base::quoted(name);
    if (holder.empty()) return ended(ErrorCode::kConflict, what + " was not free in time");
    return ended(ErrorCode::kConflict,
                 fmt::format("{} is held by {}", what, base::printable(holder)));
}

}  // namespace

/// Everything is on the loop's thread. Shared with answers that come when the lines are gone.
class LockLines::Core : public std::enable_shared_from_this<Core> {
 public:
    explicit Core(LockPort& port) : port_(port), loop_(port.server().loop()) {}

    void join(WishId id, LockWish wish);
    void cancel(WishId id);
    /// Ends all wishes; `drained` is called when no request is on its way any more.
    void close(std::function<void()> drained);
    [[nodiscard]] std::size_t size() const {
        return lines_.size() + channels_.size() + waiters_.size();
    }

 private:
    struct Waiter;
    using WaiterRef = std::shared_ptr<Waiter>;
    struct Waiter {
        WishId id = 0;
        LockWish wish;
        std::string line;
        std::optional<std::list<WaiterRef>::iterator> place;  ///< None: it does not wait.
        bool asking = false;                                  ///< A request is on its way.
        bool gone = false;           ///< Answered, while a request of it is on its way.
        bool maybe_granted = false;  ///< An answer of it was lost.
        std::string holder;
        std::optional<Error> trouble;  ///< What came instead of the latest answer.
        std::optional<Loop::TimerId> deadline;
    };
    struct Line {
        std::list<WaiterRef> waiters;
        std::string channel;
        bool listening = false;
        bool look_again = false;  ///< Something happened while a request was on its way.
        Millis rest{kShortestRest};
        std::optional<Loop::TimerId> timer;
    };

    void ask(const WaiterRef& waiter);
    void answered(const WaiterRef& waiter, engine::LocalTime asked, Result<LockReply> reply);
    void answered_alone(const WaiterRef& waiter, engine::LocalTime asked, Result<LockReply> reply);
    void busy(Line& line, const WaiterRef& waiter, const LockReply& reply);
    void listen(const std::string& name, Line& line);
    void stop_listening(const std::string& name, const Line& line);
    void rest(const std::string& name, Line& line, Millis time);
    void look(const std::string& name);
    void on_channel(const std::string& channel, const ChannelEvent& event);
    void leave(const WaiterRef& waiter);
    void finish(const WaiterRef& waiter, Result<LockWish::Grant> result);
    void give_up(const WaiterRef& waiter, Error why);
    [[nodiscard]] static Error overdue(const Waiter& waiter);
    [[nodiscard]] static TimePoint send_by(const Waiter& waiter);
    void landed();
    void undo(const Waiter& waiter);

    LockPort& port_;
    Loop& loop_;
    std::unordered_map<std::string, Line> lines_;
    /// Names of the lines that listen to a channel. Mostly one; without a prefix the locks `a` and
    /// `{a}` share theirs, as in Redisson.
    std::unordered_map<std::string, std::vector<std::string>> channels_;
    std::unordered_map<WishId, WaiterRef> waiters_;
    std::minstd_rand random_{static_cast<unsigned>(base::boot_ms())};
    std::size_t on_their_way_ = 0;
    std::function<void()> drained_;
};

void LockLines::Core::join(WishId id, LockWish wish) {
    const engine::LockAcquire& request = wish.request;
    auto waiter = std::make_shared<Waiter>();
    waiter->id = id;
    waiter->line = (request.permits == 0 ? "l" : "p") + port_.key_of(request.ns, request.name);
    waiter->wish = std::move(wish);
    waiters_.emplace(id, waiter);
    const auto& until = waiter->wish.until;
    if (until && *until <= base::steady_now()) return ask(waiter);
    if (until) {
        waiter->deadline = loop_.at(*until, [this, waiter] {
            waiter->deadline.reset();
            give_up(waiter, overdue(*waiter));
        });
    }
    Line& line = lines_[waiter->line];
    if (line.channel.empty()) line.channel = port_.channel_of(waiter->wish.request);
    waiter->place = line.waiters.insert(line.waiters.end(), waiter);
    if (line.waiters.size() == 1) ask(waiter);
}

void LockLines::Core::ask(const WaiterRef& waiter) {
    waiter->asking = true;
    ++on_their_way_;
    const engine::LocalTime asked{engine::Millis{base::boot_ms()}};
    port_.acquire(waiter->wish.request, send_by(*waiter),
                  [core = shared_from_this(), waiter, asked](Result<LockReply> reply) {
                      waiter->asking = false;
                      core->answered(waiter, asked, std::move(reply));
                      core->landed();
                  });
}

void LockLines::Core::answered(const WaiterRef& waiter, engine::LocalTime asked,
                               Result<LockReply> reply) {
    const bool granted = reply.ok() && reply->kind == LockReply::Kind::kAcquired;
    waiter->trouble = reply.ok() ? std::nullopt : std::optional(reply.error());
    if (reply.ok()) waiter->maybe_granted = granted;
    if (!reply.ok() && reply.error().applied == Applied::kMaybe) waiter->maybe_granted = true;
    if (waiter->gone) {
        if (waiter->maybe_granted) undo(*waiter);
        return;
    }
    if (!waiter->place) return answered_alone(waiter, asked, std::move(reply));
    const std::string name = waiter->line;
    Line& line = lines_.at(name);
    if (granted) {
        const Millis life = waiter->wish.request.ttl;
        const bool alone = line.waiters.size() == 1;
        finish(waiter, LockWish::Grant{*std::move(reply), asked});
        if (alone) return;
        // The next one knows who holds it now, and until when at most.
        line.look_again = false;
        listen(name, line);
        rest(name, line, std::min(life + kAfterItsEnd, kLongestRest));
    } else if (reply.ok()) {
        busy(line, waiter, *reply);
    } else if (reply.error().retryable) {
        rest(name, line, line.rest);
        line.rest = std::min(line.rest * 2, kLongestPolledRest);
    } else {
        give_up(waiter, reply.error());
    }
}

/// A wish that does not wait. An answer that was lost leaves its outcome unknown.
void LockLines::Core::answered_alone(const WaiterRef& waiter, engine::LocalTime asked,
                                     Result<LockReply> reply) {
    if (!reply.ok()) {
        give_up(waiter, std::move(reply).error());
    } else if (reply->kind == LockReply::Kind::kAcquired) {
        finish(waiter, LockWish::Grant{*std::move(reply), asked});
    } else {
        give_up(waiter, conflict(waiter->wish.request.name, reply->holder));
    }
}

void LockLines::Core::busy(Line& line, const WaiterRef& waiter, const LockReply& reply) {
    waiter->holder = reply.holder;
    listen(waiter->line, line);
    if (std::exchange(line.look_again, false)) return ask(waiter);
    Millis time = kLongestRest;
    if (reply.remaining.count() >= 0) time = std::min(time, reply.remaining + kAfterItsEnd);
    if (!publishes(reply.holder) && waiter->wish.request.permits == 0) {
        time = std::min(time, line.rest);
        line.rest = std::min(line.rest * 2, kLongestPolledRest);
    }
    rest(waiter->line, line, time);
}

void LockLines::Core::listen(const std::string& name, Line& line) {
    if (std::exchange(line.listening, true)) return;
    const std::string& channel = line.channel;
    std::vector<std::string>& names = channels_[channel];
    names.push_back(name);
    if (names.size() > 1) return;
    port_.server().subscribe(
        channel, [this, channel](const ChannelEvent& event) { on_channel(channel, event); });
}

void LockLines::Core::stop_listening(const std::string& name, const Line& line) {
    if (!line.listening) return;
    const auto found = channels_.find(line.channel);
    std::erase(found->second, name);
    if (!found->second.empty()) return;
    channels_.erase(found);
    port_.server().unsubscribe(line.channel);
}

void LockLines::Core::rest(const std::string& name, Line& line, Millis time) {
    if (line.timer) loop_.cancel(*line.timer);
    // Lines that were formed together need not ask together.
    const Millis::rep spread = time >= kLongestRest ? time.count() / 4 : 0;
    const Millis early{std::uniform_int_distribution<Millis::rep>(0, spread)(random_)};
    line.timer = loop_.at(base::steady_now() + time - early, [this, name] {
        lines_.at(name).timer.reset();
        look(name);
    });
}

void LockLines::Core::look(const std::string& name) {
    const auto found = lines_.find(name);
    if (found == lines_.end()) return;
    Line& line = found->second;
    const WaiterRef first = line.waiters.front();
    if (first->asking) {
        line.look_again = true;
        return;
    }
    if (line.timer) loop_.cancel(*line.timer);
    line.timer.reset();
    ask(first);
}

void LockLines::Core::on_channel(const std::string& channel, const ChannelEvent& event) {
    // What is missed meanwhile is found when the subscription is back, or by the bounded rest.
    if (event.kind == ChannelEvent::Kind::kLost) return;
    const auto found = channels_.find(channel);
    if (found == channels_.end()) return;
    for (const std::string& name : std::vector<std::string>(found->second)) {
        if (const auto line = lines_.find(name); line != lines_.end()) {
            line->second.rest = kShortestRest;
        }
        look(name);
    }
}

/// Takes a waiter out of its line, and the line out of the world with its last one.
void LockLines::Core::leave(const WaiterRef& waiter) {
    waiters_.erase(waiter->id);
    if (waiter->deadline) loop_.cancel(*waiter->deadline);
    waiter->deadline.reset();
    if (!waiter->place) return;
    const auto found = lines_.find(waiter->line);
    Line& line = found->second;
    line.waiters.erase(*waiter->place);
    waiter->place.reset();
    if (!line.waiters.empty()) return;
    if (line.timer) loop_.cancel(*line.timer);
    stop_listening(found->first, line);
    lines_.erase(found);
}

void LockLines::Core::finish(const WaiterRef& waiter, Result<LockWish::Grant> result) {
    leave(waiter);
    const auto done = std::move(waiter->wish.done);
    done(std::move(result));
}

void LockLines::Core::give_up(const WaiterRef& waiter, Error why) {
    const bool was_first = waiter->place && lines_.at(waiter->line).waiters.front() == waiter;
    waiter->gone = waiter->asking;
    if (!waiter->asking && waiter->maybe_granted) undo(*waiter);
    finish(waiter, std::move(why));
    // Only the first one's own request told when to look again.
    if (was_first && !drained_) look(waiter->line);
}

Error LockLines::Core::overdue(const Waiter& waiter) {
    if (waiter.trouble) return *waiter.trouble;
    if (waiter.asking && waiter.holder.empty()) {
        return unreachable("it did not answer in time", Applied::kMaybe);
    }
    return conflict(waiter.wish.request.name, waiter.holder);
}

TimePoint LockLines::Core::send_by(const Waiter& waiter) {
    if (!waiter.place || !waiter.wish.until) return TimePoint::max();
    const TimePoint now = base::steady_now();
    const TimePoint until = *waiter.wish.until;
    return std::max(until - kToSayWhy, now + (until - now) / 2);
}

void LockLines::Core::landed() {
    if (--on_their_way_ == 0 && drained_) drained_();
}

void LockLines::Core::cancel(WishId id) {
    const auto found = waiters_.find(id);
    if (found == waiters_.end()) return;
    const WaiterRef waiter = found->second;
    give_up(waiter, ended(ErrorCode::kCancelled, "the wait for the lock was ended"));
}

void LockLines::Core::close(std::function<void()> drained) {
    drained_ = std::move(drained);
    ++on_their_way_;
    while (!waiters_.empty())
        cancel(waiters_.begin()->first);
    landed();
}

/// What may have been granted to nobody must not keep others out until it lapses.
void LockLines::Core::undo(const Waiter& waiter) {
    const engine::LockAcquire& request = waiter.wish.request;
    std::vector<engine::LockPort::Call> calls;
    calls.push_back({engine::LockRelease{.ns = request.ns,
                                         .name = request.name,
                                         .token = request.token,
                                         .permit = request.permits != 0},
                     [core = shared_from_this()](const Result<LockReply>&) { core->landed(); }});
    ++on_their_way_;
    port_.submit(std::move(calls));
}

LockLines::LockLines(std::shared_ptr<LockPort> port)
    : port_(std::move(port)), core_(std::make_shared<Core>(*port_)) {}

LockLines::~LockLines() {
    // Shared, because the answering thread may still be in it when the waiting one is gone.
    const auto drained = std::make_shared<std::promise<void>>();
    auto answer = drained->get_future();
    port_->server().loop().post(
        [core = core_, drained] { core->close([drained] { drained->set_value(); }); });
    answer.wait();
}

LockLines::WishId LockLines::wait(LockWish wish) {
    const WishId id = next_id_.fetch_add(1);
    port_->server().loop().post(
        [core = core_, id, wish = std::move(wish)]() mutable { core->join(id, std::move(wish)); });
    return id;
}

void LockLines::cancel(WishId id) {
    port_->server().loop().post([core = core_, id] { core->cancel(id); });
}

std::size_t LockLines::size() {
    std::size_t count = 0;
    port_->server().loop().run([&] { count = core_->size(); });
    return count;
}

}  // namespace sekali::redis
