#include "bench/idle_worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <thread>

#include "bench/clock.hpp"
#include "bench/figures.hpp"
#include "bench/jobs.hpp"
#include "bench/quiet_worker.hpp"
#include "sekali/client.hpp"

namespace sekali::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWakeUps = 200;
constexpr int kPatienceMs = 20'000;
/// Longer than a worker needs to find that nothing is left.
constexpr milliseconds kBetweenJobs{15};
constexpr milliseconds kSettling{1000};
constexpr milliseconds kIdleTime{3000};

std::int64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Failure trouble(std::string message) {
    return Failure({.code = ErrorCode::kRefused, .message = std::move(message)});
}

void make_pipe(process::UniqueFd& read_end, process::UniqueFd& write_end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw trouble("no file descriptor is left");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
}

/// Without its end; what there was when the other side was closed.
std::string read_line(int fd) {
    std::string line;
    for (char byte = 0;;) {
        const ssize_t got = ::read(fd, &byte, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || byte == '\n') return line;
        line += byte;
    }
}

}  // namespace

struct IdleWorker::Stamps {
    std::array<std::atomic<std::int64_t>, kMostJobs> started_ns;
};

IdleWorker::IdleWorker() {
    void* memory =
        ::mmap(nullptr, sizeof(Stamps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw trouble("there is no memory to share with a worker");
    stamps_ = static_cast<Stamps*>(memory);  // zeroes are stamps that were not made yet
    make_pipe(control_read_, control_write_);
    make_pipe(started_read_, started_write_);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw trouble("no process can be made for a worker");
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        live();
    }
    control_read_.reset();
    started_write_.reset();
}

IdleWorker::~IdleWorker() {
    end();
    ::munmap(stamps_, sizeof(Stamps));
}

void IdleWorker::end() {
    control_write_.reset();
    if (pid_ < 0) return;
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void IdleWorker::start(const std::string& url, std::size_t concurrency) {
    const std::string order = fmt::format("{} {}\n", concurrency, url);
    if (::write(control_write_.get(), order.data(), order.size()) !=
        static_cast<ssize_t>(order.size())) {
        throw trouble("a worker in another process is gone");
    }
}

/// The child's life: until the other end of its control pipe is closed.
void IdleWorker::live() {
    // What a terminal sends to the whole group is for the parent to answer.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    control_write_.reset();
    started_read_.reset();
    int status = 1;
    try {
        const auto handler = [this](Context& ctx) {
            const std::int64_t now = monotonic_ns();
            const std::string& number = ctx.job().payload;
            std::size_t job = 0;
            std::from_chars(number.data(), number.data() + number.size(), job);
            stamps_->started_ns.at(job) = now;
            return ::write(started_write_.get(), "s", 1) == 1 ? success() : fail("nobody listens");
        };
        const std::string order = read_line(control_read_.get());
        if (order.empty()) ::_exit(0);
        std::size_t url = 0;
        const std::size_t concurrency = std::stoul(order, &url);
        QuietWorker worker(order.substr(url + 1), concurrency, false, handler, {});
        std::jthread runner([&worker] { worker.run(); });
        static_cast<void>(read_line(control_read_.get()));
        worker.stop();
        status = 0;
    } catch (const std::exception&) {
        // The other side sees its end.
    }
    ::_exit(status);
}

std::int64_t IdleWorker::wait_for_start(std::size_t job) {
    pollfd entry{started_read_.get(), POLLIN, 0};
    char byte = 0;
    const bool told =
        ::poll(&entry, 1, kPatienceMs) == 1 && ::read(started_read_.get(), &byte, 1) == 1;
    const std::int64_t at = stamps_->started_ns.at(job);
    if (!told || at == 0) throw trouble("a worker in another process did not start a job");
    return at;
}

double IdleWorker::cpu_seconds() const {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

double IdleWorker::rss_mib() const {
    constexpr double kKibInMib = 1024;
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == "VmRSS:" && status >> kib) return kib / kKibInMib;
    }
    return 0;
}

void measure_idle_worker(Steps& steps, IdleWorker& worker, BenchResult& result) {
    steps.next(fmt::format("waking a worker in another process {} times", kWakeUps));
    const auto subject = steps.target().new_subject();
    worker.start(subject->url(), result.levels[3].concurrency);
    {
        Client client = Client::open(subject->url()).value();
        std::vector<double> latencies;
        std::vector<double> calls;
        for (std::size_t job = 0; job <= kWakeUps; ++job) {
            steps.check();
            const std::int64_t asked = monotonic_ns();
            const RawJob raw{std::string(kKind), std::to_string(job)};
            client.enqueue(raw, {.queue = std::string(kQueue)}).value();
            const std::int64_t stored = monotonic_ns();
            const std::int64_t started = worker.wait_for_start(job);
            std::this_thread::sleep_for(kBetweenJobs);
            if (job == 0) continue;  // it has to come up first
            latencies.push_back(static_cast<double>(started - asked) / 1e6);
            calls.push_back(static_cast<double>(stored - asked) / 1e6);
        }
        result.wake_up = {percentile(latencies, 0.5), percentile(latencies, 0.99),
                          percentile(calls, 0.5)};
    }
    steps.next("watching an idle worker");
    std::this_thread::sleep_for(kSettling);
    const double before = worker.cpu_seconds();
    const Stopwatch watch;
    std::this_thread::sleep_for(kIdleTime);
    result.idle.cpu_percent = 100 * (worker.cpu_seconds() - before) / watch.seconds();
    result.idle.rss_mib = worker.rss_mib();
    worker.end();
}

}  // namespace sekali::bench
