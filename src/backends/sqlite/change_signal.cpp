#include "backends/sqlite/change_signal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

using std::chrono::milliseconds;

constexpr mode_t kPrivate = 0600;
/// A commit shows a little after the log was last written, by as long as the disk takes.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLastLook{64};
/// Every commit writes the log, also those that are nobody's concern.
constexpr milliseconds kBetweenReturnsForLog{25};
/// What no event told is found by looking.
constexpr milliseconds kIdleLook{1000};

}  // namespace

ChangeSignal::ChangeSignal(Paths paths, bool read_only)
    : paths_(std::move(paths)),
      wake_(read_only ? -1 : ::open(paths_.wake.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kPrivate)),
      own_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.valid() && !read_only) throw Failure(system_error(errno, "open", paths_.wake));
    if (!own_.valid()) throw Failure(system_error(errno, "make an event for", paths_.database));
}

void ChangeSignal::announce() {
    // A touch that fails costs the others an idle look.
    if (wake_.valid()) static_cast<void>(::pwrite(wake_.get(), "w", 1, 0) == 1);
    static_cast<void>(::eventfd_write(own_.get(), 1) == 0);
}

void ChangeSignal::wait(engine::Millis at_most) {
    const Time deadline = base::steady_now() + at_most;
    {
        std::unique_lock guard(mutex_);
        if (somebody_waits_) {
            // One looks for all.
            const std::uint64_t round = rounds_;
            round_over_.wait_until(guard, deadline, [&] { return rounds_ != round; });
            return;
        }
        somebody_waits_ = true;
    }
    wait_alone(deadline);
    {
        const std::lock_guard guard(mutex_);
        somebody_waits_ = false;
        ++rounds_;
    }
    round_over_.notify_all();
}

void ChangeSignal::start_watching() {
    connection_.emplace(paths_.database, Connection::Mode::kReadOnly, engine::Millis{0});
    data_version_ = connection_->prepare("PRAGMA data_version", true);
    static_cast<void>(database_changed());
    Fd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!events.valid()) return;
    wake_watch_ = ::inotify_add_watch(events.get(), paths_.wake.c_str(), IN_MODIFY);
    static_cast<void>(::inotify_add_watch(events.get(), paths_.log.c_str(), IN_MODIFY));
    events_ = std::move(events);
}

bool ChangeSignal::database_changed() {
    const int code = sqlite3_step(data_version_.get());
    const std::int64_t version =
        code == SQLITE_ROW ? sqlite3_column_int64(data_version_.get(), 0) : last_version_;
    sqlite3_reset(data_version_.get());
    return std::exchange(last_version_, version) != version;
}

void ChangeSignal::wait_alone(Time deadline) {
    if (!connection_) return start_watching();
    milliseconds pause = kIdleLook;
    Time look = base::steady_now();
    bool changed = false;
    bool resting = false;
    for (;;) {
        const Seen seen = poll_until(std::min(deadline, look), resting);
        const Time now = base::steady_now();
        if (seen == Seen::kNews || now >= deadline) return;
        if (seen == Seen::kLogWritten) {
            // One commit writes the log many times.
            resting = true;
            pause = kFirstLook;
            look = now + kFirstLook;
        }
        if (now < look) continue;
        resting = false;
        changed = database_changed() || changed;
        const Time may_return = last_return_for_log_ + kBetweenReturnsForLog;
        if (changed && now >= may_return) {
            last_return_for_log_ = now;
            return;
        }
        look = changed ? may_return : now + pause;
        pause = pause >= kLastLook ? kIdleLook : pause * 2;
    }
}

ChangeSignal::Seen ChangeSignal::poll_until(Time deadline, bool resting) {
    const auto left = std::max(deadline - base::steady_now(), Time::duration{0});
    const auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{whole / 1'000'000'000, whole % 1'000'000'000};
    std::array<pollfd, 2> entries{pollfd{own_.get(), POLLIN, 0}, pollfd{events_.get(), POLLIN, 0}};
    const bool reads_events = events_.valid() && !resting;
    const nfds_t count = reads_events ? 2 : 1;
    if (::ppoll(entries.data(), count, &timeout, nullptr) <= 0) return Seen::kNothing;
    const Seen seen = reads_events ? read_events() : Seen::kNothing;
    eventfd_t commits = 0;
    return ::eventfd_read(own_.get(), &commits) == 0 ? Seen::kNews : seen;
}

ChangeSignal::Seen ChangeSignal::read_events() {
    Seen seen = Seen::kNothing;
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (;;) {
        const ssize_t size = ::read(events_.get(), buffer.data(), buffer.size());
        if (size <= 0) return seen;
        for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
            inotify_event event;
            std::memcpy(&event, buffer.data() + at, sizeof event);
            at += sizeof event + event.len;
            const bool of_log = event.wd != wake_watch_ && (event.mask & IN_Q_OVERFLOW) == 0;
            if (!of_log) {
                seen = Seen::kNews;
            } else if (seen == Seen::kNothing) {
                seen = Seen::kLogWritten;
            }
        }
    }
}

}  // namespace sekali::sqlite
