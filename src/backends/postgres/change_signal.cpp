#include "backends/postgres/change_signal.hpp"

#include <chrono>
#include <utility>

#include "base/clock.hpp"

namespace sekali::postgres {
namespace {

/// The listener looks this often whether it is to end.
constexpr engine::Millis kSlice{200};
constexpr engine::Millis kPauseWithoutServer{1000};
/// Notifying commits are serial in the whole cluster, so a process makes few of them.
constexpr engine::Millis kBetweenNotifications{20};

}  // namespace

ChangeSignal::ChangeSignal(const PostgresOptions& options, std::string channel)
    : options_(options), channel_(std::move(channel)) {}

ChangeSignal::~ChangeSignal() {
    closing_ = true;
    {
        const std::lock_guard guard(mutex_);
        ++changes_;
    }
    changed_.notify_all();
    publishing_.notify_all();
    if (listener_.joinable()) listener_.join();
    if (publisher_.joinable()) publisher_.join();
}

bool ChangeSignal::publishes_later() {
    const std::lock_guard guard(mutex_);
    const auto now = base::steady_now();
    if (!has_news_ && now - published_ >= kBetweenNotifications) {
        published_ = now;
        return false;
    }
    has_news_ = true;
    if (!publisher_.joinable()) publisher_ = std::thread([this] { publish_until_closed(); });
    publishing_.notify_one();
    return true;
}

/// What is told is told at the end at the latest.
void ChangeSignal::publish_until_closed() {
    std::unique_ptr<Connection> connection;
    std::unique_lock guard(mutex_);
    for (;;) {
        publishing_.wait(guard, [&] { return has_news_ || closing_; });
        if (!has_news_) return;
        publishing_.wait_until(guard, published_ + kBetweenNotifications,
                               [&] { return closing_.load(); });
        has_news_ = false;
        published_ = base::steady_now();
        guard.unlock();
        try {
            if (connection == nullptr || !connection->is_usable()) {
                connection = Connection::open(options_);
            }
            connection->run_script("NOTIFY \"" + channel_ + "\"", "notify");
        } catch (const SqlFailure&) {
            // Whoever waits looks by himself, too.
            connection.reset();
        }
        guard.lock();
    }
}

void ChangeSignal::announce() {
    {
        const std::lock_guard guard(mutex_);
        ++changes_;
    }
    changed_.notify_all();
}

void ChangeSignal::wait(engine::Millis at_most) {
    std::unique_lock guard(mutex_);
    if (!listener_.joinable()) listener_ = std::thread([this] { listen_until_closed(); });
    std::uint64_t& seen = seen_[std::this_thread::get_id()];
    changed_.wait_for(guard, at_most, [&] { return changes_ != seen || closing_; });
    seen = changes_;
}

void ChangeSignal::listen_until_closed() {
    while (!closing_) {
        try {
            listen();
        } catch (const SqlFailure&) {
            std::unique_lock guard(mutex_);
            changed_.wait_for(guard, kPauseWithoutServer, [&] { return closing_.load(); });
        }
    }
}

void ChangeSignal::listen() {
    const std::unique_ptr<Connection> connection = Connection::open(options_);
    if (connection->is_pooled()) {
        // Nobody can be told there; whoever waits looks by himself.
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return closing_.load(); });
        return;
    }
    connection->run_script("LISTEN \"" + channel_ + "\"", "listen");
    // What was committed before the server knew the listener.
    announce();
    PGconn* raw = connection->handle();
    while (!closing_) {
        if (!wait_for_socket(PQsocket(raw), false, base::steady_now() + kSlice)) continue;
        if (PQconsumeInput(raw) == 0) throw lost_connection(PQerrorMessage(raw));
        bool is_news = false;
        while (PGnotify* notification = PQnotifies(raw)) {
            is_news = true;
            PQfreemem(notification);
        }
        if (is_news) announce();
    }
}

}  // namespace sekali::postgres
