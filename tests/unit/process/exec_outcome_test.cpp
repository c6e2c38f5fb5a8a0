#include "process/exec_outcome.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "base/limits.hpp"

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using Directive = std::optional<std::variant<Snooze, RetryIn, CancelJob>>;

// As <sys/wait.h> packs them on Linux.
constexpr int exited(int status) {
    return status << 8;
}
constexpr int killed(int signal) {
    return signal;
}

constexpr StopRecord kNotStopped{};
constexpr StopRecord kTimedOut{StopReason::kTimeout, true, false};
constexpr StopRecord kKilled{StopReason::kShutdown, true, true};

struct Row {
    const char* name;
    int wait_status;
    Directive directive;
    StopRecord stop;
    ExecResult result;
    bool nothing_applied;
    std::optional<std::chrono::milliseconds> delay;
    const char* error;
};

const Row kRows[] = {
    // Statuses.
    {"0", exited(0), {}, kNotStopped, ExecResult::kSuccess, false, {}, ""},
    {"1", exited(1), {}, kNotStopped, ExecResult::kRetryable, false, {}, "exit status 1"},
    {"65", exited(65), {}, kNotStopped, ExecResult::kPermanent, false, {}, "exit status 65"},
    {"75", exited(75), {}, kNotStopped, ExecResult::kRetryable, true, {}, "exit status 75"},
    {"126", exited(126), {}, kNotStopped, ExecResult::kRetryable, false, {}, "exit status 126"},
    {"137", exited(137), {}, kNotStopped, ExecResult::kRetryable, false, {}, "exit status 137"},
    {"255", exited(255), {}, kNotStopped, ExecResult::kRetryable, false, {}, "exit status 255"},
    // Signals that sekali did not send.
    {"SEGV",
     killed(SIGSEGV),
     {},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 11 (SIGSEGV)"},
    {"KILL",
     killed(SIGKILL),
     {},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 9 (SIGKILL)"},
    {"TERM",
     killed(SIGTERM),
     {},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 15 (SIGTERM)"},
    {"core",
     killed(SIGABRT) | 0x80,
     {},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 6 (SIGABRT)"},
    {"realtime",
     killed(40),
     {},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 40"},
    // Stopped by sekali.
    {"TERM sent",
     killed(SIGTERM),
     {},
     kTimedOut,
     ExecResult::kStopped,
     false,
     {},
     "killed by signal 15 (SIGTERM)"},
    {"KILL sent",
     killed(SIGKILL),
     {},
     kKilled,
     ExecResult::kStopped,
     false,
     {},
     "killed by signal 9 (SIGKILL)"},
    {"KILL not sent",
     killed(SIGKILL),
     {},
     kTimedOut,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 9 (SIGKILL)"},
    {"SEGV in its clean-up",
     killed(SIGSEGV),
     {},
     kTimedOut,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 11 (SIGSEGV)"},
    {"0 after TERM", exited(0), {}, kTimedOut, ExecResult::kSuccess, false, {}, ""},
    {"65 after TERM",
     exited(65),
     {},
     kTimedOut,
     ExecResult::kPermanent,
     false,
     {},
     "exit status 65"},
    {"75 after TERM", exited(75), {}, kTimedOut, ExecResult::kStopped, true, {}, "exit status 75"},
    {"143 after TERM",
     exited(143),
     {},
     kTimedOut,
     ExecResult::kStopped,
     false,
     {},
     "exit status 143"},
    // Control lines.
    {"snooze 0", exited(0), Snooze{5s}, kNotStopped, ExecResult::kSnooze, true, 5s, ""},
    {"snooze 75", exited(75), Snooze{5s}, kNotStopped, ExecResult::kSnooze, true, 5s, ""},
    {"snooze 75 after TERM", exited(75), Snooze{5s}, kTimedOut, ExecResult::kSnooze, true, 5s, ""},
    {"snooze 1",
     exited(1),
     Snooze{5s},
     kNotStopped,
     ExecResult::kRetryable,
     false,
     {},
     "exit status 1"},
    {"snooze 65",
     exited(65),
     Snooze{5s},
     kNotStopped,
     ExecResult::kPermanent,
     false,
     {},
     "exit status 65"},
    {"snooze SEGV",
     killed(SIGSEGV),
     Snooze{5s},
     kNotStopped,
     ExecResult::kCrashed,
     false,
     {},
     "killed by signal 11 (SIGSEGV)"},
    {"retry-in 0", exited(0), RetryIn{9s}, kNotStopped, ExecResult::kRetryable, true, 9s,
     "exit status 0"},
    {"retry-in 75", exited(75), RetryIn{9s}, kNotStopped, ExecResult::kRetryable, true, 9s,
     "exit status 75"},
    {"retry-in 1", exited(1), RetryIn{9s}, kNotStopped, ExecResult::kRetryable, false, 9s,
     "exit status 1"},
    {"retry-in 65",
     exited(65),
     RetryIn{9s},
     kNotStopped,
     ExecResult::kPermanent,
     false,
     {},
     "exit status 65"},
    {"cancel 0", exited(0), CancelJob{"why"}, kNotStopped, ExecResult::kCancel, false, {}, ""},
    {"cancel 75", exited(75), CancelJob{"why"}, kNotStopped, ExecResult::kCancel, true, {}, ""},
    {"cancel 1",
     exited(1),
     CancelJob{"why"},
     kNotStopped,
     ExecResult::kRetryable,
     false,
     {},
     "exit status 1"},
};

TEST(ExecOutcome, MapsEveryEnd) {
    for (const Row& row : kRows) {
        ControlReport control;
        control.directive = row.directive;
        const ExecOutcome outcome =
            map_exec_end({.wait_status = row.wait_status, .guard_lost = false, .stderr_tail = {}},
                         control, row.stop);
        EXPECT_EQ(outcome.result, row.result) << row.name;
        EXPECT_EQ(outcome.nothing_applied, row.nothing_applied) << row.name;
        EXPECT_EQ(outcome.delay, row.delay) << row.name;
        EXPECT_EQ(outcome.error, row.error) << row.name;
        EXPECT_EQ(outcome.stopped_by, row.stop.reason) << row.name;
        EXPECT_EQ(outcome.reason, outcome.result == ExecResult::kCancel ? "why" : "") << row.name;
    }
}

TEST(ExecOutcome, SpeaksWithTheEndOfStderr) {
    const auto error_of = [](std::string_view tail) {
        return map_exec_end({.wait_status = exited(1), .guard_lost = false, .stderr_tail = tail},
                            {}, {})
            .error;
    };
    EXPECT_EQ(error_of("connection refused\n\n"), "connection refused");
    EXPECT_EQ(error_of(" \n"), "exit status 1");
    EXPECT_EQ(error_of("bad \xFF byte"), "bad \xEF\xBF\xBD byte");
    const std::string cut = error_of(std::string(3 * base::kMaxErrorBytes, 'x'));
    EXPECT_EQ(cut.size(), base::kMaxErrorBytes);
    EXPECT_TRUE(cut.starts_with("\xE2\x80\xA6x"));
}

TEST(ExecOutcome, GuardLossIsNoVerdictOnTheChild) {
    const ExecOutcome outcome =
        map_exec_end({.wait_status = 0, .guard_lost = true, .stderr_tail = {}}, {}, {});
    EXPECT_EQ(outcome.result, ExecResult::kGuardLost);
    EXPECT_FALSE(outcome.nothing_applied);
}

TEST(ExecOutcome, AProgramThatNeverRanAppliedNothing) {
    const ExecOutcome outcome = map_spawn_failure("./charge.sh", ENOENT);
    EXPECT_EQ(outcome.result, ExecResult::kNotStarted);
    EXPECT_TRUE(outcome.nothing_applied);
    EXPECT_EQ(outcome.error, "cannot run ./charge.sh: No such file or directory");
}

}  // namespace
}  // namespace sekali::process
