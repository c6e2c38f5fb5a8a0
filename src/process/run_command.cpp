#include "process/run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>

#include "process/exec_outcome.hpp"
#include "process/launch.hpp"
#include "process/proc_table.hpp"
#include "process/terminate.hpp"

namespace sekali::process {
namespace {

using Clock = Termination::Clock;

constexpr int kExitCannotRun = 126;
constexpr int kExitNotFound = 127;
constexpr int kExitSignalBase = 128;
constexpr int kFirstOwnFd = 10;
constexpr std::size_t kReadBytes = 64 * 1024;
/// How often the end of descendants is looked for; nothing tells it.
constexpr std::chrono::milliseconds kDescendantPoll{20};

/// Ignores SIGPIPE while it lives: a reader of our stdout that leaves must not end the command.
class IgnoredSigpipe {
 public:
    IgnoredSigpipe() {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGPIPE, &ignore, &previous_);
    }
    ~IgnoredSigpipe() { ::sigaction(SIGPIPE, &previous_, nullptr); }
    IgnoredSigpipe(const IgnoredSigpipe&) = delete;
    IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
    struct sigaction previous_ {};
};

/// What the command prints: kept up to the cap, and passed on without ever blocking.
class Tee {
 public:
    Tee(UniqueFd source, std::size_t cap) : source_(std::move(source)), cap_(cap) {}

    /// Reads only once everything read before has been passed on.
    [[nodiscard]] int read_fd() const { return waiting_.empty() ? source_.get() : -1; }
    [[nodiscard]] int write_fd() const { return waiting_.empty() ? -1 : STDOUT_FILENO; }

    void read_some() {
        std::array<char, kReadBytes> buffer;
        const ssize_t count = ::read(source_.get(), buffer.data(), buffer.size());
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) return source_.reset();
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
        total_ += bytes.size();
        kept_ += bytes.substr(0, cap_ - kept_.size());
        if (reader_there_) waiting_ = bytes;
    }

    /// To be called when stdout is ready: a ready pipe takes at least PIPE_BUF bytes at once.
    void write_some() {
        const std::size_t most = std::min<std::size_t>(waiting_.size(), PIPE_BUF);
        const ssize_t count = ::write(STDOUT_FILENO, waiting_.data(), most);
        if (count > 0) waiting_.erase(0, static_cast<std::size_t>(count));
        if (count >= 0 || errno == EAGAIN || errno == EINTR) return;
        reader_there_ = false;
        waiting_.clear();
    }

    /// After the command's end: whether there is nothing left that it wrote itself. Others may hold
    /// the pipe open, and fill it, for ever.
    [[nodiscard]] bool drained() {
        if (!limited_ && source_.valid()) {
            int left = 0;
            ::ioctl(source_.get(), FIONREAD, &left);
            limited_ = true;
            limit_ = total_ + static_cast<std::uint64_t>(left);
        }
        return waiting_.empty() && (!source_.valid() || total_ >= limit_);
    }

    void hand_over(CommandResult& result) {
        result.stdout_bytes = std::move(kept_);
        result.stdout_total = total_;
    }

 private:
    UniqueFd source_;
    std::size_t cap_;
    std::string kept_;
    std::string waiting_;
    std::uint64_t total_ = 0;
    std::uint64_t limit_ = 0;
    bool limited_ = false;
    bool reader_there_ = true;
};

class ForegroundCommand {
 public:
    ForegroundCommand(const CommandOptions& options, const CommandStop& stop, SignalSource& signals,
                      Launched launched, UniqueFd stdout_end)
        : options_(options),
          stop_(stop),
          signals_(signals),
          pid_(launched.pid),
          pidfd_(std::move(launched.pidfd)),
          tee_(std::move(stdout_end), options.stdout_cap) {
        result_.started = true;
    }

    CommandResult wait();

 private:
    void wait_for_event();
    void pass_on_signals();
    void begin_stop();
    void act(Termination::Action action);
    void take_exit();
    [[nodiscard]] bool is_over();
    [[nodiscard]] int timeout() const;

    const CommandOptions& options_;
    const CommandStop& stop_;
    SignalSource& signals_;
    pid_t pid_;
    UniqueFd pidfd_;  ///< Closed once the command has ended.
    Tee tee_;
    Termination termination_;
    CommandResult result_;
};

/// SIGCONT as well, so that a stopped process takes its SIGTERM.
void signal_descendants(int signal) {
    for (const pid_t pid : descendants_of(::getpid(), list_processes())) {
        ::kill(pid, signal);
        if (signal == SIGTERM) ::kill(pid, SIGCONT);
    }
}

CommandResult ForegroundCommand::wait() {
    while (!is_over()) {
        wait_for_event();
        pass_on_signals();
        act(termination_.tick(Clock::now()));
    }
    tee_.hand_over(result_);
    return std::move(result_);
}

void ForegroundCommand::wait_for_event() {
    const bool may_be_stopped = pidfd_.valid() && !result_.stopped;
    const int stop_fd = may_be_stopped ? stop_.fd() : -1;
    std::array<pollfd, 5> fds{{{.fd = pidfd_.get(), .events = POLLIN, .revents = 0},
                               {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = stop_fd, .events = POLLIN, .revents = 0},
                               {.fd = tee_.read_fd(), .events = POLLIN, .revents = 0},
                               {.fd = tee_.write_fd(), .events = POLLOUT, .revents = 0}}};
    if (::poll(fds.data(), fds.size(), timeout()) <= 0) return;
    if (fds[3].revents != 0) tee_.read_some();
    if (fds[4].revents != 0) tee_.write_some();
    // An end that was there first is no stop.
    if (fds[0].revents != 0) {
        take_exit();
    } else if (fds[2].revents != 0) {
        begin_stop();
    }
}

int ForegroundCommand::timeout() const {
    if (!pidfd_.valid() && result_.stopped) return static_cast<int>(kDescendantPoll.count());
    const auto deadline = termination_.deadline();
    if (!deadline) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
}

void ForegroundCommand::pass_on_signals() {
    while (true) {
        const ReceivedSignal signal = signals_.next();
        if (signal.number == 0) return;
        if (!signal.from_kernel) signal_descendants(signal.number);
    }
}

void ForegroundCommand::begin_stop() {
    result_.stopped = true;
    act(termination_.request(StopReason::kLeaseLost, Clock::now(), options_.grace));
}

void ForegroundCommand::act(Termination::Action action) {
    if (action == Termination::Action::kSendTerm) signal_descendants(SIGTERM);
    if (action == Termination::Action::kSendKill) signal_descendants(SIGKILL);
}

void ForegroundCommand::take_exit() {
    int wait_status = 0;
    ::waitpid(pid_, &wait_status, 0);
    pidfd_.reset();
    result_.ended_by_signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    result_.exit_status = WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                                   : WEXITSTATUS(wait_status);
}

bool ForegroundCommand::is_over() {
    if (pidfd_.valid()) return false;
    if (!result_.stopped) return tee_.drained();
    // What was stopped must be gone altogether, since somebody else may begin now.
    pid_t reaped = 0;
    do {
        reaped = ::waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped == 0 && termination_.record().kill_sent) signal_descendants(SIGKILL);
    return reaped < 0 && tee_.drained();
}

bool requested(const CommandStop& stop) {
    pollfd poll_fd{.fd = stop.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&poll_fd, 1, 0) == 1;
}

CommandResult stopped_before_start() {
    CommandResult result;
    result.exit_status = kExitSignalBase + SIGTERM;
    result.stopped = true;
    result.error = "asked to stop before the command was started";
    return result;
}

CommandResult not_started(const CommandOptions& options, int errno_value) {
    CommandResult result;
    result.exit_status = errno_value == ENOENT ? kExitNotFound : kExitCannotRun;
    result.error = map_spawn_failure(options.argv.front(), errno_value).error;
    return result;
}

Error no_descriptors() {
    Error error;
    error.code = ErrorCode::kRefused;
    error.message = std::string("cannot prepare the command: ") + std::strerror(errno);
    error.retryable = true;
    return error;
}

}  // namespace

Result<CommandStop> CommandStop::create() {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.valid()) return no_descriptors();
    return CommandStop(std::move(event));
}

void CommandStop::request() const {
    ::eventfd_write(event_.get(), 1);
}

Result<CommandResult> run_command(const CommandOptions& options, const CommandStop& stop,
                                  SignalSource& signals) {
    if (requested(stop)) return stopped_before_start();
    const IgnoredSigpipe ignored_sigpipe;
    LaunchPlan plan;
    plan.argv = options.argv;
    plan.env = options.env;
    plan.keep_ignored_signals = true;
    UniqueFd read_end;
    UniqueFd write_end;
    if (options.capture_stdout) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return no_descriptors();
        read_end.reset(ends[0]);
        write_end.reset(ends[1]);
        // Above the standard streams, even where this process was started without them.
        write_end.reset(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
        if (!write_end.valid() || ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) {
            return no_descriptors();
        }
        plan.fds.push_back({.source = write_end.get(), .target = STDOUT_FILENO});
    }
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return no_descriptors();
    Launched launched = launch(plan);
    write_end.reset();
    if (launched.pid < 0) return not_started(options, launched.errno_value);
    return ForegroundCommand(options, stop, signals, std::move(launched), std::move(read_end))
        .wait();
}

}  // namespace sekali::process
