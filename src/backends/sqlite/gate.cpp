#include "backends/sqlite/gate.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

using std::chrono::milliseconds;

constexpr off_t kHead = 0;
constexpr mode_t kPrivate = 0600;
/// A touch tells that the turn is free. A holder that died touches nothing, and a lock that was in
/// the way for an instant is not announced: for these a waiter looks by itself, ever less often.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLastLook{50};
constexpr milliseconds kLookWithoutTouches{4};
/// Longer than a line of processes that write needs to move.
constexpr milliseconds kHeadPatience{500};

struct flock byte_lock(short type, off_t byte) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return lock;
}

Result<bool> try_lock(int fd, off_t byte, const std::string& path) {
    struct flock lock = byte_lock(F_WRLCK, byte);
    if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
    if (errno == EAGAIN || errno == EACCES) return false;
    return system_error(errno, "lock", path);
}

void unlock(int fd, off_t byte) {
    struct flock lock = byte_lock(F_UNLCK, byte);
    ::fcntl(fd, F_OFD_SETLK, &lock);
}

bool is_locked_by_another(int fd, off_t byte) {
    struct flock lock = byte_lock(F_WRLCK, byte);
    return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

Result<Gate> Gate::open(const std::string& path) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivate));
    if (!file.valid()) return system_error(errno, "open", path);
    return Gate(path, std::move(file));
}

Result<bool> Gate::try_enter() {
    if (!at_head_) {
        const auto head = try_lock(file_.get(), kHead, path_);
        if (!head) return head;
        at_head_ = *head;
        passes_head_ = passes_head_ && !at_head_;
        if (!at_head_ && !passes_head_) return false;
    }
    const auto turn = try_lock(file_.get(), kTurn, path_);
    if (turn && *turn && at_head_) {
        unlock(file_.get(), kHead);
        at_head_ = false;
    }
    return turn;
}

Result<bool> Gate::enter(std::chrono::steady_clock::time_point deadline) {
    auto entered = try_enter();
    if (!entered || *entered) return entered;
    watch();
    const auto patient_until = base::steady_now() + kHeadPatience;
    for (milliseconds look = kFirstLook;; look = std::min(look * 2, kLastLook)) {
        forget_touches();
        passes_head_ = passes_head_ || (!at_head_ && base::steady_now() >= patient_until);
        entered = try_enter();
        if (entered && *entered) {
            // The place at the head is free again, and somebody may sleep behind it.
            touch();
            return true;
        }
        const auto left = deadline - base::steady_now();
        if (!entered || left <= left.zero()) break;
        const milliseconds pause = touches_.valid() ? look : kLookWithoutTouches;
        wait_for_touch(std::min<std::chrono::steady_clock::duration>(left, pause));
    }
    if (at_head_) unlock(file_.get(), kHead);
    at_head_ = false;
    touch();
    return entered;
}

void Gate::leave() {
    unlock(file_.get(), kTurn);
    if (is_locked_by_another(file_.get(), kHead)) touch();
}

void Gate::watch() {
    if (touches_.valid()) return;
    Fd touches(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!touches.valid()) return;
    if (::inotify_add_watch(touches.get(), path_.c_str(), IN_MODIFY) < 0) return;
    touches_ = std::move(touches);
}

void Gate::wait_for_touch(std::chrono::steady_clock::duration at_most) {
    const auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most);
    const timespec timeout{whole.count() / 1'000'000'000, whole.count() % 1'000'000'000};
    pollfd entry{touches_.get(), POLLIN, 0};
    ::ppoll(&entry, touches_.valid() ? 1 : 0, &timeout, nullptr);
}

void Gate::forget_touches() {
    if (!touches_.valid()) return;
    std::array<char, 4096> events;
    while (::read(touches_.get(), events.data(), events.size()) > 0) {
    }
}

void Gate::touch() {
    // A touch that fails costs the waiter one look.
    static_cast<void>(::pwrite(file_.get(), "t", 1, 0) == 1);
}

}  // namespace sekali::sqlite
