#include "process/supervisor.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "process/exec_outcome.hpp"
#include "process/proc_table.hpp"
#include "process/signals.hpp"

namespace sekali::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
/// How long the guards of dead workers are waited for at the end; they finish their work without
/// their grandparent as well.
constexpr milliseconds kGuardPatience{10'000};

struct Slot {
    pid_t pid = 0;  ///< 0: no process.
    bool done = false;
    int crashes_in_a_row = 0;
    Clock::time_point started_at;
    std::optional<Clock::time_point> restart_at;
};

class Supervisor {
 public:
    Supervisor(const SupervisorOptions& options, const std::function<int(int)>& worker_body,
               SignalSource signals)
        : options_(options),
          worker_body_(worker_body),
          signals_(std::move(signals)),
          slots_(static_cast<std::size_t>(options.processes)) {}

    int run();

 private:
    void start(std::size_t index);
    [[noreturn]] void be_worker(std::size_t index, pid_t supervisor, const sigset_t& mask);
    void wait();
    void take_signals();
    void reap();
    void worker_ended(std::size_t index, int wait_status);
    void schedule_restart(std::size_t index, bool crashed);
    void restart_due();
    void start_no_more();
    void stop(milliseconds patience);
    void kill_if_due();
    void signal_workers(int signal);
    void log(std::size_t index, const std::string& what) const;
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] bool any_worker_lives() const;
    [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;

    const SupervisorOptions& options_;
    const std::function<int(int)>& worker_body_;
    SignalSource signals_;
    StopLatch latch_;
    std::vector<Slot> slots_;
    bool has_children_ = true;
    bool no_more_ = false;
    std::optional<Clock::time_point> kill_at_;
    std::optional<Clock::time_point> leave_at_;
    int status_ = kExitDone;
};

int Supervisor::run() {
    for (std::size_t index = 0; index < slots_.size(); ++index)
        start(index);
    while (!is_over()) {
        wait();
        take_signals();
        reap();
        restart_due();
        kill_if_due();
    }
    return status_;
}

void Supervisor::start(std::size_t index) {
    Slot& slot = slots_[index];
    slot.restart_at.reset();
    slot.started_at = Clock::now();
    sigset_t all;
    sigset_t previous;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &previous);
    const pid_t supervisor = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) be_worker(index, supervisor, previous);
    const int fork_errno = errno;
    ::sigprocmask(SIG_SETMASK, &previous, nullptr);
    if (pid < 0) {
        log(index, std::string("cannot be started: ") + std::strerror(fork_errno));
        schedule_restart(index, true);
        return;
    }
    slot.pid = pid;
    has_children_ = true;
    log(index, "started as process " + std::to_string(pid));
}

void Supervisor::be_worker(std::size_t index, pid_t supervisor, const sigset_t& mask) {
    signals_.reset_in_child();
    // Its own group: Ctrl-C must reach it once, by way of the supervisor.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != supervisor) ::_exit(kWorkerDone);
    // What comes before the worker has a handler of its own waits for it.
    sigset_t until_handled = mask;
    ::sigaddset(&until_handled, SIGUSR1);
    ::sigprocmask(SIG_SETMASK, &until_handled, nullptr);
    const int status = worker_body_(static_cast<int>(index));
    std::fflush(nullptr);
    ::_exit(status);
}

void Supervisor::wait() {
    int timeout = -1;
    if (const auto deadline = next_deadline()) {
        const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now());
        timeout = static_cast<int>(std::clamp(left, milliseconds{0}, milliseconds{60'000}).count());
    }
    pollfd poll_fd{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
    ::poll(&poll_fd, 1, timeout);
}

void Supervisor::take_signals() {
    while (true) {
        const int signal = signals_.next().number;
        if (signal == 0) return;
        if (signal == SIGUSR1) {
            start_no_more();
            signal_workers(SIGUSR1);
        }
        if (signal != SIGTERM && signal != SIGINT) continue;
        stop(latch_.feed(signal) == StopLevel::kGraceful ? options_.grace : options_.kill_after);
    }
}

void Supervisor::reap() {
    int wait_status = 0;
    while (true) {
        const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
        if (pid < 0) has_children_ = errno != ECHILD;
        if (pid <= 0) return;
        // Others are what dead workers have left to this subreaper.
        const auto slot = std::ranges::find(slots_, pid, &Slot::pid);
        if (slot != slots_.end()) {
            worker_ended(static_cast<std::size_t>(slot - slots_.begin()), wait_status);
        }
    }
}

void Supervisor::worker_ended(std::size_t index, int wait_status) {
    Slot& slot = slots_[index];
    slot.pid = 0;
    log(index, describe_wait_status(wait_status));
    const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    const auto lived = Clock::now() - slot.started_at;
    if (lived >= options_.stable_after) slot.crashes_in_a_row = 0;
    if (no_more_ || (status == kWorkerDone && options_.policy == RestartPolicy::kUntilDone)) {
        slot.done = true;
    } else if (status == kWorkerUsage) {
        slot.done = true;
        status_ = kWorkerUsage;
        stop(options_.grace);
    } else {
        // A worker that asks for its next life as soon as it starts would burn the processor.
        const bool recycles = status == kWorkerRecycle && lived >= options_.restart_base;
        schedule_restart(index, !recycles);
    }
}

void Supervisor::schedule_restart(std::size_t index, bool crashed) {
    Slot& slot = slots_[index];
    milliseconds delay{0};
    if (crashed) {
        delay = options_.restart_base;
        for (int i = 0; i < slot.crashes_in_a_row && delay < options_.restart_cap; ++i)
            delay *= 2;
        delay = std::min(delay, options_.restart_cap);
        ++slot.crashes_in_a_row;
        log(index, "starts again in " + std::to_string(delay.count()) + " ms");
    }
    slot.restart_at = Clock::now() + delay;
}

void Supervisor::restart_due() {
    const Clock::time_point now = Clock::now();
    for (std::size_t index = 0; index < slots_.size(); ++index) {
        const auto& due = slots_[index].restart_at;
        if (due && *due <= now) start(index);
    }
}

/// Without new work, a worker that ends needs no other in its place.
void Supervisor::start_no_more() {
    no_more_ = true;
    for (Slot& slot : slots_) {
        slot.done = slot.done || slot.pid == 0;
        slot.restart_at.reset();
    }
}

void Supervisor::stop(milliseconds patience) {
    start_no_more();
    signal_workers(SIGTERM);
    const Clock::time_point kill_at = Clock::now() + patience;
    kill_at_ = kill_at_ ? std::min(*kill_at_, kill_at) : kill_at;
}

void Supervisor::kill_if_due() {
    const Clock::time_point now = Clock::now();
    if (kill_at_ && *kill_at_ <= now && any_worker_lives()) {
        signal_workers(SIGKILL);
        kill_at_.reset();
    }
    const bool all_done = std::ranges::all_of(slots_, &Slot::done);
    if (all_done && !leave_at_) leave_at_ = now + kGuardPatience;
}

void Supervisor::signal_workers(int signal) {
    for (const Slot& slot : slots_) {
        if (slot.pid > 0) ::kill(slot.pid, signal);
    }
}

void Supervisor::log(std::size_t index, const std::string& what) const {
    if (options_.log) options_.log("worker " + std::to_string(index) + ": " + what);
}

bool Supervisor::any_worker_lives() const {
    return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.pid > 0; });
}

bool Supervisor::is_over() const {
    if (!std::ranges::all_of(slots_, &Slot::done)) return false;
    return !has_children_ || (leave_at_ && *leave_at_ <= Clock::now());
}

std::optional<Clock::time_point> Supervisor::next_deadline() const {
    std::optional<Clock::time_point> next = leave_at_;
    const auto consider = [&next](const std::optional<Clock::time_point>& deadline) {
        if (deadline && (!next || *deadline < *next)) next = deadline;
    };
    if (any_worker_lives()) consider(kill_at_);
    for (const Slot& slot : slots_) {
        consider(slot.restart_at);
    }
    return next;
}

}  // namespace

int supervise(const SupervisorOptions& options, const std::function<int(int)>& worker_body) {
    const auto refuse = [&options](const std::string& why) {
        if (options.log) options.log(why);
        return kExitFailed;
    };
    if (has_other_threads()) return refuse("workers must be forked before any thread starts");
    auto signals = SignalSource::install({SIGTERM, SIGINT, SIGUSR1, SIGCHLD});
    if (!signals) return refuse(signals.error().message);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    return Supervisor(options, worker_body, std::move(*signals)).run();
}

}  // namespace sekali::process
