#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sekali/job.hpp"
#include "sekali/result.hpp"
#include "sekali/transaction.hpp"

namespace sekali {

namespace internal {
class ClientCore;
class ClientAccess;
}  // namespace internal

/// What became of an enqueue. A plain value.
struct Enqueued {
    enum class Status : std::uint8_t {
        kEnqueued,   ///< The job is stored; also the answer to a repeated enqueue with its own id.
        kDuplicate,  ///< Refused: `winner` holds the slot of its unique key.
        kReplaced,   ///< Stored in the place of `winner`, which was cancelled or keeps running.
    };
    std::string id{};  ///< Of the job itself, also of a refused one.
    Status status = Status::kEnqueued;
    std::string winner{};  ///< Empty: there is none.
};

/// A job as it stands in the store. A plain value.
struct JobInfo {
    std::string id{};
    std::string kind{};
    std::string queue{};
    std::string state{};        ///< `scheduled ready waiting running held succeeded …`.
    std::string waiting_for{};  ///< `lock:NAME`, `key:KEY`, `pause`, `handler`; empty: nothing.
    std::string key{};
    std::string lock_key{};    ///< Empty: none.
    std::string unique_key{};  ///< Empty: none.
    std::string payload{};     ///< Kept for live, dead and cancelled jobs.
    int priority = 0;
    std::uint64_t attempts = 0;
    std::uint64_t crashes = 0;
    std::uint64_t deliveries = 0;
    std::uint64_t epoch = 0;
    std::chrono::system_clock::time_point enqueued_at{};  ///< By the store's clock.
    std::chrono::system_clock::time_point run_at{};
    std::optional<std::chrono::system_clock::time_point> finished_at{};
    std::string worker{};
    std::string result{};
    std::string error{};
    std::string reason{};
};

struct ClientOptions {
    /// Of every job that this client touches.
    std::string ns = "default";
    /// Longest payload in bytes.
    std::size_t max_payload = 1024 * 1024;
};

/// Enqueues jobs and looks after them.
///
/// A handle: copies share one connection. Thread-safe. Calls block until the store has answered,
/// and what they report as done is durable. Errors say whether the request may have been applied
/// all the same: `kUsage` for bad input, before the store is asked; `kUnreachable` and `kRefused`
/// for the store; `kNotFound`, `kConflict` as said at the call. Must not be opened before a `fork`
/// and used behind it.
class Client {
 public:
    /// Opens a store: `sqlite:PATH`, `memory:`, or the default store for an empty URL.
    ///
    /// The schema of an SQLite store is created or upgraded.
    [[nodiscard]] static Result<Client> open(std::string_view url,
                                             const ClientOptions& options = {});

    /// Stores a job. What `options` leaves out is decided by the type's `options()`.
    ///
    /// `kConflict` when its idempotency key is recorded with another payload, or its id is another
    /// job's. A refused unique key is no error: see `Enqueued::status`.
    template <Job T>
    [[nodiscard]] Result<Enqueued> enqueue(const T& job, const EnqueueOptions& options = {}) {
        return enqueue_raw(JobTraits<T>::kind(), encode(job), JobTraits<T>::options(job), options);
    }
    [[nodiscard]] Result<Enqueued> enqueue(const RawJob& job, const EnqueueOptions& options = {}) {
        return enqueue_raw(job.kind, job.payload, {}, options);
    }

    /// As `enqueue`, inside the transaction: the job exists once that is committed. The store of
    /// the transaction must be the client's own.
    template <Job T>
    [[nodiscard]] Result<Enqueued> enqueue(Transaction& tx, const T& job,
                                           const EnqueueOptions& options = {}) {
        return enqueue_in(tx, JobTraits<T>::kind(), encode(job), JobTraits<T>::options(job),
                          options);
    }
    [[nodiscard]] Result<Enqueued> enqueue(Transaction& tx, const RawJob& job,
                                           const EnqueueOptions& options = {}) {
        return enqueue_in(tx, job.kind, job.payload, {}, options);
    }
    /// As above, for `sekali::sqlite::within(handle)`.
    template <typename T>
    [[nodiscard]] Result<Enqueued> enqueue(Transaction&& tx, const T& job,
                                           const EnqueueOptions& options = {}) {
        return enqueue(tx, job, options);
    }

    /// Stores many jobs in few transactions; one answer for each, in order. A job that is refused
    /// stops no other.
    template <Job T>
    [[nodiscard]] std::vector<Result<Enqueued>> enqueue_many(std::span<const T> jobs,
                                                             const EnqueueOptions& options = {}) {
        std::vector<Item> items;
        items.reserve(jobs.size());
        for (const T& job : jobs) {
            items.push_back(
                {std::string(JobTraits<T>::kind()), encode(job), JobTraits<T>::options(job)});
        }
        return enqueue_items(std::move(items), options);
    }
    [[nodiscard]] std::vector<Result<Enqueued>> enqueue_many(std::span<const RawJob> jobs,
                                                             const EnqueueOptions& options = {});

    /// The job of that id, live or ended. `kNotFound` when there is none.
    [[nodiscard]] Result<JobInfo> show(std::string_view id);
    /// Ends a waiting job as `cancelled`; asks the worker of a running one to stop it, which a
    /// success that is committed first outruns. `kNotFound`; `kConflict` when it has ended already.
    [[nodiscard]] Result<void> cancel(std::string_view id, std::string_view reason = {});
    /// Runs a job that waits for its time now, or a dead one again with its key, its history and
    /// new attempts. `kNotFound`; `kConflict` in any other state, or when its unique slot is taken.
    [[nodiscard]] Result<void> retry(std::string_view id);

    /// Runs `work` in a transaction of the store and commits it, unless it throws: then nothing of
    /// it is durable and the exception comes out. It may run more than once, and it runs on the
    /// store's thread, so it must not call the client but `enqueue(tx, …)`.
    [[nodiscard]] Result<void> transact(const std::function<void(Transaction&)>& work);

    [[nodiscard]] const std::string& ns() const;

 private:
    friend class internal::ClientAccess;
    struct Item {
        std::string kind;
        Result<std::string> payload;
        EnqueueOptions options;
    };
    explicit Client(std::shared_ptr<internal::ClientCore> core) : core_(std::move(core)) {}

    Result<Enqueued> enqueue_raw(std::string_view kind, const Result<std::string>& payload,
                                 const EnqueueOptions& of_type, const EnqueueOptions& of_call);
    Result<Enqueued> enqueue_in(Transaction& tx, std::string_view kind,
                                const Result<std::string>& payload, const EnqueueOptions& of_type,
                                const EnqueueOptions& of_call);
    std::vector<Result<Enqueued>> enqueue_items(std::vector<Item> items,
                                                const EnqueueOptions& of_call);

    std::shared_ptr<internal::ClientCore> core_;
};

}  // namespace sekali
