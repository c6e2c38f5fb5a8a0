#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "client/worker_runtime.hpp"
#include "sekali/worker.hpp"

namespace sekali::bench {

/// A worker in this process for the jobs of the bench, which writes a log of errors only: what
/// `Worker::run` runs, without a line for each job.
class QuietWorker {
 public:
    QuietWorker(const std::string& url, std::size_t concurrency, bool drain,
                std::function<Outcome(Context&)> handler, const HandlerOptions& options);

    /// Blocks until it was stopped or is drained; once.
    void run() { static_cast<void>(runtime_->run()); }
    void stop() { runtime_->stop(); }

 private:
    Worker worker_;
    std::unique_ptr<client::WorkerRuntime> runtime_;
};

}  // namespace sekali::bench
