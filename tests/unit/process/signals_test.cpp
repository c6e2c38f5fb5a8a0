#include "process/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>

#include <cerrno>

#include "unit/process/process_testing.hpp"

namespace sekali::process {
namespace {

bool readable(int fd, int timeout_ms) {
    pollfd poll_fd{.fd = fd, .events = POLLIN, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&poll_fd, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    return ready == 1;
}

TEST(StopLatch, FirstIsGracefulSecondAtOnce) {
    StopLatch latch;
    EXPECT_EQ(latch.level(), StopLevel::kRun);
    EXPECT_EQ(latch.feed(SIGUSR1), StopLevel::kRun);
    EXPECT_EQ(latch.feed(SIGTERM), StopLevel::kGraceful);
    EXPECT_EQ(latch.feed(SIGUSR1), StopLevel::kGraceful);
    EXPECT_EQ(latch.feed(SIGINT), StopLevel::kNow);
    EXPECT_EQ(latch.feed(SIGTERM), StopLevel::kNow);
    EXPECT_EQ(latch.level(), StopLevel::kNow);
}

TEST(SignalSource, GivesSignalsInOrderAndRestoresHandlers) {
    ::signal(SIGUSR1, SIG_IGN);
    {
        SignalSource source = SignalSource::install({SIGTERM, SIGUSR1}).value();
        EXPECT_FALSE(readable(source.fd(), 0));
        EXPECT_EQ(source.next().number, 0);
        ::raise(SIGUSR1);
        ::raise(SIGTERM);
        ::raise(SIGTERM);
        EXPECT_TRUE(readable(source.fd(), 0));
        EXPECT_EQ(source.next().number, SIGUSR1);
        const ReceivedSignal term = source.next();
        EXPECT_EQ(term.number, SIGTERM);
        EXPECT_FALSE(term.from_kernel);
        EXPECT_EQ(source.next().number, SIGTERM);
        EXPECT_EQ(source.next().number, 0);
    }
    struct sigaction now {};
    ::sigaction(SIGUSR1, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
    ::signal(SIGUSR1, SIG_DFL);
}

TEST(SignalSource, IsOneAtATime) {
    auto first = SignalSource::install({SIGTERM});
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(SignalSource::install({SIGUSR1}).ok());
    {
        const SignalSource moved = std::move(*first);
        EXPECT_FALSE(SignalSource::install({SIGUSR1}).ok());
    }
    EXPECT_TRUE(SignalSource::install({SIGUSR1}).ok());
}

TEST(SignalSource, AForkedChildStartsAnew) {
    SignalSource source = SignalSource::install({SIGTERM}).value();
    const pid_t pid = ::fork();
    if (pid == 0) {
        source.reset_in_child();
        auto own = SignalSource::install({SIGTERM});
        ::raise(SIGTERM);
        ::_exit(own.ok() && own->next().number == SIGTERM ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(source.next().number, 0) << "the child's signal is not the parent's";
}

TEST(SignalSource, TellsWhatTheTerminalSent) {
    int terminal = -1;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        auto source = SignalSource::install({SIGINT});
        const bool ready = source.ok() && ::write(STDOUT_FILENO, "ready\n", 6) == 6;
        const bool came = ready && readable(source->fd(), 30'000);
        const ReceivedSignal signal = came ? source->next() : ReceivedSignal{};
        ::_exit(signal.number == SIGINT && signal.from_kernel ? 0 : 1);
    }
    const UniqueFd master(terminal);
    EXPECT_EQ(testing::read_line(master.get()), "ready\r");
    constexpr char kCtrlC = 3;
    ASSERT_EQ(::write(master.get(), &kCtrlC, 1), 1);
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sekali::process
