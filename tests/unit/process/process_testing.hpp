#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "process/guard.hpp"
#include "process/proc_table.hpp"
#include "process/unique_fd.hpp"

namespace sekali::process::testing {

inline constexpr std::chrono::seconds kPatience{30};

/// A process that can be waited for although it is not a child of the test.
class Watched {
 public:
    explicit Watched(pid_t pid) : pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
    /// Whether it was there when the watch began.
    [[nodiscard]] bool found() const { return pidfd_.valid(); }
    [[nodiscard]] bool ends_within(std::chrono::milliseconds patience) const {
        pollfd poll_fd{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
        return !found() || ::poll(&poll_fd, 1, static_cast<int>(patience.count())) == 1;
    }
    [[nodiscard]] bool ends() const { return ends_within(kPatience); }
    /// Ends it for good, and says whether it did.
    [[nodiscard]] bool kill() const {
        return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0) == 0 && ends();
    }
    [[nodiscard]] bool alive() const { return !ends_within(std::chrono::milliseconds{0}); }

 private:
    UniqueFd pidfd_;
};

/// Reads from a descriptor up to the first newline or its end.
inline std::string read_line(int fd) {
    std::string line;
    char byte = 0;
    while (::read(fd, &byte, 1) == 1 && byte != '\n')
        line += byte;
    return line;
}

inline std::size_t count_children_of(pid_t parent) {
    return static_cast<std::size_t>(
        std::ranges::count(list_processes(), parent, &ProcessEntry::parent));
}

/// The test's own child program with its arguments.
inline std::vector<std::string> child(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), SEKALI_CHILD_PROGRAM);
    return arguments;
}

/// A guard and what it told.
class GuardHarness {
 public:
    explicit GuardHarness(GuardOptions options = {}) : guard(Guard::start(options).value()) {
        guard.listen([this](GuardEvent event) {
            const std::lock_guard lock(mutex_);
            events_.push_back(std::move(event));
            changed_.notify_all();
        });
    }
    ~GuardHarness() { guard.close(); }
    GuardHarness(const GuardHarness&) = delete;
    GuardHarness& operator=(const GuardHarness&) = delete;

    ChildId spawn(std::vector<std::string> argv, std::string stdin_bytes = {}) {
        SpawnRequest request;
        request.argv = std::move(argv);
        request.env = {"PATH=/usr/bin:/bin"};
        request.stdin_bytes = std::move(stdin_bytes);
        return spawn(std::move(request));
    }
    ChildId spawn(SpawnRequest request) {
        // Unique on the host: tests run side by side and kill what carries the id of an attempt.
        if (request.attempt_id.empty()) {
            request.attempt_id = std::to_string(::getpid()) + "-" + std::to_string(++made_);
        }
        return guard.spawn(std::move(request)).value();
    }

    /// The next event of this type about this child; fails the test when it does not come.
    template <typename Event>
    Event wait_for(ChildId id) {
        return take<Event>([id](const Event& event) { return event.id == id; });
    }
    /// How the child ended, if it began at all.
    std::variant<SpawnFailed, ChildExited> wait_for_end(ChildId id) {
        std::unique_lock lock(mutex_);
        const auto failed = [id](const GuardEvent& event) {
            const auto* typed = std::get_if<SpawnFailed>(&event);
            return typed != nullptr && typed->id == id;
        };
        const auto exited = [id](const GuardEvent& event) {
            const auto* typed = std::get_if<ChildExited>(&event);
            return typed != nullptr && typed->id == id;
        };
        const auto found = [&] {
            return std::ranges::any_of(events_, failed) || std::ranges::any_of(events_, exited);
        };
        EXPECT_TRUE(changed_.wait_for(lock, kPatience, found));
        const bool began = std::ranges::any_of(events_, exited);
        lock.unlock();
        if (began) return wait_for<ChildExited>(id);
        return wait_for<SpawnFailed>(id);
    }
    GuardLost wait_for_loss() {
        return take<GuardLost>([](const GuardLost&) { return true; });
    }
    ChildExited run(std::vector<std::string> argv, std::string stdin_bytes = {}) {
        return wait_for<ChildExited>(spawn(std::move(argv), std::move(stdin_bytes)));
    }

    Guard guard;

 private:
    template <typename Event>
    Event take(const std::function<bool(const Event&)>& wanted) {
        std::unique_lock lock(mutex_);
        std::optional<Event> found;
        const auto look = [&] {
            const auto event = std::ranges::find_if(events_, [&](const GuardEvent& candidate) {
                const auto* typed = std::get_if<Event>(&candidate);
                return typed != nullptr && wanted(*typed);
            });
            if (event == events_.end()) return false;
            found = std::get<Event>(std::move(*event));
            events_.erase(event);
            return true;
        };
        if (!changed_.wait_for(lock, kPatience, look)) {
            ADD_FAILURE() << "an event did not come";
            return {};
        }
        return *std::move(found);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<GuardEvent> events_;
    int made_ = 0;
};

}  // namespace sekali::process::testing
