#include "process/run_command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "unit/process/process_testing.hpp"

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using testing::child;
using testing::Watched;

/// Runs commands with a pipe as stdout, and with one on which the child says that it is ready.
class RunCommand : public ::testing::Test {
 protected:
    RunCommand() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        stdout_reader_.reset(ends[0]);
        saved_stdout_.reset(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[1]);
        EXPECT_EQ(::pipe(ends), 0);
        control_reader_.reset(ends[0]);
        control_writer_.reset(ends[1]);
        ::fcntl(control_reader_.get(), F_SETFD, FD_CLOEXEC);
    }
    ~RunCommand() override { restore_stdout(); }

    void restore_stdout() {
        if (saved_stdout_.valid()) ::dup2(saved_stdout_.get(), STDOUT_FILENO);
        saved_stdout_.reset();
    }
    /// What the command printed; ends the redirection.
    std::string printed() {
        restore_stdout();
        std::string text;
        char byte = 0;
        while (::read(stdout_reader_.get(), &byte, 1) == 1)
            text += byte;
        return text;
    }

    CommandOptions options_of(std::vector<std::string> argv, bool capture = false) const {
        CommandOptions options;
        options.argv = std::move(argv);
        options.env = {"PATH=/usr/bin:/bin",
                       "SEKALI_CONTROL_FD=" + std::to_string(control_writer_.get())};
        options.capture_stdout = capture;
        return options;
    }
    CommandResult run(const CommandOptions& options) {
        SignalSource signals = SignalSource::install({SIGTERM, SIGINT}).value();
        return run_command(options, stop_, signals).value();
    }
    CommandResult run(std::vector<std::string> argv) { return run(options_of(std::move(argv))); }

    /// Runs the command and, once it says that it is ready, does something meanwhile.
    CommandResult run_and(const CommandOptions& options, const std::function<void()>& meanwhile) {
        std::thread other([&] {
            const std::string line = testing::read_line(control_reader_.get());
            ready_pid_ = std::atoi(line.c_str() + line.find('/') + 1);
            meanwhile();
        });
        CommandResult result = run(options);
        other.join();
        return result;
    }

    CommandStop stop_ = CommandStop::create().value();
    UniqueFd stdout_reader_;
    UniqueFd control_reader_;
    UniqueFd control_writer_;
    pid_t ready_pid_ = 0;

 private:
    UniqueFd saved_stdout_;
};

TEST_F(RunCommand, GivesTheStatusThatEnvGives) {
    EXPECT_EQ(run({"true"}).exit_status, 0);
    EXPECT_EQ(run(child({"exit", "3"})).exit_status, 3);
    EXPECT_EQ(run(child({"exit", "255"})).exit_status, 255);
    EXPECT_EQ(run(child({"raise", "9"})).exit_status, 137);
    EXPECT_TRUE(run({"true"}).started);

    const CommandResult missing = run({"./no-such-command"});
    EXPECT_EQ(missing.exit_status, 127);
    EXPECT_FALSE(missing.started);
    EXPECT_EQ(missing.error, "cannot run ./no-such-command: No such file or directory");
    EXPECT_EQ(run({"no-such-command"}).exit_status, 127);
    EXPECT_EQ(run({"/etc/passwd"}).exit_status, 126);
    EXPECT_EQ(run({"/"}).exit_status, 126);
    EXPECT_EQ(testing::count_children_of(::getpid()), 0U);
}

TEST_F(RunCommand, InheritsStdout) {
    const CommandResult result = run(child({"print", "straight"}));
    EXPECT_EQ(result.stdout_bytes, "");
    EXPECT_EQ(printed(), "straight");
}

TEST_F(RunCommand, CapturesStdoutUpToTheCapAndPassesAllOfItOn) {
    std::string passed_on;
    std::thread reader([&] {
        char byte = 0;
        while (passed_on.size() < 300'000 && ::read(stdout_reader_.get(), &byte, 1) == 1) {
            passed_on += byte;
        }
    });
    CommandOptions options = options_of(child({"flood", "300000"}), true);
    options.stdout_cap = 1000;
    const CommandResult result = run(options);
    reader.join();
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.stdout_total, 300'000U);
    EXPECT_EQ(result.stdout_bytes, std::string(1000, 'x'));
    EXPECT_EQ(passed_on, std::string(300'000, 'x'));
}

TEST_F(RunCommand, AReaderThatLeavesDoesNotEndACapturedCommand) {
    stdout_reader_.reset();
    CommandOptions options = options_of(child({"flood", "300000"}), true);
    options.stdout_cap = 1 << 20;
    const CommandResult result = run(options);
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.stdout_bytes.size(), 300'000U);
}

TEST_F(RunCommand, PassesSignalsOn) {
    const CommandOptions options = options_of(child({"exit-on-term", "7"}));
    const CommandResult result = run_and(options, [] { ::kill(::getpid(), SIGTERM); });
    EXPECT_EQ(result.exit_status, 7);
    EXPECT_FALSE(result.stopped);
}

TEST_F(RunCommand, AStopIsSigtermFirst) {
    const CommandOptions options = options_of(child({"exit-on-term", "0"}));
    const CommandResult result = run_and(options, [this] { stop_.request(); });
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_TRUE(result.stopped);
}

TEST_F(RunCommand, AStopIsSigkillAfterTheGrace) {
    CommandOptions options = options_of(child({"ignore-term"}));
    options.grace = 20ms;
    const CommandResult result = run_and(options, [this] { stop_.request(); });
    EXPECT_EQ(result.exit_status, 137);
    EXPECT_TRUE(result.stopped);
}

TEST_F(RunCommand, AStopThatCameFirstLetsNothingStart) {
    stop_.request();
    const CommandResult result = run(child({"print", "ran"}));
    EXPECT_TRUE(result.stopped);
    EXPECT_FALSE(result.started);
    EXPECT_EQ(result.exit_status, 143);
    EXPECT_EQ(printed(), "");
}

TEST_F(RunCommand, AStopLeavesNoDaemonBehind) {
    std::optional<Watched> daemon;
    const CommandOptions options = options_of(child({"daemon"}));
    const CommandResult result = run_and(options, [&] {
        daemon.emplace(ready_pid_);
        stop_.request();
    });
    EXPECT_EQ(result.exit_status, 143);
    ASSERT_TRUE(daemon && daemon->found());
    EXPECT_FALSE(daemon->alive());
    EXPECT_EQ(testing::count_children_of(::getpid()), 0U);
}

TEST_F(RunCommand, WhatIsLeftInTheBackgroundDelaysNothingAndStays) {
    const CommandResult result = run(options_of(child({"stubborn-grandchild"}), true));
    EXPECT_EQ(result.exit_status, 0);
    const std::string line = testing::read_line(control_reader_.get());
    const pid_t pid = std::atoi(line.c_str() + line.find('/') + 1);
    const Watched grandchild(pid);
    EXPECT_TRUE(grandchild.alive());
    ::kill(pid, SIGKILL);
    EXPECT_TRUE(grandchild.ends());
}

}  // namespace
}  // namespace sekali::process
