#include "sekali/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "client/worker_core.hpp"
#include "client/worker_runtime.hpp"

namespace sekali {

Result<Worker> Worker::open(std::string_view url, const WorkerOptions& options) {
    if (auto fine = client::check_worker_options(options); !fine) return fine.error();
    auto client = Client::open(url, {.ns = options.ns, .max_payload = options.max_payload});
    if (!client.ok()) return client.error();
    return Worker(std::make_unique<internal::WorkerCore>(*std::move(client), options));
}

Worker::Worker(std::unique_ptr<internal::WorkerCore> core) : core_(std::move(core)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Client& Worker::client() {
    return core_->client;
}

void Worker::handle_raw(std::string_view kind, std::function<Outcome(Context&)> handler,
                        const HandlerOptions& options) {
    base::check_name("kind", kind).value();
    client::check_handler_options(kind, options).value();
    client::LocalHandler& entry = core_->handlers[std::string(kind)];
    if (entry.handler) {
        throw Failure(base::usage_error(fmt::format("kind {} has a handler already", kind)));
    }
    entry.handler = std::move(handler);
    entry.options = options;
}

void Worker::probe_raw(std::string_view kind,
                       std::function<std::optional<std::string>(const JobFacts&)> probe) {
    base::check_name("kind", kind).value();
    core_->handlers[std::string(kind)].probe = std::move(probe);
}

void Worker::use(Middleware middleware) {
    core_->middleware.push_back(std::move(middleware));
}

Result<WorkerExit> Worker::run(std::stop_token stop) {
    client::RuntimeParts parts;
    parts.worker = base::random_hex(8);
    parts.options = core_->options;
    parts.handlers = core_->handlers;
    parts.middleware = core_->middleware;
    parts.backend = internal::ClientAccess::core(core_->client).shared_backend();
    parts.log = std::make_shared<observe::LogWriter>(
        observe::LogOptions{.format = observe::log_format_for(STDERR_FILENO)});
    auto runtime = client::WorkerRuntime::create(std::move(parts));
    if (!runtime.ok()) return runtime.error();
    const std::stop_callback on_stop(stop, [&] { (*runtime)->stop(); });
    const client::RuntimeExit end = (*runtime)->run();
    // A handler that never ends keeps what it uses alive.
    if (end.stuck) static_cast<void>(runtime->release());
    return WorkerExit{
        .drained = end.exit.drained, .stuck = end.stuck, .unsettled = end.exit.unsettled};
}

}  // namespace sekali
