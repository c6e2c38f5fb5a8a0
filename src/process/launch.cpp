#include "process/launch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>

/// `clone` by the name under which no sanitizer wraps it: the wrappers take it for a fork.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace sekali::process {
namespace {

constexpr int kSignalCount = 64;
constexpr std::size_t kStackBytes = 32 * 1024;

/// The kernel's own signal types: its set has 64 bits, and the C library's wrappers are not meant
/// for a child that shares memory.
using KernelSignalSet = std::uint64_t;
struct KernelSigaction {
    void (*handler)(int) = nullptr;
    std::array<std::uint64_t, 7> rest{};
};

/// All that the child needs, prepared before it exists: it must not allocate.
struct ChildFrame {
    std::vector<const char*> programs;  ///< Places to look for the program, in order; ends in null.
    std::vector<const char*> argv;
    std::vector<const char*> shell_argv;  ///< For a script without `#!`; its second place is free.
    std::vector<const char*> env;
    const LaunchPlan* plan = nullptr;
    pid_t parent = 0;
    unsigned first_closed_fd = 0;
    KernelSignalSet signal_mask = 0;
    volatile int errno_value = 0;
};

std::vector<const char*> pointers(std::span<const std::string> strings) {
    std::vector<const char*> list;
    list.reserve(strings.size() + 1);
    for (const std::string& string : strings)
        list.push_back(string.c_str());
    list.push_back(nullptr);
    return list;
}

/// Where `execvp` would look, with the PATH that the child will have.
std::vector<std::string> program_places(const std::string& program,
                                        std::span<const std::string> env) {
    if (program.empty() || program.find('/') != std::string::npos) return {program};
    constexpr std::string_view kPath = "PATH=";
    std::string_view path = "/bin:/usr/bin";
    for (const std::string& variable : env) {
        if (!variable.starts_with(kPath)) continue;
        path = std::string_view(variable).substr(kPath.size());
        break;
    }
    std::vector<std::string> places;
    while (true) {
        const std::size_t colon = path.find(':');
        const std::string folder(path.substr(0, colon));
        places.push_back(folder.empty() ? "./" + program : folder + "/" + program);
        if (colon == std::string_view::npos) return places;
        path.remove_prefix(colon + 1);
    }
}

// The child runs on the parent's memory: what the sanitizers keep about it must stay as it is.
#define SEKALI_SHARED_MEMORY \
    __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

SEKALI_SHARED_MEMORY void reset_signals(const ChildFrame& frame) {
    for (int signal = 1; signal <= kSignalCount; ++signal) {
        KernelSigaction action;
        ::syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof(KernelSignalSet));
        // The parent may ignore SIGPIPE for itself; a child needs it to end with its reader.
        const bool keep = frame.plan->keep_ignored_signals && action.handler == SIG_IGN;
        if (keep && signal != SIGPIPE) continue;
        action = KernelSigaction{};
        ::syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof(KernelSignalSet));
    }
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &frame.signal_mask, nullptr,
              sizeof(KernelSignalSet));
}

SEKALI_SHARED_MEMORY bool set_up(const ChildFrame& frame) {
    const LaunchPlan& plan = *frame.plan;
    if (plan.own_group && ::syscall(SYS_setpgid, 0, 0) != 0) return false;
    if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return false;
    // The parent may have died before the line above.
    if (::syscall(SYS_getppid) != frame.parent) return false;
    for (const FdMapping& fd : plan.fds) {
        if (::syscall(SYS_dup3, fd.source, fd.target, 0) < 0) return false;
    }
    if (plan.only_mapped_fds) ::syscall(SYS_close_range, frame.first_closed_fd, ~0U, 0);
    return plan.cwd.empty() || ::syscall(SYS_chdir, plan.cwd.c_str()) == 0;
}

SEKALI_SHARED_MEMORY int execute(ChildFrame& frame) {
    bool denied = false;
    for (const char* program : frame.programs) {
        if (program == nullptr) break;
        ::syscall(SYS_execve, program, frame.argv.data(), frame.env.data());
        if (errno == ENOEXEC) {
            frame.shell_argv[1] = program;
            ::syscall(SYS_execve, "/bin/sh", frame.shell_argv.data(), frame.env.data());
        }
        if (errno == EACCES) {
            denied = true;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            return errno;
        }
    }
    return denied ? EACCES : errno;
}

SEKALI_SHARED_MEMORY int run_child(void* argument) {
    auto& frame = *static_cast<ChildFrame*>(argument);
    if (set_up(frame)) {
        reset_signals(frame);
        frame.errno_value = execute(frame);
    } else {
        frame.errno_value = errno != 0 ? errno : ECHILD;
    }
    ::syscall(SYS_exit_group, 127);
    return 127;
}

#undef SEKALI_SHARED_MEMORY

KernelSignalSet to_kernel(const sigset_t& set) {
    KernelSignalSet bits = 0;
    for (int signal = 1; signal <= kSignalCount; ++signal) {
        if (::sigismember(&set, signal) == 1) bits |= KernelSignalSet{1} << (signal - 1);
    }
    return bits;
}

}  // namespace

Launched launch(const LaunchPlan& plan) {
    const std::vector<std::string> places = program_places(plan.argv.front(), plan.env);
    ChildFrame frame;
    frame.programs = pointers(places);
    frame.argv = pointers(plan.argv);
    frame.env = pointers(plan.env);
    frame.shell_argv = {"sh", nullptr};
    frame.shell_argv.insert(frame.shell_argv.end(), frame.argv.begin() + 1, frame.argv.end());
    frame.plan = &plan;
    frame.parent = ::getpid();
    for (const FdMapping& fd : plan.fds) {
        frame.first_closed_fd =
            std::max(frame.first_closed_fd, static_cast<unsigned>(fd.target) + 1);
    }

    // A handler of the parent must not run in the child.
    sigset_t all;
    sigset_t previous;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &previous);
    if (plan.keep_ignored_signals) frame.signal_mask = to_kernel(previous);
    alignas(16) std::array<char, kStackBytes> stack;
    errno = 0;
    int pidfd = -1;
    const pid_t pid = ::__clone(run_child, stack.data() + stack.size(),
                                CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &frame, &pidfd);
    const int clone_errno = errno;
    ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);

    Launched launched;
    launched.errno_value = pid < 0 ? clone_errno : frame.errno_value;
    if (pid >= 0) launched.pidfd.reset(pidfd);
    if (launched.errno_value == 0) {
        launched.pid = pid;
    } else if (pid >= 0) {
        ::waitpid(pid, nullptr, 0);
    }
    return launched;
}

}  // namespace sekali::process
