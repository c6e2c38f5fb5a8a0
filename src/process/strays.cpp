#include "process/strays.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <vector>

#include "process/proc_table.hpp"
#include "process/unique_fd.hpp"

namespace sekali::process {
namespace {

using Clock = std::chrono::steady_clock;

struct Stray {
    UniqueFd pidfd;
    bool refused = false;  ///< It lives and could not be sent a signal.
};

bool carries_any(pid_t pid, const std::vector<std::string>& variables) {
    const std::string environment = read_environment(pid);
    return !environment.empty() && std::ranges::any_of(variables, [&](const std::string& variable) {
        return environment_has(environment, variable);
    });
}

/// Sends SIGKILL to all that are found now. A pidfd and a second look make sure that the number
/// still means the process that was found.
std::vector<Stray> kill_found(const std::vector<std::string>& variables) {
    std::vector<Stray> strays;
    for (const ProcessEntry& process : list_processes()) {
        if (process.pid == ::getpid() || !carries_any(process.pid, variables)) continue;
        Stray stray;
        stray.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
        if (!carries_any(process.pid, variables)) continue;
        const long sent = ::syscall(SYS_pidfd_send_signal, stray.pidfd.get(), SIGKILL, nullptr, 0);
        stray.refused = sent != 0 && errno != ESRCH;
        strays.push_back(std::move(stray));
    }
    return strays;
}

bool wait_for_end(const Stray& stray, Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd poll_fd{.fd = stray.pidfd.get(), .events = POLLIN, .revents = 0};
    const auto timeout = std::max(left, std::chrono::milliseconds::zero()).count();
    if (::poll(&poll_fd, 1, static_cast<int>(timeout)) != 1) return false;
    // Where this process has become its parent, nobody else takes its status.
    siginfo_t info{};
    ::waitid(P_PIDFD, static_cast<id_t>(stray.pidfd.get()), &info, WEXITED | WNOHANG);
    return true;
}

}  // namespace

StraysKilled kill_strays(std::string_view attempt_id, std::chrono::milliseconds patience) {
    const std::string id(attempt_id);
    return kill_strays_of({&id, 1}, patience);
}

StraysKilled kill_strays_of(std::span<const std::string> attempt_ids,
                            std::chrono::milliseconds patience) {
    std::vector<std::string> variables;
    for (const std::string& id : attempt_ids) {
        variables.push_back(std::string(kAttemptIdVariable) + "=" + id);
    }
    const Clock::time_point deadline = Clock::now() + patience;
    StraysKilled result;
    while (result.all_gone && !variables.empty()) {
        const std::vector<Stray> strays = kill_found(variables);
        if (strays.empty()) break;
        for (const Stray& stray : strays) {
            if (!stray.refused) ++result.count;
            if (stray.refused || !wait_for_end(stray, deadline)) result.all_gone = false;
        }
    }
    return result;
}

}  // namespace sekali::process
