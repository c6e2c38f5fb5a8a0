#include "bench/quiet_worker.hpp"

#include <utility>

#include "base/ids.hpp"
#include "bench/jobs.hpp"
#include "client/worker_core.hpp"

namespace sekali::bench {

QuietWorker::QuietWorker(const std::string& url, std::size_t concurrency, bool drain,
                         std::function<Outcome(Context&)> handler, const HandlerOptions& options)
    : worker_(
          Worker::open(
              url, {.queues = {std::string(kQueue)}, .concurrency = concurrency, .drain = drain})
              .value()) {
    worker_.handle_raw(kKind, std::move(handler), options);
    internal::WorkerCore& core = internal::WorkerAccess::core(worker_);
    client::RuntimeParts parts;
    parts.worker = base::random_hex(8);
    parts.options = core.options;
    parts.handlers = core.handlers;
    parts.backend = internal::ClientAccess::core(core.client).shared_backend();
    parts.log = std::make_shared<observe::LogWriter>(
        observe::LogOptions{.least = observe::LogLevel::kError});
    runtime_ = client::WorkerRuntime::create(std::move(parts)).value();
}

}  // namespace sekali::bench
