#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "cli/store.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {

/// The kind of jobs that `once` makes, and the queue on which they are seen.
inline constexpr std::string_view kOnceKind = "once";
inline constexpr engine::Millis kOnceLease{15'000};

struct OncePlan {
    std::string ns;
    std::string key;
    std::string payload;  ///< The command, for whoever looks at the job.
    engine::KindPolicy policy;
};

/// One caller of `once` as the store sees it: a worker with one slot, and a job that no queue has.
class OnceCaller {
 public:
    OnceCaller(Store& store, OncePlan plan);

    /// Asks whether to run, to wait or to take what is there; `Parked` means ask again.
    [[nodiscard]] engine::BeginReply begin();
    /// To be called once, when the answer was `Started`.
    void enter(const engine::Started& started);
    /// Tells the store how the run ended.
    [[nodiscard]] engine::Settled settle(engine::Outcome outcome);

    [[nodiscard]] const engine::RunRef& run() const { return run_; }
    [[nodiscard]] const engine::WorkerRow& worker() const { return worker_; }

 private:
    using Clock = std::chrono::steady_clock;
    engine::BeginReply begin_in(engine::Tables& tables);
    void forget_expired(engine::Tables& tables);

    Store& store_;
    OncePlan plan_;
    engine::Envelope job_;
    engine::RunRef run_;
    engine::WorkerRow worker_;
    client::Liveness alive_;
    Clock::time_point begun_{};
    /// Since when the store has answered without a gap; a lapse may be blamed on another only then.
    std::optional<Clock::time_point> answering_since_;
    Clock::time_point answered_at_{};
};

/// Renews the lease of a run on a thread of its own, and tells when it cannot be sure of it any
/// more.
class LeaseKeeper {
 public:
    LeaseKeeper(Store& store, const OnceCaller& caller);
    ~LeaseKeeper();
    LeaseKeeper(const LeaseKeeper&) = delete;
    LeaseKeeper& operator=(const LeaseKeeper&) = delete;

    [[nodiscard]] std::stop_token lost() const { return lost_.get_token(); }
    /// Why it was lost, for the history.
    [[nodiscard]] std::string reason() const;

 private:
    using Clock = std::chrono::steady_clock;
    /// What may outlive the keeper, until the store's last answer.
    struct Answer {
        std::mutex mutex;
        std::condition_variable arrived;
        std::optional<Result<engine::Renewed>> reply;
    };
    void keep(const std::stop_token& over);
    [[nodiscard]] std::optional<engine::Renewed> renew(Clock::time_point until);
    void lose(std::string reason);

    Store& store_;
    engine::Renew request_;
    engine::Heartbeat heartbeat_;
    std::stop_source lost_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::string reason_;
    std::jthread thread_;
};

}  // namespace sekali::cli
