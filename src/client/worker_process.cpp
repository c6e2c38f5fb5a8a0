#include "client/worker_process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "client/worker_core.hpp"
#include "client/worker_runtime.hpp"
#include "process/guard.hpp"
#include "process/signals.hpp"
#include "process/supervisor.hpp"
#include "process/unique_fd.hpp"

namespace sekali::client {
namespace {

using observe::LogLevel;

constexpr int kExitDone = 0;
constexpr int kExitUnsettled = 1;
/// For what a supervised worker has to do behind its own grace.
constexpr std::chrono::milliseconds kSupervisorMargin{5000};
/// How many ready jobs are looked at to name the kinds that nobody here handles.
constexpr std::size_t kUnhandledSample = 1000;

Error no_descriptor() {
    Error error;
    error.code = ErrorCode::kRefused;
    error.message = "no file descriptor is left";
    error.retryable = true;
    return error;
}

/// Turns signals into requests to stop or to be quiet, on a thread of its own.
class SignalWatch {
 public:
    SignalWatch(process::SignalSource& signals, WorkerRuntime& runtime)
        : signals_(signals), runtime_(runtime), end_(::eventfd(0, EFD_CLOEXEC)) {
        if (!end_.valid()) throw Failure(no_descriptor());
        thread_ = std::thread([this] { watch(); });
    }
    ~SignalWatch() {
        ::eventfd_write(end_.get(), 1);
        thread_.join();
    }
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

 private:
    void watch() {
        process::StopLatch latch;
        while (true) {
            std::array<pollfd, 2> ready{{{signals_.fd(), POLLIN, 0}, {end_.get(), POLLIN, 0}}};
            ::poll(ready.data(), ready.size(), -1);
            if (ready[1].revents != 0) return;
            for (int signal = signals_.next().number; signal != 0;
                 signal = signals_.next().number) {
                if (signal == SIGUSR1) runtime_.quiet();
                switch (latch.feed(signal)) {
                    case process::StopLevel::kRun:
                        break;
                    case process::StopLevel::kGraceful:
                        runtime_.stop();
                        break;
                    case process::StopLevel::kNow:
                        runtime_.stop_now();
                        break;
                }
            }
        }
    }

    process::SignalSource& signals_;
    WorkerRuntime& runtime_;
    process::UniqueFd end_;
    std::thread thread_;
};

/// Proof of life, from a store that is closed again: the guard must be forked before any thread.
Result<Liveness> prove_life(const std::string& url, const std::string& worker) {
    const auto backend = open_backend(url);
    if (!backend.ok()) return backend.error();
    return (*backend)->hold_liveness(worker);
}

/// Replaces this process by a fresh one of the same program and arguments, which ends every thread
/// of it. Returns when the kernel refuses.
void start_again() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string line{std::istreambuf_iterator<char>(file), {}};
    std::vector<char*> arguments;
    for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) {
        arguments.push_back(line.data() + at);
    }
    arguments.push_back(nullptr);
    ::execv("/proc/self/exe", arguments.data());
}

std::vector<std::string> handled_kinds(const RuntimeParts& parts) {
    std::set<std::string> kinds;
    for (const auto& [kind, handler] : parts.handlers)
        kinds.insert(kind);
    for (const auto& [kind, settings] : parts.settings) {
        if (!settings.exec.empty() || !settings.http.empty()) kinds.insert(kind);
    }
    return {kinds.begin(), kinds.end()};
}

/// Kinds of ready jobs in the worker's queues that it has no handler for.
std::set<std::string> unhandled_kinds(Backend& backend, const WorkerOptions& options,
                                      const std::vector<std::string>& handled) {
    std::set<std::string> kinds;
    const auto read = backend.executor().read([&](engine::Tables& tables) {
        for (const std::string& queue : options.queues) {
            engine::JobFilter filter;
            filter.ns = options.ns;
            filter.queue = queue;
            filter.state = engine::to_string(engine::JobState::kReady);
            filter.limit = kUnhandledSample;
            for (const engine::JobRow& row : tables.list_jobs(filter).items) {
                kinds.insert(row.job.kind);
            }
        }
    });
    if (!read.ok()) return {};
    for (const std::string& kind : handled)
        kinds.erase(kind);
    return kinds;
}

/// One worker in this process, from its guard to its exit status.
class WorkerProcess {
 public:
    explicit WorkerProcess(const WorkerProcessPlan& plan)
        : plan_(plan), log_(std::make_shared<observe::LogWriter>(plan.log)) {}

    int run(bool supervised);

 private:
    RuntimeParts make_parts(process::Guard& guard, const std::string& id);
    void greet(const RuntimeParts& parts) const;
    int finish(const RuntimeExit& end, Backend& backend, bool supervised) const;

    const WorkerProcessPlan& plan_;
    std::shared_ptr<const observe::LogWriter> log_;
    std::vector<std::string> handled_;
    std::optional<Worker> worker_;  ///< Handlers may refer to it.
};

int WorkerProcess::run(bool supervised) {
    const std::string id = base::random_hex(8);
    // First of all, so that a stop while the store is being opened is a stop like every other.
    auto signals = process::SignalSource::install({SIGTERM, SIGINT, SIGUSR1}).value();
    const Liveness life = prove_life(plan_.url, id).value();
    auto guard = process::Guard::start({.alive_fd = life.descriptor}).value();
    // A handler that writes into a closed socket shall get an error; children of the guard are not
    // touched by it.
    std::signal(SIGPIPE, SIG_IGN);

    RuntimeParts parts = make_parts(guard, id);
    handled_ = handled_kinds(parts);
    const std::shared_ptr<Backend> backend = parts.backend;
    greet(parts);
    auto runtime = WorkerRuntime::create(std::move(parts)).value();
    RuntimeExit end;
    {
        const SignalWatch watch(signals, *runtime);
        end = runtime->run();
    }
    const int status = finish(end, *backend, supervised);
    if (status == process::kWorkerRecycle && !supervised) {
        guard.close();
        start_again();
    }
    // A thread that is stuck in a handler cannot be waited for, and must not see what it uses go.
    if (end.stuck) {
        guard.close();
        std::_Exit(status);
    }
    return status;
}

RuntimeParts WorkerProcess::make_parts(process::Guard& guard, const std::string& id) {
    auto client =
        Client::open(plan_.url, {.ns = plan_.options.ns, .max_payload = plan_.options.max_payload})
            .value();
    worker_ = internal::WorkerAccess::make(
        std::make_unique<internal::WorkerCore>(std::move(client), plan_.options));
    if (plan_.register_handlers) plan_.register_handlers(*worker_);
    internal::WorkerCore& core = internal::WorkerAccess::core(*worker_);
    RuntimeParts parts;
    parts.worker = id;
    parts.options = plan_.options;
    parts.overrides = plan_.overrides;
    parts.settings = plan_.settings;
    parts.handlers = std::move(core.handlers);
    parts.middleware = std::move(core.middleware);
    parts.backend = internal::ClientAccess::core(core.client).shared_backend();
    parts.guard = &guard;
    parts.make_http = plan_.make_http;
    parts.log = log_;
    return parts;
}

void WorkerProcess::greet(const RuntimeParts& parts) const {
    const std::size_t concurrency =
        plan_.options.concurrency == 0 ? default_concurrency() : plan_.options.concurrency;
    log_->write(LogLevel::kInfo,
                fmt::format("working on {}; queues {}; kinds {}; concurrency {}; lease {} ms",
                            parts.backend->url(), fmt::join(plan_.options.queues, ","),
                            fmt::join(handled_, ","), concurrency, plan_.options.lease.count()),
                {.worker = parts.worker});
}

int WorkerProcess::finish(const RuntimeExit& end, Backend& backend, bool supervised) const {
    if (end.exit.drained) {
        const auto left = unhandled_kinds(backend, plan_.options, handled_);
        if (!left.empty()) {
            log_->write(LogLevel::kWarning, fmt::format("left waiting, without a handler here: {}",
                                                        fmt::join(left, ", ")));
        }
        return kExitDone;
    }
    if (end.exit.recycle || end.guard_lost) return process::kWorkerRecycle;
    if (end.exit.unsettled == 0) return kExitDone;
    log_->write(LogLevel::kWarning,
                fmt::format("ended with {} runs whose end is not recorded; they will be recovered",
                            end.exit.unsettled));
    return supervised ? kExitDone : kExitUnsettled;
}

}  // namespace

int run_worker_processes(const WorkerProcessPlan& plan) {
    if (auto fine = check_worker_options(plan.options); !fine) throw Failure(fine.error());
    if (plan.processes == 0) return WorkerProcess(plan).run(false);
    const observe::LogWriter log(plan.log);
    process::SupervisorOptions options;
    options.processes = plan.processes;
    options.policy =
        plan.options.drain ? process::RestartPolicy::kUntilDone : process::RestartPolicy::kAlways;
    options.grace = plan.options.grace + kSupervisorMargin;
    options.log = [&log](const std::string& line) { log.write(LogLevel::kInfo, line); };
    return process::supervise(options, [&plan, &log](int) {
        try {
            return WorkerProcess(plan).run(true);
        } catch (const Failure& failure) {
            log.write(LogLevel::kError, failure.what());
            return failure.error().code == ErrorCode::kUsage ? process::kWorkerUsage : 3;
        }
    });
}

}  // namespace sekali::client
