#include "process/guard.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "process/child_pipes.hpp"
#include "process/exec_outcome.hpp"
#include "process/guard_server.hpp"
#include "process/guard_wire.hpp"
#include "process/proc_table.hpp"
#include "process/strays.hpp"

namespace sekali::process {
namespace {

using Stream = ChildPipes::Stream;

/// Requests that may wait for the guard.
constexpr std::size_t kQueueLimit = 4096;
/// Spawns on their way at a time: each takes five descriptors, and the kernel bounds those in
/// flight.
constexpr std::size_t kSpawnsInFlight = 16;
/// How long an end of processes that were sent SIGKILL is waited for.
constexpr std::chrono::milliseconds kKillPatience{5000};
constexpr std::chrono::milliseconds kClosePatience{10'000};
constexpr std::chrono::milliseconds kStartPatience{10'000};

/// What an event of epoll is about: a stream of a child, or the pseudo child 0.
constexpr unsigned kStreamBits = 2;
constexpr std::uint64_t kSocketTag = 0;
constexpr std::uint64_t kWakeTag = 1;
std::uint64_t tag_of(std::uint64_t child, Stream stream) {
    return (child << kStreamBits) | static_cast<std::uint64_t>(stream);
}

Error failure(ErrorCode code, std::string message, bool retryable) {
    Error error;
    error.code = code;
    error.message = std::move(message);
    error.retryable = retryable;
    return error;
}

Error system_failure(const char* what) {
    return failure(ErrorCode::kInternal, std::string(what) + ": " + std::strerror(errno), true);
}

bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

std::optional<Error> check(const SpawnRequest& request) {
    const char* fault = nullptr;
    if (request.argv.empty() || request.argv.front().empty()) fault = "no program to run";
    if (request.attempt_id.empty()) fault = "no attempt id";
    const bool nul = std::ranges::any_of(request.argv, has_nul) ||
                     std::ranges::any_of(request.env, has_nul) || has_nul(request.cwd) ||
                     has_nul(request.attempt_id);
    if (nul) fault = "a NUL byte in the program's arguments, environment or folder";
    if (fault == nullptr) return std::nullopt;
    return failure(ErrorCode::kUsage, fault, false);
}

/// The environment as asked for, with sekali's own two variables said once.
std::vector<std::string> complete_environment(std::vector<std::string> env,
                                              const std::string& attempt_id) {
    const std::string attempt = std::string(kAttemptIdVariable) + "=";
    const std::string control = std::string(kControlFdVariable) + "=";
    std::erase_if(env, [&](const std::string& variable) {
        return variable.starts_with(attempt) || variable.starts_with(control);
    });
    env.push_back(attempt + attempt_id);
    env.push_back(control + std::to_string(kControlFd));
    return env;
}

bool wait_readable(int fd, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd poll_fd{.fd = fd, .events = POLLIN, .revents = 0};
        const auto timeout = std::max(left, std::chrono::milliseconds::zero()).count();
        const int ready = ::poll(&poll_fd, 1, static_cast<int>(timeout));
        if (ready >= 0 || errno != EINTR) return ready == 1;
    }
}

struct SpawnOrder {
    std::uint64_t child = 0;
    SpawnRequest request;
};

/// A message that the socket has not taken yet.
struct Outgoing {
    GuardCommand command;
    std::optional<SpawnFds> fds;
};

/// What has to be found and killed again when the guard dies.
struct Target {
    pid_t pid = 0;  ///< Main process and group; 0 until the guard has reported it.
    std::string attempt_id;
};

struct RunningChild {
    Target target;
    std::string program;
    ChildPipes pipes;
};

/// Takes the status of every dead child of this process in the group; true once none is left.
bool reap_group(pid_t group, std::chrono::steady_clock::time_point deadline) {
    while (true) {
        const pid_t pid = ::waitpid(-group, nullptr, WNOHANG);
        if (pid < 0) return ::kill(-group, 0) != 0;
        if (pid > 0) continue;
        if (std::chrono::steady_clock::now() >= deadline) return false;
        // There is no event for the end of a group.
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

/// Kills what the guard can no longer kill; true when all of it is gone.
bool kill_targets(const std::vector<Target>& targets) {
    std::vector<std::string> attempt_ids;
    for (const Target& target : targets) {
        attempt_ids.push_back(target.attempt_id);
        if (target.pid > 0) ::kill(-target.pid, SIGKILL);
    }
    const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
    bool all_gone = kill_strays_of(attempt_ids, kKillPatience).all_gone;
    for (const Target& target : targets) {
        if (target.pid > 0 && !reap_group(target.pid, deadline)) all_gone = false;
    }
    return all_gone;
}

}  // namespace

class Guard::Impl {
 public:
    Impl(pid_t pid, UniqueFd socket, UniqueFd epoll, UniqueFd wake)
        : pid_(pid), socket_(std::move(socket)), epoll_(std::move(epoll)), wake_(std::move(wake)) {}

    ~Impl() { close(); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void listen(Callback on_event);
    Result<ChildId> spawn(SpawnRequest request);
    void signal_group(std::uint64_t child, int signal);
    void close();
    [[nodiscard]] bool wait_until_ready();
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool lost() const { return lost_; }

 private:
    // All below runs on the I/O thread.
    void run();
    void handle(std::uint64_t tag);
    void send_orders();
    bool take_order();
    bool take_signal(const GuardCommand& signal, std::unique_lock<std::mutex> lock);
    bool prepare(SpawnOrder order);
    void take_reports();
    void take(const GuardReport& report);
    void child_started(std::uint64_t id, pid_t pid);
    void spawn_failed(std::uint64_t id, int errno_value, const std::string& program);
    void child_exited(const GuardReport& report);
    void guard_lost();
    void reap_guard();
    void watch(int operation, std::uint64_t tag, int fd, std::uint32_t events);

    const pid_t pid_;
    UniqueFd socket_;
    UniqueFd epoll_;
    UniqueFd wake_;
    Callback on_event_;
    std::thread thread_;
    std::atomic<bool> lost_ = false;
    std::atomic<bool> closing_ = false;
    bool reaped_ = false;

    std::mutex mutex_;  ///< Guards the three below.
    std::deque<SpawnOrder> spawns_;
    std::deque<GuardCommand> signals_;
    std::uint64_t last_id_ = 0;

    std::unordered_map<std::uint64_t, RunningChild> children_;
    std::unordered_map<std::uint64_t, Target> leftovers_;  ///< Exited, and not yet all gone.
    std::optional<Outgoing> outgoing_;
    std::size_t spawns_in_flight_ = 0;
};

bool Guard::Impl::wait_until_ready() {
    GuardReport report;
    return wait_readable(socket_.get(), kStartPatience) &&
           receive_report(socket_.get(), report) == WireStatus::kDone &&
           report.kind == GuardReportKind::kReady;
}

void Guard::Impl::listen(Callback on_event) {
    on_event_ = std::move(on_event);
    watch(EPOLL_CTL_ADD, kSocketTag, socket_.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, kWakeTag, wake_.get(), EPOLLIN);
    // Signals are for the threads of the worker; also SIGPIPE, for a child that does not read.
    sigset_t all;
    sigset_t previous;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &previous);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

Result<ChildId> Guard::Impl::spawn(SpawnRequest request) {
    if (auto fault = check(request)) return *std::move(fault);
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        if (lost_ || closing_) {
            return failure(ErrorCode::kRefused, "the guard process is gone", true);
        }
        if (spawns_.size() >= kQueueLimit) {
            return failure(ErrorCode::kRefused, "too many programs wait to be started", true);
        }
        id = ++last_id_;
        spawns_.push_back({.child = id, .request = std::move(request)});
    }
    ::eventfd_write(wake_.get(), 1);
    return ChildId{id};
}

void Guard::Impl::signal_group(std::uint64_t child, int signal) {
    {
        const std::lock_guard lock(mutex_);
        if (lost_) return;
        signals_.push_back({.kind = GuardCommandKind::kSignal, .signal = signal, .child = child});
    }
    ::eventfd_write(wake_.get(), 1);
}

void Guard::Impl::close() {
    closing_ = true;
    ::eventfd_write(wake_.get(), 1);
    if (thread_.joinable()) thread_.join();
    if (reaped_) return;
    socket_.reset();
    const UniqueFd guard(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!guard.valid() || wait_readable(guard.get(), kClosePatience)) reap_guard();
}

void Guard::Impl::reap_guard() {
    ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
}

void Guard::Impl::run() {
    std::array<epoll_event, 64> events;
    while (!closing_ && !lost_) {
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < count && !lost_; ++i) {
            handle(events[static_cast<std::size_t>(i)].data.u64);
        }
        send_orders();
    }
}

void Guard::Impl::handle(std::uint64_t tag) {
    if (tag == kSocketTag) {
        take_reports();
        return;
    }
    if (tag == kWakeTag) {
        eventfd_t ignored = 0;
        ::eventfd_read(wake_.get(), &ignored);
        return;
    }
    const std::uint64_t id = tag >> kStreamBits;
    const auto child = children_.find(id);
    if (child == children_.end()) return;
    const auto stream = static_cast<Stream>(tag & ((1U << kStreamBits) - 1));
    if (const auto progress = child->second.pipes.handle(stream)) {
        on_event_(ChildProgress{.id = ChildId{id}, .progress = *progress});
    }
}

void Guard::Impl::send_orders() {
    while (!lost_ && (outgoing_ || take_order())) {
        if (!outgoing_) continue;
        const SpawnFds* fds = outgoing_->fds ? &*outgoing_->fds : nullptr;
        const WireStatus status = send_command(socket_.get(), outgoing_->command, fds);
        if (status == WireStatus::kWouldBlock) {
            watch(EPOLL_CTL_MOD, kSocketTag, socket_.get(), EPOLLIN | EPOLLOUT);
            return;
        }
        if (status == WireStatus::kClosed) return guard_lost();
        if (fds != nullptr) ++spawns_in_flight_;
        outgoing_.reset();
    }
}

/// Turns the next order into an outgoing message, or deals with it at once; false when there is
/// none. Signals go first: a stop must not wait behind many starts.
bool Guard::Impl::take_order() {
    std::unique_lock lock(mutex_);
    if (!signals_.empty()) {
        const GuardCommand signal = signals_.front();
        signals_.pop_front();
        return take_signal(signal, std::move(lock));
    }
    if (spawns_.empty() || spawns_in_flight_ >= kSpawnsInFlight) return false;
    SpawnOrder order = std::move(spawns_.front());
    spawns_.pop_front();
    lock.unlock();
    return prepare(std::move(order));
}

bool Guard::Impl::take_signal(const GuardCommand& signal, std::unique_lock<std::mutex> lock) {
    const auto waiting = std::ranges::find(spawns_, signal.child, &SpawnOrder::child);
    if (waiting == spawns_.end()) {
        outgoing_ = Outgoing{.command = signal, .fds = std::nullopt};
        return true;
    }
    // Asked to stop before it was started: then it never starts.
    const std::string program = waiting->request.argv.front();
    spawns_.erase(waiting);
    lock.unlock();
    spawn_failed(signal.child, ECANCELED, program);
    return true;
}

bool Guard::Impl::prepare(SpawnOrder order) {
    SpawnRequest& request = order.request;
    const std::string program = request.argv.front();
    RunningChild child{.target = {.attempt_id = request.attempt_id},
                       .program = program,
                       .pipes = ChildPipes(std::move(request.stdin_bytes), request.stdout_cap,
                                           request.stderr_tail_cap)};
    SpawnFds fds;
    bool ready = child.pipes.open(fds);
    if (ready) {
        fds.back() = write_spawn_body(
            {.argv = std::move(request.argv),
             .env = complete_environment(std::move(request.env), request.attempt_id),
             .cwd = std::move(request.cwd),
             .attempt_id = request.attempt_id});
        ready = fds.back().valid();
    }
    if (!ready) {
        spawn_failed(order.child, errno, program);
        return true;
    }
    children_.emplace(order.child, std::move(child));
    outgoing_ = Outgoing{.command = {.kind = GuardCommandKind::kSpawn, .child = order.child},
                         .fds = std::move(fds)};
    return true;
}

void Guard::Impl::take_reports() {
    // Whether it became writable is found out by the next message.
    watch(EPOLL_CTL_MOD, kSocketTag, socket_.get(), EPOLLIN);
    while (true) {
        GuardReport report;
        const WireStatus status = receive_report(socket_.get(), report);
        if (status == WireStatus::kWouldBlock) return;
        if (status == WireStatus::kClosed) return guard_lost();
        take(report);
    }
}

void Guard::Impl::take(const GuardReport& report) {
    switch (report.kind) {
        case GuardReportKind::kReady:
            break;
        case GuardReportKind::kStarted:
            --spawns_in_flight_;
            child_started(report.child, report.value);
            break;
        case GuardReportKind::kSpawnFailed: {
            --spawns_in_flight_;
            const auto child = children_.extract(report.child);
            spawn_failed(report.child, report.value, child.mapped().program);
            break;
        }
        case GuardReportKind::kExited:
            child_exited(report);
            break;
        case GuardReportKind::kGone:
            leftovers_.erase(report.child);
            on_event_(ChildGone{.id = ChildId{report.child}});
            break;
    }
}

void Guard::Impl::child_started(std::uint64_t id, pid_t pid) {
    RunningChild& child = children_.at(id);
    child.target.pid = pid;
    on_event_(ChildStarted{.id = ChildId{id}, .pid = pid});
    for (const Stream stream :
         {Stream::kStdin, Stream::kStdout, Stream::kStderr, Stream::kControl}) {
        const int fd = child.pipes.fd(stream);
        const std::uint32_t events = stream == Stream::kStdin ? EPOLLOUT : EPOLLIN;
        if (fd >= 0) watch(EPOLL_CTL_ADD, tag_of(id, stream), fd, events);
    }
}

void Guard::Impl::spawn_failed(std::uint64_t id, int errno_value, const std::string& program) {
    on_event_(SpawnFailed{.id = ChildId{id},
                          .errno_value = errno_value,
                          .message = map_spawn_failure(program, errno_value).error});
}

void Guard::Impl::child_exited(const GuardReport& report) {
    auto child = children_.extract(report.child);
    if (!report.all_gone) leftovers_.emplace(report.child, child.mapped().target);
    on_event_(ChildExited{.id = ChildId{report.child},
                          .wait_status = report.value,
                          .guard_lost = false,
                          .all_gone = report.all_gone,
                          .output = child.mapped().pipes.finish()});
}

/// The kernel has killed the children themselves (PR_SET_PDEATHSIG); what they had started is left
/// and, since this process is a subreaper as well, is its own by now.
void Guard::Impl::guard_lost() {
    std::deque<SpawnOrder> never_sent;
    {
        const std::lock_guard lock(mutex_);
        lost_ = true;
        never_sent.swap(spawns_);
    }
    // Its children change their parent only when it is dead, not when its descriptors close.
    reap_guard();
    std::vector<Target> targets;
    for (const auto& [id, child] : children_)
        targets.push_back(child.target);
    for (const auto& [id, target] : leftovers_)
        targets.push_back(target);
    const bool all_gone = kill_targets(targets);
    for (auto& [id, child] : children_) {
        on_event_(ChildExited{.id = ChildId{id},
                              .wait_status = 0,
                              .guard_lost = true,
                              .all_gone = all_gone,
                              .output = child.pipes.finish()});
    }
    for (const auto& [id, target] : leftovers_) {
        if (all_gone) on_event_(ChildGone{.id = ChildId{id}});
    }
    for (const SpawnOrder& order : never_sent) {
        spawn_failed(order.child, ECANCELED, order.request.argv.front());
    }
    children_.clear();
    leftovers_.clear();
    on_event_(GuardLost{.all_gone = all_gone});
}

void Guard::Impl::watch(int operation, std::uint64_t tag, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    ::epoll_ctl(epoll_.get(), operation, fd, &event);
}

Result<Guard> Guard::start(const GuardOptions& options) {
    if (has_other_threads()) {
        return failure(ErrorCode::kInternal, "a guard must be started before any thread", false);
    }
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        return system_failure("no socket for the guard process");
    }
    UniqueFd ours(sockets[0]);
    UniqueFd theirs(sockets[1]);
    UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll.valid() || !wake.valid() || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return system_failure("cannot prepare the guard process");
    }
    const pid_t pid = ::fork();
    if (pid < 0) return system_failure("cannot start the guard process");
    if (pid == 0) {
        run_guard_server({.socket = std::move(theirs),
                          .worker_pidfd = std::move(self),
                          .alive_fd = options.alive_fd,
                          .leftover_grace = options.leftover_grace});
    }
    theirs.reset();
    Guard guard(std::make_unique<Impl>(pid, std::move(ours), std::move(epoll), std::move(wake)));
    if (!guard.impl_->wait_until_ready()) {
        return failure(ErrorCode::kInternal, "the guard process did not start", true);
    }
    return guard;
}

Guard::Guard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Guard::Guard(Guard&&) noexcept = default;
Guard& Guard::operator=(Guard&&) noexcept = default;
Guard::~Guard() = default;

void Guard::listen(Callback on_event) {
    impl_->listen(std::move(on_event));
}
Result<ChildId> Guard::spawn(SpawnRequest request) {
    return impl_->spawn(std::move(request));
}
void Guard::signal_group(ChildId id, int signal) {
    impl_->signal_group(static_cast<std::uint64_t>(id), signal);
}
pid_t Guard::pid() const {
    return impl_->pid();
}
bool Guard::lost() const {
    return impl_->lost();
}
void Guard::close() {
    impl_->close();
}

}  // namespace sekali::process
