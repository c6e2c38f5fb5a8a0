#include "base/faults.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/ids.hpp"

namespace sekali::base {
namespace {

/// Each statement runs in a fresh process, because a process reads its faults once.
class FaultsDeathTest : public ::testing::Test {
 protected:
    FaultsDeathTest() {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        unsetenv("SEKALI_FAULT_AT");
        unsetenv("SEKALI_FAULT_LOG");
    }
};

void set_faults(const char* at) {
    setenv("SEKALI_FAULT_AT", at, 1);
}

/// `exit` with a number that tells what `SEKALI_FAULT` gave.
[[noreturn]] void exit_with_hits(int times) {
    int hits = 0;
    for (int i = 0; i < times; ++i)
        hits = hits * 2 + (SEKALI_FAULT("claim.before") ? 1 : 0);
    std::_Exit(100 + hits);
}

TEST(Faults, NamesAreUnique) {
    std::set<std::string_view> names;
    for (const FaultPoint& point : kFaultPoints) {
        EXPECT_TRUE(names.insert(point.name).second) << point.name;
        EXPECT_FALSE(point.stands_for.empty()) << point.name;
    }
}

TEST(Faults, LookUpHappensAtCompileTime) {
    static_assert(kFaultPoints[fault_index("claim.after")].name == "claim.after");
    static_assert(fault_index("enqueue.before") == 0);
}

TEST_F(FaultsDeathTest, NothingHappensUnasked) {
    EXPECT_EXIT(exit_with_hits(3), ::testing::ExitedWithCode(100), "");
}

TEST_F(FaultsDeathTest, KillsAtTheFirstHit) {
    EXPECT_EXIT(
        {
            set_faults("claim.before");
            exit_with_hits(1);
        },
        ::testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FaultsDeathTest, KillsAtTheNthHitOnly) {
    EXPECT_EXIT(
        {
            set_faults("claim.before:3");
            exit_with_hits(2);
        },
        ::testing::ExitedWithCode(100), "");
    EXPECT_EXIT(
        {
            set_faults("claim.before:3:kill");
            exit_with_hits(3);
        },
        ::testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FaultsDeathTest, OtherPointsDoNotCount) {
    EXPECT_EXIT(
        {
            set_faults("claim.after:1,claim.before:2:error");
            exit_with_hits(3);
        },
        ::testing::ExitedWithCode(102), "");
}

TEST_F(FaultsDeathTest, ErrorsAreForTheCaller) {
    EXPECT_EXIT(
        {
            set_faults("claim.before:1:error,claim.before:3:error");
            exit_with_hits(4);
        },
        ::testing::ExitedWithCode(110), "");
}

TEST_F(FaultsDeathTest, RefusesTypingErrors) {
    const auto starts_with = [](const char* at) {
        set_faults(at);
        load_faults();
        std::_Exit(0);
    };
    const ::testing::ExitedWithCode usage(2);
    EXPECT_EXIT(starts_with("claim.befor"), usage, "no fault point is named \"claim.befor\"");
    EXPECT_EXIT(starts_with("claim.before:0"), usage, "must be a whole number from 1");
    EXPECT_EXIT(starts_with("claim.before:x"), usage, "must be a whole number from 1");
    EXPECT_EXIT(starts_with("claim.before:1:explode"), usage, "not kill, stop or error");
    EXPECT_EXIT(starts_with("claim.before,,"), usage, "no fault point is named \"\"");
    EXPECT_EXIT(starts_with("claim.before"), ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(starts_with(""), ::testing::ExitedWithCode(0), "");
}

TEST_F(FaultsDeathTest, LazyReadingRefusesTypingErrorsToo) {
    EXPECT_EXIT(
        {
            set_faults("nowhere");
            exit_with_hits(1);
        },
        ::testing::ExitedWithCode(2), "no fault point is named \"nowhere\"");
}

TEST_F(FaultsDeathTest, StopsTheProcessUntilItIsContinued) {
    EXPECT_EXIT(
        {
            const pid_t child = fork();
            if (child == 0) {
                set_faults("claim.before:2:stop");
                exit_with_hits(3);
            }
            int status = 0;
            waitpid(child, &status, WUNTRACED);
            if (!WIFSTOPPED(status)) std::_Exit(1);
            kill(child, SIGCONT);
            waitpid(child, &status, 0);
            std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
        },
        ::testing::ExitedWithCode(100), "");
}

class FaultLogDeathTest : public FaultsDeathTest {
 protected:
    FaultLogDeathTest()
        : path_(std::filesystem::temp_directory_path() / ("sekali-faults-" + random_hex(8))) {}
    ~FaultLogDeathTest() override { std::filesystem::remove(path_); }

    [[nodiscard]] std::string logged() const {
        std::ifstream file(path_);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }

    std::filesystem::path path_;
};

TEST_F(FaultLogDeathTest, EachProcessNamesEachPointOnce) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("SEKALI_FAULT_LOG", path_.c_str(), 1);
        for (int i = 0; i < 3; ++i)
            SEKALI_FAULT("claim.before");
        SEKALI_FAULT("commit.inside");
        const pid_t grandchild = fork();
        SEKALI_FAULT("claim.before");
        if (grandchild > 0) waitpid(grandchild, nullptr, 0);
        std::_Exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(logged(), "claim.before\ncommit.inside\nclaim.before\n");
}

TEST_F(FaultLogDeathTest, ThePointIsLoggedBeforeTheProcessDies) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("SEKALI_FAULT_LOG", path_.c_str(), 1);
        set_faults("ack.before");
        SEKALI_FAULT("ack.before");
        std::_Exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(logged(), "ack.before\n");
}

TEST_F(FaultLogDeathTest, AnUnwritableLogIsRefused) {
    EXPECT_EXIT(
        {
            setenv("SEKALI_FAULT_LOG", "/nowhere/at/all", 1);
            exit_with_hits(1);
        },
        ::testing::ExitedWithCode(2), "SEKALI_FAULT_LOG \"/nowhere/at/all\": No such file");
}

}  // namespace
}  // namespace sekali::base
