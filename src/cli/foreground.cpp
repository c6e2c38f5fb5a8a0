#include "cli/foreground.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <iterator>
#include <thread>
#include <utility>

namespace sekali::cli {

Foreground::Foreground(bool to_stderr)
    : signals_(process::SignalSource::install({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
                   .value()),
      stop_(process::CommandStop::create().value()) {
    if (!to_stderr) return;
    saved_stdout_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

Foreground::~Foreground() {
    if (saved_stdout_ < 0) return;
    ::dup2(saved_stdout_, STDOUT_FILENO);
    ::close(saved_stdout_);
}

void Foreground::wait(const std::function<void(std::stop_token)>& work,
                      const std::function<void(std::chrono::milliseconds)>& each) {
    using Clock = std::chrono::steady_clock;
    constexpr int kLookMs = 100;
    std::stop_source stop;
    const process::CommandStop done = process::CommandStop::create().value();
    const Clock::time_point begun = Clock::now();
    std::jthread watcher([&] {
        while (true) {
            pollfd wanted[] = {{signals_.fd(), POLLIN, 0}, {done.fd(), POLLIN, 0}};
            const int ready = ::poll(wanted, std::size(wanted), kLookMs);
            if (wanted[1].revents != 0) return;
            interrupted_by_ = ready > 0 ? signals_.next().number : 0;
            if (interrupted_by_ != 0) {
                stop.request_stop();
                return;
            }
            each(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun));
        }
    });
    work(stop.get_token());
    done.request();
}

process::CommandResult Foreground::run(process::CommandOptions options,
                                       const std::stop_token& lost) {
    const std::stop_callback end_command(lost, [this] { stop_.request(); });
    return process::run_command(options, stop_, signals_).value();
}

std::vector<std::string> environment_with(const std::vector<std::string>& assignments) {
    std::vector<std::string> variables;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::string_view name = text.substr(0, text.find('='));
        bool replaced = false;
        for (const std::string& assignment : assignments) {
            replaced = replaced || (assignment.starts_with(name) &&
                                    assignment.substr(name.size()).starts_with('='));
        }
        if (!replaced) variables.emplace_back(text);
    }
    variables.insert(variables.end(), assignments.begin(), assignments.end());
    return variables;
}

}  // namespace sekali::cli
