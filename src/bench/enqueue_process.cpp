#include "bench/enqueue_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "bench/clock.hpp"
#include "bench/figures.hpp"
#include "bench/jobs.hpp"
#include "process/launch.hpp"

namespace sekali::bench {
namespace {

constexpr int kRuns = 50;

/// Without what would tell the command to use another store.
std::vector<std::string> plain_environment() {
    std::vector<std::string> env;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with("SEKALI_")) env.emplace_back(*entry);
    }
    return env;
}

/// Runs a program to its end and returns its exit status; -1 where there is none.
int run_to_end(const process::LaunchPlan& plan) {
    const process::Launched launched = process::launch(plan);
    if (launched.pid < 0) return -1;
    int status = 0;
    while (::waitpid(launched.pid, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

void measure_enqueue_process(Steps& steps, BenchResult& result) {
    steps.next(fmt::format("running sekali enqueue {} times", kRuns));
    const auto subject = steps.target().new_subject();
    const std::vector<std::string> argv{
        "/proc/self/exe",   "--url",
        subject->url(),     "enqueue",
        std::string(kKind), R"({"order_id":"order-1","cents":4200})",
        "--queue",          std::string(kQueue)};
    const std::vector<std::string> env = plain_environment();
    const process::UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    process::LaunchPlan plan;
    plan.argv = argv;
    plan.env = env;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        plan.fds.push_back({nowhere.get(), stream});
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) {
        steps.check();
        const Stopwatch watch;
        const int status = run_to_end(plan);
        times.push_back(watch.ms());
        if (status == 0) continue;
        throw Failure({.code = ErrorCode::kInternal,
                       .message = fmt::format("sekali enqueue ended with status {}", status)});
    }
    result.enqueue_process = {median(times), percentile(times, 0.9)};
}

}  // namespace sekali::bench
