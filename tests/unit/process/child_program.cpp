// What the tests run as a child: one behaviour for each first argument.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

extern char** environ;

namespace {

int control_fd() {
    const char* number = std::getenv("SEKALI_CONTROL_FD");
    return number != nullptr ? std::atoi(number) : 3;
}

void say(int fd, const std::string& text) {
    if (::write(fd, text.data(), text.size()) < 0) std::abort();
}

[[noreturn]] void wait_for_ever() {
    while (true)
        ::pause();
}

void list_open_fds() {
    for (int fd = 0; fd < 4096; ++fd) {
        if (::fcntl(fd, F_GETFD) >= 0) std::cout << fd << '\n';
    }
}

void print_signal_state() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigBlk") || line.starts_with("SigIgn")) std::cout << line << '\n';
    }
}

void print_all_ended_by_nul(char** strings) {
    for (; *strings != nullptr; ++strings)
        std::cout << *strings << '\0';
}

void flood(std::size_t bytes) {
    const std::string block(1 << 20, 'x');
    while (bytes > 0) {
        const ssize_t count = ::write(1, block.data(), std::min(bytes, block.size()));
        if (count < 0) std::_Exit(1);
        bytes -= static_cast<std::size_t>(count);
    }
}

/// The test goes on when this control line arrives.
void report_pid() {
    const std::string pid = std::to_string(::getpid());
    say(control_fd(), "progress " + pid + "/" + pid + "\n");
}

/// Leaves the group and the session as a daemon does.
void start_daemon(bool without_environment) {
    if (::fork() != 0) return;
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    if (!without_environment) {
        report_pid();
        wait_for_ever();
    }
    const char* const argv[] = {"child", "wait", nullptr};
    const char* const env[] = {nullptr};
    ::execve("/proc/self/exe", const_cast<char**>(argv), const_cast<char**>(env));
    ::_exit(1);
}

/// Leaves a process of the same group that holds the pipes, and returns when that is ready.
void start_grandchild(bool ignores_term) {
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    if (::fork() == 0) {
        if (ignores_term) ::signal(SIGTERM, SIG_IGN);
        report_pid();
        ::close(ready[0]);
        ::close(ready[1]);
        wait_for_ever();
    }
    ::close(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 0) std::abort();
}

[[noreturn]] void wait_ready() {
    report_pid();
    wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    const std::string value = argc > 2 ? argv[2] : "";
    if (mode == "argv") print_all_ended_by_nul(argv);
    if (mode == "env") print_all_ended_by_nul(environ);
    if (mode == "fds") list_open_fds();
    if (mode == "signals") print_signal_state();
    if (mode == "flood") flood(std::stoull(value));
    if (mode == "echo") std::cout << std::cin.rdbuf();
    if (mode == "stderr") std::cerr << value;
    if (mode == "control") say(control_fd(), value);
    if (mode == "exit") return std::stoi(value);
    if (mode == "raise") ::raise(std::stoi(value));
    if (mode == "print") std::cout << value;
    if (mode == "cwd") std::cout << ::get_current_dir_name();
    if (mode == "wait") wait_ready();
    if (mode == "ignore-term") {
        ::signal(SIGTERM, SIG_IGN);
        wait_ready();
    }
    if (mode == "exit-on-term") {
        static const int status = std::stoi(value);
        ::signal(SIGTERM, [](int) { ::_exit(status); });
        wait_ready();
    }
    if (mode == "close-stdout") {
        ::close(1);
        wait_ready();
    }
    if (mode == "grandchild" || mode == "stubborn-grandchild") {
        start_grandchild(mode == "stubborn-grandchild");
    }
    if (mode == "daemon" || mode == "bare-daemon") {
        start_daemon(mode == "bare-daemon");
        wait_for_ever();
    }
    return 0;
}
