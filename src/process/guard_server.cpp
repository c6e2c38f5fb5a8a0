#include "process/guard_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "process/guard_wire.hpp"
#include "process/launch.hpp"
#include "process/proc_table.hpp"
#include "process/strays.hpp"

namespace sekali::process {
namespace {

using Clock = std::chrono::steady_clock;

/// Where the end of a leftover process is not told by SIGCHLD, because its parent lives on outside
/// the group, it is looked for this often.
constexpr std::chrono::milliseconds kLeftoverPoll{100};
/// A killed process whose memory is gone is found no more, while its files are still open.
constexpr std::chrono::milliseconds kDeathPatience{100};
/// Commands taken before the guard looks after its children again.
constexpr int kCommandBatch = 32;
/// First number for the guard's own descriptors; those below are the children's.
constexpr int kFirstOwnFd = 10;
constexpr int kLastChildFd = 3;

struct Child {
    Child(pid_t main_process, std::string attempt)
        : group(main_process), attempt_id(std::move(attempt)) {}

    pid_t group = 0;  ///< Also the number of its main process.
    std::string attempt_id;
    bool asked_to_stop = false;
    bool exited = false;      ///< Its main process; what is alive now are leftovers.
    bool group_gone = false;  ///< The number may mean somebody else from now on.
    Clock::time_point kill_leftovers_at;
};

UniqueFd move_above_child_fds(int fd) {
    return UniqueFd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstOwnFd));
}

/// Closes all that the worker had open, but for stderr and the descriptors given.
void close_all_but(std::initializer_list<int> kept) {
    std::vector<unsigned> keep{STDERR_FILENO};
    for (const int fd : kept) {
        if (fd >= 0) keep.push_back(static_cast<unsigned>(fd));
    }
    std::ranges::sort(keep);
    unsigned first = 0;
    for (const unsigned fd : keep) {
        if (first < fd) ::syscall(SYS_close_range, first, fd - 1, 0);
        first = fd + 1;
    }
    ::syscall(SYS_close_range, first, ~0U, 0);
}

/// The numbers that children use are taken, so that no descriptor of the guard gets one of them.
bool occupy_child_fds() {
    UniqueFd lowest(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const UniqueFd null = move_above_child_fds(lowest.get());
    lowest.reset();
    for (int fd = 0; fd <= kLastChildFd; ++fd) {
        const bool keep = fd == STDERR_FILENO && ::fcntl(fd, F_GETFD) >= 0;
        if (!keep && ::dup3(null.get(), fd, O_CLOEXEC) < 0) return false;
    }
    return true;
}

void signal_group_of(const Child& child, int signal) {
    ::kill(-child.group, signal);
    // A stopped process takes its SIGTERM only once it goes on.
    if (signal == SIGTERM) ::kill(-child.group, SIGCONT);
}

/// A child that was stopped must be gone altogether before another attempt, so processes that left
/// its group are looked for as well. After an ordinary end that search would cost too much.
bool leftovers_alive(Child& child) {
    if (!child.group_gone && (::kill(-child.group, 0) == 0 || errno == EPERM)) return true;
    child.group_gone = true;
    if (!child.asked_to_stop) return false;
    return !kill_strays(child.attempt_id, kDeathPatience).all_gone;
}

class GuardServer {
 public:
    explicit GuardServer(const GuardServerOptions& options)
        : socket_(move_above_child_fds(options.socket.get())),
          worker_(move_above_child_fds(options.worker_pidfd.get())),
          alive_(move_above_child_fds(options.alive_fd)),
          leftover_grace_(options.leftover_grace) {}

    bool set_up();
    void serve();
    void end_everything();

 private:
    bool wait_for_work();
    void take_commands();
    void spawn(std::uint64_t id, SpawnFds fds);
    void signal_child(std::uint64_t id, int signal);
    void reap();
    void main_process_exited(std::uint64_t id, int wait_status);
    void look_after_leftovers();
    void report(const GuardReport& report);
    void flush_reports();

    UniqueFd socket_;
    UniqueFd worker_;
    UniqueFd alive_;
    UniqueFd child_signals_;
    std::chrono::milliseconds leftover_grace_;
    std::unordered_map<std::uint64_t, Child> children_;
    std::unordered_map<pid_t, std::uint64_t> running_;  ///< By main process.
    std::deque<GuardReport> unsent_;
    bool worker_gone_ = false;
};

bool GuardServer::set_up() {
    // A session of its own keeps it and its children clear of the worker's terminal, and of a
    // SIGKILL sent to the worker's process group: that is when it is needed.
    ::setsid();
    ::prctl(PR_SET_NAME, "sekali-guard");
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t child_signal;
    ::sigemptyset(&child_signal);
    ::sigaddset(&child_signal, SIGCHLD);
    ::signal(SIGCHLD, SIG_DFL);
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || !socket_.valid()) return false;
    close_all_but({socket_.get(), worker_.get(), alive_.get()});
    if (!occupy_child_fds()) return false;
    child_signals_.reset(::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK));
    return child_signals_.valid();
}

void GuardServer::serve() {
    report({.kind = GuardReportKind::kReady});
    while (wait_for_work()) {
        reap();
        take_commands();
        look_after_leftovers();
        flush_reports();
    }
}

/// False once the worker is gone: its pidfd also tells when another process holds its end of the
/// socket open.
bool GuardServer::wait_for_work() {
    const short socket_events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    std::array<pollfd, 3> fds{{{.fd = socket_.get(), .events = socket_events, .revents = 0},
                               {.fd = child_signals_.get(), .events = POLLIN, .revents = 0},
                               {.fd = worker_.get(), .events = POLLIN, .revents = 0}}};
    const int timeout =
        children_.size() > running_.size() ? static_cast<int>(kLeftoverPoll.count()) : -1;
    ::poll(fds.data(), fds.size(), timeout);
    return !worker_gone_ && fds[2].revents == 0;
}

void GuardServer::take_commands() {
    for (int i = 0; i < kCommandBatch && !worker_gone_; ++i) {
        GuardCommand command;
        SpawnFds fds;
        const WireStatus status = receive_command(socket_.get(), command, fds);
        if (status == WireStatus::kWouldBlock) return;
        if (status == WireStatus::kClosed) {
            worker_gone_ = true;
        } else if (command.kind == GuardCommandKind::kSpawn) {
            spawn(command.child, std::move(fds));
        } else {
            signal_child(command.child, command.signal);
        }
    }
}

void GuardServer::spawn(std::uint64_t id, SpawnFds fds) {
    const auto body = read_spawn_body(fds.back().get());
    Launched launched;
    launched.errno_value = EMFILE;  // Descriptors that found no room here.
    if (body) {
        LaunchPlan plan;
        plan.argv = body->argv;
        plan.env = body->env;
        plan.cwd = body->cwd;
        for (int target = 0; target <= kLastChildFd; ++target) {
            plan.fds.push_back(
                {.source = fds[static_cast<std::size_t>(target)].get(), .target = target});
        }
        plan.only_mapped_fds = true;
        plan.own_group = true;
        launched = launch(plan);
    }
    if (launched.pid < 0) {
        report({.kind = GuardReportKind::kSpawnFailed, .value = launched.errno_value, .child = id});
        return;
    }
    children_.emplace(id, Child(launched.pid, body->attempt_id));
    running_.emplace(launched.pid, id);
    report({.kind = GuardReportKind::kStarted, .value = launched.pid, .child = id});
}

void GuardServer::signal_child(std::uint64_t id, int signal) {
    const auto found = children_.find(id);
    if (found == children_.end()) return;
    Child& child = found->second;
    if (signal == SIGTERM || signal == SIGKILL) child.asked_to_stop = true;
    if (!child.group_gone) signal_group_of(child, signal);
}

void GuardServer::reap() {
    signalfd_siginfo info;
    while (::read(child_signals_.get(), &info, sizeof info) > 0) {
    }
    int wait_status = 0;
    while (true) {
        const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
        if (pid <= 0) return;
        const auto child = running_.find(pid);
        if (child == running_.end()) continue;
        const std::uint64_t id = child->second;
        running_.erase(child);
        main_process_exited(id, wait_status);
    }
}

void GuardServer::main_process_exited(std::uint64_t id, int wait_status) {
    const auto found = children_.find(id);
    Child& child = found->second;
    child.exited = true;
    // The number stays taken as long as the group has a member, so this cannot hit a stranger.
    signal_group_of(child, SIGTERM);
    const bool all_gone = !leftovers_alive(child);
    report({.kind = GuardReportKind::kExited,
            .all_gone = all_gone,
            .value = wait_status,
            .child = id});
    if (all_gone) {
        children_.erase(found);
    } else {
        child.kill_leftovers_at = Clock::now() + leftover_grace_;
    }
}

void GuardServer::look_after_leftovers() {
    if (children_.size() == running_.size()) return;
    const Clock::time_point now = Clock::now();
    for (auto entry = children_.begin(); entry != children_.end();) {
        auto& [id, child] = *entry;
        if (child.exited && !child.group_gone && now >= child.kill_leftovers_at) {
            signal_group_of(child, SIGKILL);
        }
        if (!child.exited || leftovers_alive(child)) {
            ++entry;
            continue;
        }
        report({.kind = GuardReportKind::kGone, .child = id});
        entry = children_.erase(entry);
    }
}

/// A worker that does not read must not stop the guard from looking after its children; what waits
/// is bounded by three reports a child.
void GuardServer::report(const GuardReport& report) {
    unsent_.push_back(report);
    flush_reports();
}

void GuardServer::flush_reports() {
    while (!unsent_.empty()) {
        const WireStatus status = send_report(socket_.get(), unsent_.front());
        if (status == WireStatus::kWouldBlock) return;
        if (status == WireStatus::kClosed) worker_gone_ = true;
        unsent_.pop_front();
    }
}

/// Descendants that lose their parent become children of the guard, so it is alone once it has no
/// child left. The end of a killed child wakes it to look for what that child had forked meanwhile.
void GuardServer::end_everything() {
    for (const auto& [id, child] : children_) {
        if (!child.group_gone) signal_group_of(child, SIGKILL);
    }
    while (true) {
        for (const pid_t pid : descendants_of(::getpid(), list_processes())) {
            ::kill(pid, SIGKILL);
        }
        pid_t reaped = ::waitpid(-1, nullptr, 0);
        if (reaped < 0 && errno == ECHILD) return;
        while (reaped > 0)
            reaped = ::waitpid(-1, nullptr, WNOHANG);
    }
}

}  // namespace

void run_guard_server(GuardServerOptions options) {
    GuardServer server(options);
    if (!server.set_up()) ::_exit(EXIT_FAILURE);
    server.serve();
    server.end_everything();
    ::_exit(EXIT_SUCCESS);
}

}  // namespace sekali::process
