#include "backends/redis/client.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/errors.hpp"
#include "base/clock.hpp"

namespace sekali::redis {
namespace {

/// More than that in one process means that the server answers nothing.
constexpr std::size_t kMostWaiting = 200'000;
/// What one connection has in flight at most; the rest waits here, where it can still expire
/// without doubt.
constexpr std::size_t kMostInFlight = 20'000;

Error client_closed() {
    return unreachable("its client was closed");
}

}  // namespace

Client::Client(Loop& loop, const Address& address, std::shared_ptr<ssl_ctx_st> tls,
               bool sharded_channels)
    : loop_(loop),
      login_{.user = address.user,
             .password = address.password,
             .db = address.db,
             .primary_only = address.topology == Topology::kSentinel},
      timeout_(address.timeout),
      sharded_channels_(sharded_channels),
      last_failure_(unreachable("it did not answer in time")),
      locator_(std::make_unique<Locator>(loop, address)) {
    command_dialer_ =
        std::make_unique<Dialer>(loop, *locator_, tls, timeout_,
                                 Dialer::Listener{
                                     .opened = [this] { command_opened(); },
                                     .received =
                                         [this](std::string_view bytes) {
                                             session_->received(bytes);
                                             pump();
                                         },
                                     .closed = [this](const Error& why) { command_closed(why); },
                                 });
    subscriber_dialer_ =
        std::make_unique<Dialer>(loop, *locator_, tls, timeout_,
                                 Dialer::Listener{
                                     .opened = [this] { subscriber_opened(); },
                                     .received =
                                         [this](std::string_view bytes) {
                                             subscriber_->received(bytes, base::steady_now());
                                             pump_subscriber();
                                         },
                                     .closed = [this](const Error&) { drop_subscriber(); },
                                 });
}

Client::~Client() {
    close();
}

void Client::close() {
    {
        const std::lock_guard guard(mutex_);
        if (std::exchange(closed_, true)) return;
    }
    loop_.run([this] {
        alive_.reset();
        if (timer_) loop_.cancel(*timer_);
        command_dialer_.reset();
        subscriber_dialer_.reset();
        if (session_) {
            session_->fail(client_closed());
            answer(*session_);
        }
        take_inbox();
        for (Call& call : std::exchange(waiting_, {}))
            call.done(client_closed());
        channels_.clear();
    });
    locator_.reset();
}

void Client::submit(std::vector<Call> calls) {
    const TimePoint now = base::steady_now();
    for (Call& call : calls)
        call.deadline = now + call.timeout.value_or(timeout_);
    bool first = false;
    bool closed = false;
    {
        const std::lock_guard guard(mutex_);
        first = inbox_.empty();
        closed = closed_;
        if (!closed) {
            inbox_.insert(inbox_.end(), std::make_move_iterator(calls.begin()),
                          std::make_move_iterator(calls.end()));
        }
    }
    if (closed) {
        for (Call& call : calls)
            call.done(client_closed());
        return;
    }
    if (!first) return;
    loop_.post([this, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        take_inbox();
        command_dialer_->start();
        pump();
    });
}

void Client::take_inbox() {
    std::vector<Call> calls;
    {
        const std::lock_guard guard(mutex_);
        calls.swap(inbox_);
    }
    for (Call& call : calls) {
        if (waiting_.size() < kMostWaiting) {
            waiting_.push_back(std::move(call));
        } else {
            call.done(unreachable("too many requests wait for it"));
        }
    }
}

void Client::pump() {
    if (session_) session_->advance(base::steady_now());
    while (session_ && session_->ready() && !waiting_.empty() &&
           session_->in_flight() < kMostInFlight) {
        session_->send(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    if (session_) {
        const std::string output = session_->take_output();
        if (!output.empty()) command_dialer_->send(output);
    }
    finish_command_session();
    expire_waiting(base::steady_now());
    arm();
}

/// Answers what is answered, and ends a session that has failed.
void Client::finish_command_session() {
    if (!session_) return;
    if (!session_->failure()) {
        if (session_->ready()) command_dialer_->works();
        answer(*session_);
        return;
    }
    const std::unique_ptr<CommandSession> failed = std::move(session_);
    last_failure_ = *failed->failure();
    command_dialer_->redial();
    answer(*failed);
}

void Client::answer(CommandSession& session) {
    for (auto& [done, reply] : session.take_answers())
        done(std::move(reply));
}

void Client::expire_waiting(TimePoint now) {
    if (waiting_.empty() || (session_ && session_->ready())) return;
    std::deque<Call> left;
    std::vector<Call> overdue;
    for (Call& call : waiting_)
        (call.waits_until() <= now ? overdue.push_back(std::move(call))
                                   : left.push_back(std::move(call)));
    waiting_.swap(left);
    for (Call& call : overdue) {
        Error error = last_failure_;
        error.applied = Applied::kNo;  // it was never sent
        call.done(std::move(error));
    }
}

void Client::arm() {
    if (timer_) loop_.cancel(*timer_);
    timer_.reset();
    std::optional<TimePoint> next = session_ ? session_->next_deadline() : std::nullopt;
    if (subscriber_) next = std::min(next.value_or(TimePoint::max()), subscriber_->next_deadline());
    if (!session_ || !session_->ready()) {
        for (const Call& call : waiting_)
            next = std::min(next.value_or(TimePoint::max()), call.waits_until());
    }
    if (!next) return;
    timer_ = loop_.at(*next, [this] {
        timer_.reset();
        pump_subscriber();
        pump();
    });
}

void Client::command_opened() {
    session_ = std::make_unique<CommandSession>(login_, base::steady_now() + timeout_);
    pump();
}

void Client::command_closed(const Error& why) {
    last_failure_ = why;
    if (!session_) return pump();
    const std::unique_ptr<CommandSession> lost = std::move(session_);
    lost->fail(why);
    last_failure_ = *lost->failure();
    answer(*lost);
    pump();
}

void Client::subscribe(const std::string& channel, Told told) {
    channels_[channel] = std::make_shared<Told>(std::move(told));
    subscriber_dialer_->start();
    if (!subscribed_) return;  // comes with the others
    subscriber_->subscribe(channel);
    pump_subscriber();
}

void Client::unsubscribe(const std::string& channel) {
    if (channels_.erase(channel) == 0) return;
    if (!subscribed_) return;
    subscriber_->unsubscribe(channel);
    pump_subscriber();
}

void Client::subscriber_opened() {
    subscriber_ = std::make_unique<SubscriberSession>(login_, sharded_channels_, base::steady_now(),
                                                      timeout_);
    pump_subscriber();
}

void Client::pump_subscriber() {
    if (!subscriber_) return;
    subscriber_->advance(base::steady_now());
    if (subscriber_->ready() && !subscribed_) {
        subscribed_ = true;
        subscriber_dialer_->works();
        for (const auto& [channel, told] : channels_)
            subscriber_->subscribe(channel);
    }
    const std::string output = subscriber_->take_output();
    if (!output.empty()) subscriber_dialer_->send(output);
    if (subscriber_->failure()) {
        drop_subscriber();
        subscriber_dialer_->redial();
        return;
    }
    for (const SubscriberEvent& event : subscriber_->take_events()) {
        const bool message = event.kind == SubscriberEvent::Kind::kMessage;
        tell(event.channel,
             {.kind = message ? ChannelEvent::Kind::kMessage : ChannelEvent::Kind::kSubscribed,
              .message = event.message});
    }
    arm();
}

void Client::drop_subscriber() {
    subscriber_.reset();
    if (!std::exchange(subscribed_, false)) return;
    std::vector<std::string> names;
    for (const auto& [channel, told] : channels_)
        names.push_back(channel);
    for (const std::string& name : names)
        tell(name, {.kind = ChannelEvent::Kind::kLost});
}

/// Whoever is told may subscribe and unsubscribe.
void Client::tell(std::string_view channel, const ChannelEvent& event) {
    const auto found = channels_.find(channel);
    if (found == channels_.end()) return;
    const std::shared_ptr<Told> told = found->second;
    (*told)(event);
}

}  // namespace sekali::redis
