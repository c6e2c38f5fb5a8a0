#include "backends/sqlite/gate.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/sqlite/gate_holder.hpp"
#include "base/clock.hpp"
#include "unit/sqlite/temp_database.hpp"

namespace sekali::sqlite {
namespace {

using namespace std::chrono_literals;

constexpr off_t kHead = 0;

/// Locks a byte of the gate as another process does.
Fd lock_byte(const std::string& path, off_t byte) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    EXPECT_EQ(::fcntl(fd.get(), F_OFD_SETLK, &lock), 0);
    return fd;
}

/// A child that is stopped while it has the turn.
class StoppedHolder {
 public:
    explicit StoppedHolder(const std::string& path) : pid_(::fork()) {
        if (pid_ == 0) {
            const Fd turn = lock_byte(path, Gate::kTurn);
            ::raise(SIGSTOP);
            ::_exit(0);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
        EXPECT_TRUE(WIFSTOPPED(status));
    }
    ~StoppedHolder() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

 private:
    pid_t pid_;
};

class GateTest : public ::testing::Test {
 protected:
    TempDatabase database_;
    std::string path_ = database_.path() + "-gate";
    Gate gate_ = Gate::open(path_).value();
};

TEST_F(GateTest, AStoppedWaiterAtTheHeadKeepsNobodyOut) {
    const Fd waiter = lock_byte(path_, kHead);
    EXPECT_FALSE(gate_.enter(base::steady_now()).value()) << "it may be about to have its turn";
    EXPECT_TRUE(gate_.enter(base::steady_now() + 30s).value());
    gate_.leave();
    EXPECT_TRUE(gate_.enter(base::steady_now()).value()) << "it is not waited for again";
    gate_.leave();
}

TEST_F(GateTest, TheTurnHasOneHolderWhoeverIsAtTheHead) {
    const Fd waiter = lock_byte(path_, kHead);
    ASSERT_TRUE(gate_.enter(base::steady_now() + 30s).value());
    Gate other = Gate::open(path_).value();
    EXPECT_FALSE(other.enter(base::steady_now() + 1s).value());
    gate_.leave();
    EXPECT_TRUE(other.enter(base::steady_now() + 30s).value());
}

TEST_F(GateTest, WhoeverWaitsInVainIsToldWhoHasTheTurn) {
    const StoppedHolder holder(path_);
    EXPECT_FALSE(gate_.enter(base::steady_now() + 10ms).value());
    const Error error = gate_kept(path_, "another process has it");
    const std::string pid = std::to_string(holder.pid());
    EXPECT_NE(error.message.find("process " + pid + " ("), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("which is stopped"), std::string::npos) << error.message;
    EXPECT_NE(error.hint.find("kill -CONT " + pid), std::string::npos) << error.hint;
}

TEST_F(GateTest, AHolderThatNobodyMaySeeIsNotNamed) {
    const Error error = gate_kept(path_, "another process has it");
    EXPECT_NE(error.message.find("another process has it"), std::string::npos) << error.message;
    EXPECT_EQ(error.applied, Applied::kNo);
    EXPECT_TRUE(error.retryable);
}

}  // namespace
}  // namespace sekali::sqlite
