#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sekali/client.hpp"
#include "sekali/worker.hpp"

namespace sekali::testing {

/// One statement that a handler gave to `Transaction::execute` or `query`. A plain value.
struct Statement {
    std::string sql{};
    std::vector<SqlValue> arguments{};
};

/// A worker for tests: a store in memory, a clock that stands still until it is told, no threads.
///
/// Handlers run on the caller's thread inside `drain` and `perform`, one at a time, with the same
/// protocol as in a real worker. SQL of handlers is not executed but kept for inspection: a
/// statement changes one row, a query gives what `answer_queries` says. Not thread-safe. Throws
/// `Failure` where a real worker would refuse its registration.
class Harness {
 public:
    explicit Harness(const std::function<void(Worker&)>& register_handlers,
                     const WorkerOptions& options = {});
    ~Harness();
    Harness(const Harness&) = delete;
    Harness& operator=(const Harness&) = delete;

    /// Enqueues into the harness, also from handlers.
    [[nodiscard]] Client& client();

    /// Runs whatever is ready until nothing is; returns how many handlers started. What waits for
    /// time, a retry for instance, is left for after `advance`. A worker that keeps finding work is
    /// stopped after 100,000 rounds by a `Failure`.
    std::size_t drain();
    /// Lets time pass for the store and the worker. Runs nothing; inside a handler the worker goes
    /// on renewing, and stops the handler when its time is over.
    void advance(std::chrono::milliseconds time);
    /// Enqueues a job and runs the worker until that job has been run once or can only wait.
    template <Job T>
    JobInfo perform(const T& job, const EnqueueOptions& options = {}) {
        return perform_job(client().enqueue(job, options).value().id);
    }
    /// The next time the worker comes to the fault point (`begin.after`, see `sekali
    /// --list-faults`), it dies there, provably; `drain` goes on with a new one.
    void crash_at(std::string_view fault_point);
    /// How often a worker died by `crash_at`.
    [[nodiscard]] std::size_t crashes() const;

    /// Every job of the kind that was enqueued so far, in order, as it stands now.
    [[nodiscard]] std::vector<JobInfo> jobs(std::string_view kind) const;
    /// Those of them that succeeded.
    [[nodiscard]] std::vector<JobInfo> succeeded(std::string_view kind) const;
    /// What was enqueued of a job type, decoded, in order.
    template <Job T>
    [[nodiscard]] std::vector<T> enqueued() const {
        std::vector<T> decoded;
        for (const std::string& payload : payloads(JobTraits<T>::kind())) {
            decoded.push_back(decode<T>(payload).value());
        }
        return decoded;
    }

    /// SQL of commits that became durable, in order.
    [[nodiscard]] const std::vector<Statement>& statements() const;
    /// The rows that every query gives from now on; at first none.
    void answer_queries(std::function<std::vector<std::vector<SqlValue>>(const Statement&)> answer);

 private:
    class Impl;
    JobInfo perform_job(const std::string& id);
    [[nodiscard]] std::vector<std::string> payloads(std::string_view kind) const;

    std::unique_ptr<Impl> impl_;
};

}  // namespace sekali::testing
