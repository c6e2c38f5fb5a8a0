// What is left when a worker, its guard, or both die in the middle of everything.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "process/guard.hpp"
#include "process/strays.hpp"
#include "unit/process/process_testing.hpp"

namespace sekali::process {
namespace {

using testing::child;
using testing::GuardHarness;
using testing::Watched;

/// A lock as the one that proves a worker and its children dead once it can be had.
class AliveLock {
 public:
    AliveLock()
        : path_(std::filesystem::temp_directory_path() /
                ("sekali-alive-" + std::to_string(::getpid()))) {}
    ~AliveLock() { std::filesystem::remove(path_); }
    AliveLock(const AliveLock&) = delete;
    AliveLock& operator=(const AliveLock&) = delete;

    [[nodiscard]] UniqueFd take() const { return lock(F_OFD_SETLK); }
    /// Waits for the end of all that hold it.
    [[nodiscard]] UniqueFd wait() const { return lock(F_OFD_SETLKW); }

 private:
    [[nodiscard]] UniqueFd lock(int command) const {
        UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        struct flock whole {};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        if (::fcntl(file.get(), command, &whole) != 0) file.reset();
        return file;
    }
    std::filesystem::path path_;
};

void say(int fd, const std::string& line) {
    const std::string text = line + "\n";
    if (::write(fd, text.data(), text.size()) < 0) std::abort();
}

constexpr std::array kModes = {"ignore-term", "daemon", "bare-daemon"};
enum Descendant : std::size_t { kChild, kDaemon, kBareDaemon };

/// Has three children: one that ignores SIGTERM, one with a daemon, one whose daemon has lost its
/// environment as well. Says the guard's pid, then number and pid of the child and both daemons.
void work(const AliveLock& lock, int words) {
    UniqueFd alive = lock.take();
    if (!alive.valid()) ::_exit(1);
    Guard guard =
        Guard::start({.alive_fd = alive.get(), .leftover_grace = std::chrono::hours{1}}).value();
    guard.listen([words](GuardEvent event) {
        const auto* ready = std::get_if<ChildProgress>(&event);
        if (ready == nullptr) return;
        const auto number = static_cast<std::uint64_t>(ready->id) - 1;
        say(words, std::to_string(number) + " " + std::to_string(ready->progress.done));
    });
    say(words, std::to_string(guard.pid()));
    for (const char* mode : kModes) {
        SpawnRequest request;
        request.argv = child({mode});
        request.attempt_id = "attempt-1-of-" + std::to_string(::getppid());
        if (!guard.spawn(std::move(request)).ok()) ::_exit(1);
    }
    while (true)
        ::pause();
}

/// Starts as many children as it can, and says so for each.
void spawn_without_end(const AliveLock& lock, int words, const std::string& attempt_id) {
    UniqueFd alive = lock.take();
    if (!alive.valid()) ::_exit(1);
    Guard guard = Guard::start({.alive_fd = alive.get()}).value();
    guard.listen([words](GuardEvent event) {
        if (std::holds_alternative<ChildStarted>(event)) say(words, "started");
    });
    for (int i = 0; i < 200; ++i) {
        SpawnRequest request;
        request.argv = child({i % 2 == 0 ? "wait" : "daemon"});
        request.attempt_id = attempt_id;
        if (!guard.spawn(std::move(request)).ok()) ::_exit(1);
    }
    while (true)
        ::pause();
}

class WorkerDeath : public ::testing::Test {
 protected:
    ~WorkerDeath() override {
        for (const Watched& descendant : descendants_)
            static_cast<void>(descendant.kill());
    }

    /// `before` runs in the worker, first of all.
    void start_worker(const std::function<void()>& before = [] {}) {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        worker_ = ::fork();
        if (worker_ == 0) {
            before();
            work(lock_, ends[1]);
        }
        ::close(ends[1]);
        const UniqueFd words(ends[0]);
        guard_ = std::atoi(testing::read_line(words.get()).c_str());
        std::array<pid_t, kModes.size()> pids{};
        for (std::size_t i = 0; i < kModes.size(); ++i) {
            const std::string line = testing::read_line(words.get());
            ASSERT_GT(line.size(), 2U);
            pids.at(static_cast<std::size_t>(line[0] - '0')) = std::atoi(line.c_str() + 2);
        }
        for (const pid_t pid : pids)
            descendants_.emplace_back(pid);
        for (const Watched& descendant : descendants_)
            ASSERT_TRUE(descendant.alive());
    }
    void reap_worker() const { ::waitpid(worker_, nullptr, 0); }
    void expect_all_gone_with_the_lock() const {
        EXPECT_TRUE(lock_.wait().valid());
        for (const Watched& descendant : descendants_)
            EXPECT_FALSE(descendant.alive());
    }

    AliveLock lock_;
    pid_t worker_ = 0;
    pid_t guard_ = 0;
    std::vector<Watched> descendants_;
};

TEST_F(WorkerDeath, TheGuardEndsEveryDescendantBeforeTheLockIsFree) {
    start_worker();
    EXPECT_FALSE(lock_.take().valid());
    ::kill(worker_, SIGKILL);
    reap_worker();
    expect_all_gone_with_the_lock();
}

TEST_F(WorkerDeath, AKillOfItsProcessGroupSparesTheGuard) {
    start_worker([] { ::setpgid(0, 0); });
    ::kill(-worker_, SIGKILL);
    reap_worker();
    expect_all_gone_with_the_lock();
}

TEST_F(WorkerDeath, IsSeenThoughAnotherProcessHoldsItsDescriptors) {
    start_worker();
    // A process forked by a handler has a copy of the worker's end of the socket.
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, worker_, 0));
    std::vector<UniqueFd> copies;
    for (int fd = 3; fd < 32; ++fd) {
        copies.emplace_back(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, fd, 0)));
    }
    // The lock's descriptor is among the copies, so the processes themselves are waited for.
    ::kill(worker_, SIGKILL);
    reap_worker();
    for (const Watched& descendant : descendants_)
        EXPECT_TRUE(descendant.ends());
    EXPECT_TRUE(Watched(guard_).ends());
    ::close(pidfd);
}

TEST_F(WorkerDeath, StraysOfADeadWorkerAndADeadGuardAreFoundByTheirAttempt) {
    start_worker();
    const Watched guard(guard_);
    ::kill(worker_, SIGSTOP);
    ::kill(guard_, SIGKILL);
    ::kill(worker_, SIGKILL);
    reap_worker();
    EXPECT_TRUE(guard.ends());
    EXPECT_TRUE(descendants_[kChild].ends()) << "a child dies with its guard";
    EXPECT_TRUE(descendants_[kDaemon].alive());

    const std::string attempt = "attempt-1-of-" + std::to_string(::getpid());
    EXPECT_EQ(kill_strays(attempt.substr(0, attempt.size() - 1)).count, 0U);
    EXPECT_EQ(kill_strays(attempt + "0").count, 0U);
    EXPECT_TRUE(descendants_[kDaemon].alive());

    const StraysKilled killed = kill_strays(attempt);
    EXPECT_GE(killed.count, 1U);
    EXPECT_TRUE(killed.all_gone);
    EXPECT_FALSE(descendants_[kDaemon].alive());
    const StraysKilled again = kill_strays(attempt);
    EXPECT_EQ(again.count, 0U);
    EXPECT_TRUE(again.all_gone);
    EXPECT_TRUE(descendants_[kBareDaemon].alive())
        << "without its environment it cannot be found; only the guard could have ended it";
}

TEST_F(WorkerDeath, NothingOutlivesAWorkerKilledWhileItSpawns) {
    for (const int children : {1, 2, 5, 17, 40}) {
        const std::string attempt = std::to_string(::getpid()) + "-" + std::to_string(children);
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        worker_ = ::fork();
        if (worker_ == 0) spawn_without_end(lock_, ends[1], attempt);
        ::close(ends[1]);
        const UniqueFd words(ends[0]);
        for (int i = 0; i < children; ++i)
            ASSERT_EQ(testing::read_line(words.get()), "started");
        ::kill(worker_, SIGKILL);
        reap_worker();
        EXPECT_TRUE(lock_.wait().valid());
        EXPECT_EQ(kill_strays(attempt).count, 0U);
    }
}

TEST(GuardDeath, EndsAndReportsEveryChild) {
    GuardHarness harness;
    const ChildId stubborn = harness.spawn(child({"ignore-term"}));
    const ChildId with_daemon = harness.spawn(child({"daemon"}));
    const Watched one(static_cast<pid_t>(harness.wait_for<ChildProgress>(stubborn).progress.done));
    const Watched two(
        static_cast<pid_t>(harness.wait_for<ChildProgress>(with_daemon).progress.done));
    const ChildExited leaver = harness.run(child({"stubborn-grandchild"}));
    EXPECT_FALSE(leaver.all_gone);
    const Watched three(static_cast<pid_t>(leaver.output.control.progress.value().done));

    ::kill(harness.guard.pid(), SIGKILL);
    for (const ChildId id : {stubborn, with_daemon}) {
        const ChildExited exited = harness.wait_for<ChildExited>(id);
        EXPECT_TRUE(exited.guard_lost);
        EXPECT_TRUE(exited.all_gone);
    }
    harness.wait_for<ChildGone>(leaver.id);
    EXPECT_TRUE(harness.wait_for_loss().all_gone);
    for (const Watched* process : {&one, &two, &three})
        EXPECT_FALSE(process->alive());
    EXPECT_TRUE(harness.guard.lost());

    SpawnRequest request;
    request.argv = {"true"};
    request.attempt_id = "late";
    EXPECT_EQ(harness.guard.spawn(request).error().code, ErrorCode::kRefused);
}

TEST(GuardDeath, WhatWaitsToBeStartedNeverStarts) {
    GuardHarness harness;
    ::kill(harness.guard.pid(), SIGSTOP);
    std::vector<ChildId> ids;
    for (int i = 0; i < 100; ++i)
        ids.push_back(harness.spawn({"true"}));
    ::kill(harness.guard.pid(), SIGKILL);
    int never_started = 0;
    for (const ChildId id : ids) {
        const auto end = harness.wait_for_end(id);
        if (std::holds_alternative<SpawnFailed>(end)) {
            ++never_started;
        } else {
            EXPECT_TRUE(std::get<ChildExited>(end).guard_lost);
        }
    }
    EXPECT_GT(never_started, 0);
    EXPECT_TRUE(harness.wait_for_loss().all_gone);
}

}  // namespace
}  // namespace sekali::process
