#include "process/guard.hpp"

#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "unit/process/process_testing.hpp"

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::child;
using testing::GuardHarness;
using testing::Watched;

TEST(Guard, RunsAProgramWithItsInputAndGivesItsOutput) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"echo"}), "hello\0world"s);
    EXPECT_GT(harness.wait_for<ChildStarted>(id).pid, 0);
    const ChildExited exited = harness.wait_for<ChildExited>(id);
    EXPECT_EQ(exited.wait_status, 0);
    EXPECT_TRUE(exited.all_gone);
    EXPECT_FALSE(exited.guard_lost);
    EXPECT_EQ(exited.output.stdout_bytes, "hello\0world"s);
    EXPECT_EQ(exited.output.stdout_total, 11U);
}

TEST(Guard, FeedsAnInputLargerThanThePipe) {
    GuardHarness harness;
    SpawnRequest request;
    request.argv = child({"echo"});
    for (int i = 0; i < 200'000; ++i)
        request.stdin_bytes += std::to_string(i) + '\n';
    request.stdout_cap = request.stdin_bytes.size();
    const std::string expected = request.stdin_bytes;
    const ChildExited exited = harness.wait_for<ChildExited>(harness.spawn(std::move(request)));
    EXPECT_TRUE(exited.output.stdout_bytes == expected);
}

TEST(Guard, AChildNeedNotReadItsInput) {
    GuardHarness harness;
    const ChildExited exited = harness.run(child({"exit", "0"}), std::string(1 << 20, 'x'));
    EXPECT_EQ(exited.wait_status, 0);
}

TEST(Guard, GivesExitStatusesAndSignals) {
    GuardHarness harness;
    EXPECT_EQ(WEXITSTATUS(harness.run(child({"exit", "137"})).wait_status), 137);
    EXPECT_EQ(WEXITSTATUS(harness.run(child({"exit", "255"})).wait_status), 255);
    const int killed = harness.run(child({"raise", std::to_string(SIGKILL)})).wait_status;
    ASSERT_TRUE(WIFSIGNALED(killed));
    EXPECT_EQ(WTERMSIG(killed), SIGKILL);
}

TEST(Guard, CapsStdoutAndReadsOn) {
    GuardHarness harness;
    constexpr std::uint64_t kGigabyte = 1ULL << 30;
    const ChildExited exited = harness.run(child({"flood", std::to_string(kGigabyte)}));
    EXPECT_EQ(exited.wait_status, 0);
    EXPECT_EQ(exited.output.stdout_total, kGigabyte);
    EXPECT_EQ(exited.output.stdout_bytes, std::string(64 * 1024, 'x'));
}

TEST(Guard, KeepsTheEndOfStderr) {
    GuardHarness harness;
    SpawnRequest request;
    request.argv = child({"stderr", std::string(100'000, 'a') + "the end\xFF"});
    request.stderr_tail_cap = 10;
    const ChildExited exited = harness.wait_for<ChildExited>(harness.spawn(std::move(request)));
    EXPECT_EQ(exited.output.stderr_tail, "aathe end\xFF");
    EXPECT_EQ(exited.output.stderr_total, 100'008U);
}

TEST(Guard, ReadsControlLinesAsTheyArrive) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"wait"}));
    const auto pid = static_cast<std::uint64_t>(harness.wait_for<ChildStarted>(id).pid);
    EXPECT_EQ(harness.wait_for<ChildProgress>(id).progress, (Progress{pid, pid}));
    harness.guard.signal_group(id, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(harness.wait_for<ChildExited>(id).wait_status));

    const ChildExited exited = harness.run(child({"control", "junk\xFF\nsnooze 5s\ncancel it"}));
    ASSERT_TRUE(exited.output.control.directive);
    EXPECT_EQ(std::get<CancelJob>(*exited.output.control.directive).reason, "it");
    EXPECT_EQ(exited.output.control.bad_lines, std::vector{"junk\xEF\xBF\xBD"s});
}

TEST(Guard, PassesArgumentsAndEnvironmentByteForByte) {
    GuardHarness harness;
    const std::vector<std::string> hostile = {"'; DROP TABLE jobs; --",
                                              "%s%n%x",
                                              "../x",
                                              "$(id)",
                                              "`id`",
                                              "a\nb",
                                              "",
                                              " ",
                                              "\xFF\xFE",
                                              "\x1B[31m",
                                              "-rf",
                                              std::string(100'000, 'k')};
    SpawnRequest request;
    request.argv = child({"argv"});
    request.argv.insert(request.argv.end(), hostile.begin(), hostile.end());
    request.stdout_cap = 1 << 20;
    std::string expected;
    for (const std::string& argument : request.argv)
        expected += argument + '\0';
    EXPECT_EQ(harness.wait_for<ChildExited>(harness.spawn(request)).output.stdout_bytes, expected);

    request.argv = child({"env"});
    request.env = {"SEKALI_ATTEMPT_ID=forged", "SEKALI_CONTROL_FD=7"};
    expected.clear();
    for (std::size_t i = 0; i < hostile.size(); ++i) {
        request.env.push_back("HOSTILE_" + std::to_string(i) + "=" + hostile[i]);
        expected += request.env.back() + '\0';
    }
    request.attempt_id = "the one";
    expected += "SEKALI_ATTEMPT_ID=the one\0SEKALI_CONTROL_FD=3\0"s;
    EXPECT_EQ(harness.wait_for<ChildExited>(harness.spawn(request)).output.stdout_bytes, expected);
}

TEST(Guard, PassesAnEnvironmentLargerThanAMessage) {
    GuardHarness harness;
    SpawnRequest request;
    request.argv = child({"env"});
    request.stdout_cap = 4 << 20;
    for (int i = 0; i < 12; ++i) {
        request.env.push_back("V" + std::to_string(i) + "=" + std::string(100'000, 'v'));
    }
    const ChildExited exited = harness.wait_for<ChildExited>(harness.spawn(request));
    EXPECT_EQ(exited.wait_status, 0);
    EXPECT_GT(exited.output.stdout_total, 1'200'000U);
}

TEST(Guard, ChildrenInheritNoDescriptorAboveThree) {
    const UniqueFd leaky(::open("/dev/null", O_RDONLY));
    const UniqueFd leaky_high(::fcntl(leaky.get(), F_DUPFD, 200));
    GuardHarness harness(GuardOptions{.alive_fd = leaky.get(), .leftover_grace = 5s});
    const UniqueFd leaky_later(::open("/dev/null", O_RDONLY));
    EXPECT_EQ(harness.run(child({"fds"})).output.stdout_bytes, "0\n1\n2\n3\n");
}

TEST(Guard, ChildrenHaveDefaultSignalsAndNoTerminal) {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGUSR2, SIG_IGN);
    sigset_t blocked;
    sigset_t previous;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &blocked, &previous);
    {
        GuardHarness harness;
        EXPECT_EQ(harness.run(child({"signals"})).output.stdout_bytes,
                  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    }
    ::sigprocmask(SIG_SETMASK, &previous, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGUSR2, SIG_DFL);
}

TEST(Guard, RunsInTheFolderAskedFor) {
    GuardHarness harness;
    SpawnRequest request;
    request.argv = child({"cwd"});
    request.cwd = "/";
    EXPECT_EQ(harness.wait_for<ChildExited>(harness.spawn(request)).output.stdout_bytes, "/");
    request.cwd = "/no/such/folder";
    EXPECT_EQ(harness.wait_for<SpawnFailed>(harness.spawn(request)).errno_value, ENOENT);
}

TEST(Guard, SearchesThePathOfTheChild) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("sekali-path-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "denied");
    std::ofstream(folder / "script") << "echo \"no shebang $1\"\n";
    std::filesystem::permissions(folder / "script", std::filesystem::perms::owner_all);
    std::ofstream(folder / "denied" / "script") << "exit 1\n";

    GuardHarness harness;
    SpawnRequest request;
    request.argv = {"script", "works"};
    request.env = {"PATH=/no/such:" + (folder / "denied").string() + ":" + folder.string()};
    EXPECT_EQ(harness.wait_for<ChildExited>(harness.spawn(request)).output.stdout_bytes,
              "no shebang works\n");
    request.env = {"PATH=/no/such:" + (folder / "denied").string()};
    EXPECT_EQ(harness.wait_for<SpawnFailed>(harness.spawn(request)).errno_value, EACCES);
    std::filesystem::remove_all(folder);
}

TEST(Guard, TellsWhenAProgramCannotRun) {
    GuardHarness harness;
    const auto failed = harness.wait_for<SpawnFailed>(harness.spawn({"./no-such-program"}));
    EXPECT_EQ(failed.errno_value, ENOENT);
    EXPECT_EQ(failed.message, "cannot run ./no-such-program: No such file or directory");
    EXPECT_EQ(harness.wait_for<SpawnFailed>(harness.spawn({"/etc/passwd"})).errno_value, EACCES);
    SpawnRequest too_big;
    too_big.argv = child({"argv", std::string(1 << 20, 'x')});
    EXPECT_EQ(harness.wait_for<SpawnFailed>(harness.spawn(too_big)).errno_value, E2BIG);
    EXPECT_EQ(testing::count_children_of(harness.guard.pid()), 0U);
}

TEST(Guard, RefusesWhatNoExecCouldTake) {
    GuardHarness harness;
    const auto code_of = [&](SpawnRequest request) {
        return harness.guard.spawn(std::move(request)).error().code;
    };
    SpawnRequest request;
    request.attempt_id = "a";
    EXPECT_EQ(code_of(request), ErrorCode::kUsage);
    request.argv = {"a\0b"s};
    EXPECT_EQ(code_of(request), ErrorCode::kUsage);
    request.argv = {"true"};
    request.env = {"A=\0"s};
    EXPECT_EQ(code_of(request), ErrorCode::kUsage);
    request.env.clear();
    request.attempt_id.clear();
    EXPECT_EQ(code_of(request), ErrorCode::kUsage);
}

TEST(Guard, AClosedStdoutIsNoEnd) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"close-stdout"}));
    harness.wait_for<ChildProgress>(id);
    harness.guard.signal_group(id, SIGTERM);
    EXPECT_EQ(WTERMSIG(harness.wait_for<ChildExited>(id).wait_status), SIGTERM);
}

TEST(Guard, AChildMayIgnoreSigtermButNotSigkill) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"ignore-term"}));
    harness.wait_for<ChildProgress>(id);
    harness.guard.signal_group(id, SIGTERM);
    harness.guard.signal_group(id, SIGKILL);
    EXPECT_EQ(WTERMSIG(harness.wait_for<ChildExited>(id).wait_status), SIGKILL);
}

TEST(Guard, AStoppedChildTakesItsSigterm) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"exit-on-term", "75"}));
    harness.wait_for<ChildProgress>(id);
    harness.guard.signal_group(id, SIGSTOP);
    harness.guard.signal_group(id, SIGTERM);
    EXPECT_EQ(WEXITSTATUS(harness.wait_for<ChildExited>(id).wait_status), 75);
}

/// A child that left a grandchild with its pipes open.
struct LeftBehind {
    ChildExited exited;
    Watched grandchild;
};
LeftBehind leave_grandchild(GuardHarness& harness, const char* mode) {
    ChildExited exited = harness.run(child({mode}));
    const auto pid = static_cast<pid_t>(exited.output.control.progress.value_or(Progress{}).done);
    return {std::move(exited), Watched(pid)};
}

TEST(Guard, AGrandchildThatHoldsThePipesDelaysNothing) {
    GuardHarness harness(GuardOptions{.alive_fd = -1, .leftover_grace = 1h});
    const LeftBehind left = leave_grandchild(harness, "stubborn-grandchild");
    EXPECT_EQ(left.exited.wait_status, 0);
    EXPECT_FALSE(left.exited.all_gone);
    EXPECT_TRUE(left.grandchild.alive());
}

TEST(Guard, KillsAGrandchildThatIgnoresSigtermAfterTheGrace) {
    GuardHarness harness(GuardOptions{.alive_fd = -1, .leftover_grace = 50ms});
    const LeftBehind left = leave_grandchild(harness, "stubborn-grandchild");
    EXPECT_TRUE(left.grandchild.ends());
    harness.wait_for<ChildGone>(left.exited.id);
    EXPECT_EQ(testing::count_children_of(harness.guard.pid()), 0U);
}

TEST(Guard, AskedToStopBeforeItStartedItNeverStarts) {
    GuardHarness harness;
    std::vector<ChildId> ids;
    for (int i = 0; i < 200; ++i)
        ids.push_back(harness.spawn(child({"wait"})));
    for (const ChildId id : ids)
        harness.guard.signal_group(id, SIGKILL);
    int never_started = 0;
    for (const ChildId id : ids) {
        const auto end = harness.wait_for_end(id);
        if (const auto* failed = std::get_if<SpawnFailed>(&end)) {
            EXPECT_EQ(failed->errno_value, ECANCELED);
            ++never_started;
        } else {
            EXPECT_EQ(WTERMSIG(std::get<ChildExited>(end).wait_status), SIGKILL);
        }
    }
    EXPECT_GT(never_started, 0);
}

TEST(Guard, AStoppedChildIsGoneOnlyWithItsDaemons) {
    GuardHarness harness;
    const ChildId id = harness.spawn(child({"daemon"}));
    const Watched daemon(static_cast<pid_t>(harness.wait_for<ChildProgress>(id).progress.done));
    ASSERT_TRUE(daemon.alive());
    harness.guard.signal_group(id, SIGTERM);
    if (!harness.wait_for<ChildExited>(id).all_gone) harness.wait_for<ChildGone>(id);
    EXPECT_FALSE(daemon.alive());
}

TEST(Guard, LeavesNoZombieAfterManyChildren) {
    GuardHarness harness;
    const auto start = std::chrono::steady_clock::now();
    std::vector<ChildId> ids;
    for (int i = 0; i < 500; ++i)
        ids.push_back(harness.spawn({"/bin/true"}));
    for (const ChildId id : ids)
        EXPECT_TRUE(harness.wait_for<ChildExited>(id).all_gone);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    RecordProperty("children_per_second", static_cast<int>(500 / seconds.count()));
    EXPECT_EQ(testing::count_children_of(harness.guard.pid()), 0U);
}

TEST(Guard, IsRefusedInAProcessWithThreads) {
    std::mutex hold;
    hold.lock();
    std::thread other([&] { const std::lock_guard lock(hold); });
    const auto guard = Guard::start({});
    hold.unlock();
    other.join();
    ASSERT_FALSE(guard.ok());
    EXPECT_EQ(guard.error().code, ErrorCode::kInternal);
}

TEST(Guard, CloseEndsEverything) {
    pid_t guard_pid = 0;
    std::optional<Watched> daemon;
    {
        GuardHarness harness;
        guard_pid = harness.guard.pid();
        const ChildId id = harness.spawn(child({"bare-daemon"}));
        daemon.emplace(static_cast<pid_t>(harness.wait_for<ChildProgress>(id).progress.done));
        ASSERT_TRUE(daemon->alive());
    }
    EXPECT_FALSE(daemon->alive());
    EXPECT_FALSE(Watched(guard_pid).found()) << "not even a zombie";
}

}  // namespace
}  // namespace sekali::process
