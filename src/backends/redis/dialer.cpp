#include "backends/redis/dialer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace sekali::redis {
namespace {

constexpr Millis kFirstPause{50};
constexpr Millis kLongestPause{2000};
constexpr unsigned kMostDoublings = 6;

}  // namespace

Dialer::Dialer(Loop& loop, Locator& locator, std::shared_ptr<ssl_ctx_st> tls, Millis patience,
               Listener listener)
    : loop_(loop),
      locator_(locator),
      tls_(std::move(tls)),
      patience_(patience),
      listener_(std::move(listener)),
      random_(static_cast<unsigned>(std::stoul(base::random_hex(4), nullptr, 16))) {}

Dialer::~Dialer() {
    if (timer_) loop_.cancel(*timer_);
    retire();
}

void Dialer::start() {
    if (std::exchange(started_, true)) return;
    dial();
}

void Dialer::dial() {
    locator_.locate([this, alive = std::weak_ptr(alive_)](Result<std::vector<Endpoint>> found) {
        if (!alive.expired()) located(std::move(found));
    });
}

void Dialer::located(Result<std::vector<Endpoint>> endpoints) {
    if (!endpoints.ok()) return failed(endpoints.error());
    Connection::Listener listener{
        .opened = listener_.opened,
        .received = listener_.received,
        .closed = [this](const Error& why) { failed(why); },
    };
    connection_ = std::make_shared<Connection>(loop_, *std::move(endpoints), tls_, patience_,
                                               std::move(listener));
}

void Dialer::failed(const Error& why) {
    retire();
    wait();
    listener_.closed(why);
}

void Dialer::redial() {
    if (!connection_) return;
    retire();
    wait();
}

void Dialer::retire() {
    if (!connection_) return;
    connection_->close();
    // It may be further up in this very call.
    loop_.post([retired = std::move(connection_)] {});
    connection_ = nullptr;
}

/// The first failure after good times is most often a server that was started anew.
void Dialer::wait() {
    Millis pause{0};
    if (failures_ > 0) {
        const unsigned doublings = std::min(failures_ - 1, kMostDoublings);
        const Millis full = std::min(kFirstPause * (1U << doublings), kLongestPause);
        std::uniform_int_distribution<Millis::rep> jitter(full.count() / 2, full.count());
        pause = Millis{jitter(random_)};
    }
    ++failures_;
    timer_ = loop_.at(base::steady_now() + pause, [this] {
        timer_.reset();
        dial();
    });
}

}  // namespace sekali::redis
