#include "client/worker_runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "base/limits.hpp"
#include "client/outside_locks.hpp"

namespace sekali::client {
namespace {

/// For threads of handlers that have ended to be gone; those that are stuck are not waited for.
constexpr std::chrono::milliseconds kThreadPatience{1000};

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return name.data();
}

}  // namespace

WorkerRuntime::WorkerRuntime(Passkey, RuntimeParts parts)
    : parts_(std::move(parts)), shell_log_(*parts_.log, parts_.worker) {}

WorkerRuntime::~WorkerRuntime() {
    // Its events go to the runner, which ends before it.
    if (exec_) parts_.guard->close();
}

Result<std::unique_ptr<WorkerRuntime>> WorkerRuntime::create(RuntimeParts parts) {
    auto runtime = std::make_unique<WorkerRuntime>(Passkey{}, std::move(parts));
    if (auto fine = runtime->assemble(); !fine) return fine.error();
    return runtime;
}

Result<void> WorkerRuntime::assemble() {
    const WorkerOptions& options = parts_.options;
    if (auto fine = check_worker_options(options); !fine) return fine;
    config_.worker = parts_.worker;
    config_.ns = options.ns;
    config_.host = host_name();
    config_.pid = ::getpid();
    config_.queues = options.queues;
    config_.concurrency = options.concurrency == 0 ? default_concurrency() : options.concurrency;
    config_.lease = options.lease;
    config_.grace = options.grace;
    config_.drain = options.drain;
    config_.queue = parts_.backend->ports().traits();
    config_.locks_in_store = options.lock_url.empty();
    if (!options.lock_url.empty()) {
        auto locks = open_outside_locks(options, parts_.backend);
        if (!locks.ok()) return locks.error();
        outside_locks_ = *std::move(locks);
    }

    std::set<std::string> kinds;
    for (const auto& [kind, handler] : parts_.handlers)
        kinds.insert(kind);
    for (const auto& [kind, settings] : parts_.settings) {
        if (!settings.exec.empty() || !settings.http.empty()) kinds.insert(kind);
    }
    if (kinds.empty())
        return base::usage_error("there is no handler", "give one by --exec or --http");
    for (const std::string& kind : kinds) {
        if (auto fine = add_kind(kind); !fine) return fine;
    }
    make_runners();
    return {};
}

Result<void> WorkerRuntime::add_kind(const std::string& kind) {
    if (auto fine = base::check_name("kind", kind); !fine) return fine;
    const auto local = parts_.handlers.find(kind);
    const auto found = parts_.settings.find(kind);
    const KindSettings settings = found == parts_.settings.end() ? KindSettings{} : found->second;
    const bool is_local = local != parts_.handlers.end();
    if (is_local && !local->second.handler) {
        return base::usage_error(fmt::format("kind {} has a probe but no handler", kind));
    }
    const int ways = int{is_local} + int{!settings.exec.empty()} + int{!settings.http.empty()};
    if (ways > 1) return base::usage_error(fmt::format("kind {} has more than one handler", kind));

    HandlerOptions options = merged(settings.options, parts_.overrides);
    if (is_local) options = merged(options, local->second.options);
    if (auto fine = check_handler_options(kind, options); !fine) return fine;
    const bool has_probe = !settings.probe.empty() || (is_local && local->second.probe != nullptr);
    const HandledBy by = is_local                ? HandledBy::kLocal
                         : settings.http.empty() ? HandledBy::kExec
                                                 : HandledBy::kHttp;
    const engine::KindSetup setup = kind_setup(options, by, has_probe);
    config_.kinds.emplace(kind, setup);
    if (is_local) {
        local_kinds_.emplace(
            kind, LocalKind{.handler = wrapped(std::move(local->second.handler), parts_.middleware),
                            .probe = std::move(local->second.probe),
                            .lock_ttl = setup.policy.lock_ttl});
    } else if (!settings.http.empty()) {
        http_kinds_.emplace(kind, settings.http);
    } else {
        exec_kinds_.emplace(kind, ExecKind{.handler = settings.exec, .probe = settings.probe});
    }
    return {};
}

void WorkerRuntime::make_runners() {
    std::map<std::string, Runner*, std::less<>> runners;
    if (!local_kinds_.empty()) {
        local_ = std::make_shared<LocalRunner>(
            local_kinds_, parts_.backend, inbox_, config_.concurrency,
            [this](const internal::Run& run, LogSeverity severity, std::string_view message) {
                shell_log_.handler_line(run, severity, message);
            });
        for (const auto& [kind, handler] : local_kinds_)
            runners.emplace(kind, local_.get());
    }
    if (!exec_kinds_.empty()) {
        exec_ = std::make_unique<ExecRunner>(*parts_.guard, exec_kinds_,
                                             StoreAddress{parts_.backend->url(), config_.ns},
                                             inbox_, [this] {
                                                 guard_lost_ = true;
                                                 stop();
                                             });
        for (const auto& [kind, handler] : exec_kinds_)
            runners.emplace(kind, exec_.get());
    }
    if (!http_kinds_.empty()) {
        http_ = parts_.make_http(http_kinds_, inbox_, config_.concurrency);
        for (const auto& [kind, url] : http_kinds_)
            runners.emplace(kind, http_.get());
    }
    rows::RowPorts& ports = parts_.backend->ports();
    engine::LockPort& locks = outside_locks_ ? *outside_locks_ : ports;
    shell_ = std::make_unique<WorkerShell>(config_,
                                           Ports{ports, ports, locks, parts_.backend->executor()},
                                           std::move(runners), shell_log_, inbox_);
    if (exec_) {
        parts_.guard->listen(
            [this](process::GuardEvent event) { exec_->on_guard_event(std::move(event)); });
    }
}

RuntimeExit WorkerRuntime::run() {
    RuntimeExit result;
    result.exit = shell_->run();
    if (local_) {
        const bool left_behind = result.exit.recycle || result.exit.unsettled != 0;
        result.stuck = !local_->close(left_behind ? std::chrono::milliseconds{0} : kThreadPatience);
    }
    result.guard_lost = guard_lost_;
    return result;
}

}  // namespace sekali::client
