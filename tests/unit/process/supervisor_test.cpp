#include "process/supervisor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "process/guard.hpp"
#include "process/signals.hpp"
#include "unit/process/process_testing.hpp"

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using testing::Watched;

void say(int fd, const std::string& line) {
    const std::string text = line + "\n";
    if (::write(fd, text.data(), text.size()) < 0) std::abort();
}

struct Pipe {
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        read_end.reset(ends[0]);
        write_end.reset(ends[1]);
    }
    UniqueFd read_end;
    UniqueFd write_end;
};

/// What a worker of these tests does; it says things on the descriptor.
using Body = std::function<int(int index, int fd)>;

/// A supervisor in a process of its own.
class SupervisorRun {
 public:
    SupervisorRun(SupervisorOptions options, const Body& body) {
        pid_ = ::fork();
        if (pid_ == 0) {
            const int log_fd = log_.write_end.get();
            const int words_fd = words_.write_end.get();
            options.log = [log_fd](const std::string& line) { say(log_fd, line); };
            ::_exit(supervise(options, [&](int index) { return body(index, words_fd); }));
        }
        log_.write_end.reset();
        words_.write_end.reset();
    }
    SupervisorRun(const SupervisorRun&) = delete;
    SupervisorRun& operator=(const SupervisorRun&) = delete;
    ~SupervisorRun() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    void signal(int number) const { ::kill(pid_, number); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// The next line of a worker; empty once nobody can write any more.
    std::string words() { return testing::read_line(words_.read_end.get()); }
    pid_t worker_pid() { return std::atoi(words().c_str()); }
    /// The next line of the log that has this text.
    std::string log_with(const std::string& text) {
        while (true) {
            std::string line = testing::read_line(log_.read_end.get());
            if (line.empty() || line.find(text) != std::string::npos) return line;
        }
    }
    int wait() {
        int status = -1;
        ::waitpid(pid_, &status, 0);
        pid_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

 private:
    Pipe log_;
    Pipe words_;
    pid_t pid_ = 0;
};

/// Says its pid, then every signal it gets, and ends at the n-th.
Body ends_at_signal(int count) {
    return [count](int, int fd) {
        SignalSource signals = SignalSource::install({SIGTERM, SIGUSR1}).value();
        say(fd, std::to_string(::getpid()));
        for (int seen = 0; seen < count;) {
            pollfd poll_fd{.fd = signals.fd(), .events = POLLIN, .revents = 0};
            ::poll(&poll_fd, 1, -1);
            const int number = signals.next().number;
            if (number == 0) continue;
            ++seen;
            say(fd, "signal " + std::to_string(number));
        }
        return kWorkerDone;
    };
}

SupervisorOptions options_of(int processes, RestartPolicy policy = RestartPolicy::kAlways) {
    SupervisorOptions options;
    options.processes = processes;
    options.policy = policy;
    options.restart_base = 1ms;
    options.restart_cap = 4ms;
    return options;
}

TEST(Supervisor, RestartsAWorkerThatWasKilled) {
    SupervisorRun run(options_of(1), ends_at_signal(1));
    const pid_t first = run.worker_pid();
    ::kill(first, SIGKILL);
    EXPECT_NE(run.log_with("killed by signal 9 (SIGKILL)"), "");
    const pid_t second = run.worker_pid();
    EXPECT_GT(second, 0);
    EXPECT_NE(second, first);
    run.signal(SIGTERM);
    EXPECT_EQ(run.words(), "signal 15");
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, BacksOffFromAWorkerThatKeepsCrashing) {
    SupervisorRun run(options_of(1), [](int, int) { return 1; });
    for (const char* delay : {"1 ms", "2 ms", "4 ms", "4 ms", "4 ms"}) {
        EXPECT_EQ(run.log_with("starts again"), std::string("worker 0: starts again in ") + delay);
    }
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, AStableRunStartsTheCountAnew) {
    SupervisorOptions options = options_of(1);
    options.stable_after = 0ms;
    SupervisorRun run(options, [](int, int) { return 1; });
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(run.log_with("starts again"), "worker 0: starts again in 1 ms");
    }
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, RecyclesWithoutBackOff) {
    SupervisorOptions options = options_of(1);
    options.restart_base = 0ms;
    options.restart_cap = 1h;
    SupervisorRun run(options, [](int, int fd) {
        say(fd, std::to_string(::getpid()));
        return kWorkerRecycle;
    });
    for (int i = 0; i < 5; ++i)
        EXPECT_GT(run.worker_pid(), 0);
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(run.log_with("starts again"), "");
}

TEST(Supervisor, AWorkerThatOnlyRecyclesIsSlowedDown) {
    SupervisorOptions options = options_of(1);
    options.restart_base = 1h;
    options.restart_cap = 1h;
    SupervisorRun run(options, [](int, int) { return kWorkerRecycle; });
    EXPECT_NE(run.log_with("starts again in 3600000 ms"), "");
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, EndsWhenAllAreDone) {
    SupervisorRun run(options_of(3, RestartPolicy::kUntilDone), [](int index, int fd) {
        say(fd, std::to_string(index));
        return kWorkerDone;
    });
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(run.log_with("starts again"), "");
}

TEST(Supervisor, WithoutDrainAnEndIsFollowedByARestart) {
    SupervisorRun run(options_of(1), [](int, int) { return kWorkerDone; });
    EXPECT_NE(run.log_with("starts again"), "");
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, AWrongConfigurationEndsThemAll) {
    SupervisorRun run(options_of(2), [](int index, int fd) {
        if (index == 0) return ends_at_signal(1)(index, fd);
        return kWorkerUsage;
    });
    EXPECT_EQ(run.wait(), kWorkerUsage);
}

TEST(Supervisor, PassesBothStopSignalsOn) {
    SupervisorRun run(options_of(1), ends_at_signal(2));
    EXPECT_GT(run.worker_pid(), 0);
    run.signal(SIGINT);
    EXPECT_EQ(run.words(), "signal 15");
    run.signal(SIGTERM);
    EXPECT_EQ(run.words(), "signal 15");
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, PassesUsr1On) {
    SupervisorRun run(options_of(1), ends_at_signal(2));
    EXPECT_GT(run.worker_pid(), 0);
    run.signal(SIGUSR1);
    EXPECT_EQ(run.words(), "signal 10");
    run.signal(SIGTERM);
    EXPECT_EQ(run.words(), "signal 15");
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, StartsNoWorkerAgainThatEndsInTheQuiet) {
    SupervisorRun run(options_of(2), ends_at_signal(2));
    const pid_t first = run.worker_pid();
    const pid_t second = run.worker_pid();
    run.signal(SIGUSR1);
    EXPECT_EQ(run.words(), "signal 10");
    EXPECT_EQ(run.words(), "signal 10");
    ::kill(first, SIGKILL);
    EXPECT_NE(run.log_with("killed by signal 9"), "");
    ::kill(second, SIGTERM);
    EXPECT_EQ(run.words(), "signal 15");
    EXPECT_EQ(run.wait(), 0) << "both are done";
    EXPECT_EQ(run.words(), "") << "nobody else has begun";
}

TEST(Supervisor, KillsAWorkerThatOutlivesTheGrace) {
    SupervisorOptions options = options_of(2);
    options.grace = 20ms;
    SupervisorRun run(options, ends_at_signal(1000));
    const Watched one(run.worker_pid());
    const Watched two(run.worker_pid());
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_FALSE(one.alive());
    EXPECT_FALSE(two.alive());
}

TEST(Supervisor, TheSecondSignalShortensTheGrace) {
    SupervisorOptions options = options_of(1);
    options.grace = 1h;
    options.kill_after = 20ms;
    SupervisorRun run(options, ends_at_signal(1000));
    const Watched worker(run.worker_pid());
    run.signal(SIGTERM);
    EXPECT_EQ(run.words(), "signal 15");
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_FALSE(worker.alive());
}

TEST(Supervisor, AStopEndsTheWaitForARestart) {
    SupervisorOptions options = options_of(1);
    options.restart_base = 1h;
    options.restart_cap = 1h;
    SupervisorRun run(options, [](int, int) { return 1; });
    EXPECT_NE(run.log_with("starts again"), "");
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
}

TEST(Supervisor, AWorkerHasItsOwnGroupAndIsToldOfItsParentsDeath) {
    SupervisorRun run(options_of(1), [](int index, int fd) {
        say(fd, ::getpgrp() == ::getpid() ? "own group" : "shared group");
        return ends_at_signal(1)(index, fd);
    });
    EXPECT_EQ(run.words(), "own group");
    const Watched worker(run.worker_pid());
    run.signal(SIGKILL);
    EXPECT_EQ(run.words(), "signal 15");
    EXPECT_TRUE(worker.ends());
}

/// A worker with a guard and a child; says its pid, the guard's and the child's.
int work_with_guard(int, int fd) {
    SignalSource signals = SignalSource::install({SIGTERM}).value();
    Guard guard = Guard::start({}).value();
    guard.listen([fd](GuardEvent event) {
        const auto* ready = std::get_if<ChildProgress>(&event);
        if (ready != nullptr) say(fd, std::to_string(ready->progress.done));
    });
    say(fd, std::to_string(::getpid()));
    say(fd, std::to_string(guard.pid()));
    SpawnRequest request;
    request.argv = testing::child({"ignore-term"});
    request.attempt_id = "supervised-" + std::to_string(::getpid());
    if (!guard.spawn(request).ok()) return 1;
    pollfd poll_fd{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    ::poll(&poll_fd, 1, -1);
    return kWorkerDone;
}

TEST(Supervisor, AKilledWorkerLeavesNothingBehind) {
    SupervisorRun run(options_of(1), work_with_guard);
    const pid_t worker = run.worker_pid();
    const Watched guard(run.worker_pid());
    const Watched child(run.worker_pid());
    ASSERT_TRUE(child.alive());
    ::kill(worker, SIGKILL);
    EXPECT_TRUE(child.ends());
    EXPECT_TRUE(guard.ends());

    EXPECT_GT(run.worker_pid(), 0);
    const Watched second_guard(run.worker_pid());
    const Watched second_child(run.worker_pid());
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_FALSE(second_guard.alive());
    EXPECT_FALSE(second_child.alive());
}

}  // namespace
}  // namespace sekali::process
