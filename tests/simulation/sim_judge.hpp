#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/operations.hpp"
#include "engine/worker_machine.hpp"

namespace sekali::sim {

using engine::Millis;
using engine::RunId;
using engine::RunRef;
using engine::StoreTime;

/// A handler in the world: the process that runs it and the run's number there.
struct HandlerId {
    std::string worker;
    RunId run = 0;
    auto operator<=>(const HandlerId&) const = default;
};

/// Watches the history of one world, in the order in which the store executed it, and says which
/// guarantee of DESIGN section 2 it breaks. It keeps its own account and believes no row.
class Judge {
 public:
    /// `is_queued`: whether a queue beside the store has this job.
    Judge(const std::map<std::string, engine::KindSetup>& kinds,
          std::function<bool(const std::string& job)> is_queued)
        : kinds_(kinds), is_queued_(std::move(is_queued)) {}

    // What the store executed.
    void accepted(const engine::Envelope& job, Millis delay, StoreTime now);
    void begun(const engine::Begin& begin, const engine::BeginReply& reply, StoreTime now);
    void settled(const engine::Settle& settle, const engine::Settled& reply, bool effects_ran,
                 StoreTime now);
    void answered(const engine::Answer& answer, const engine::StoreReply& reply);
    void renewed(const engine::Renew& renew, const engine::Renewed& reply, StoreTime now);
    void step_intended(const engine::StepIntent& intent, const engine::StepIntentReply& reply);
    void lock_granted(const engine::LockAcquire& request, std::uint64_t fence);
    void lock_broken(const std::string& name, std::uint64_t fence);
    void resolved(const engine::JobRow& row, const engine::Resolution& resolution);
    void retried_dead(const engine::JobRow& row);
    /// Compares rows that a transaction may have touched with what they were before.
    void look(engine::Tables& tables, const std::set<std::string>& jobs);

    // What the processes did.
    void handler_started(const HandlerId& id, const RunRef& ref, StoreTime now);
    /// Its stop token has fired, for whatever reason.
    void handler_told(const HandlerId& id);
    void handler_commits(const HandlerId& id, bool waits);
    void handler_ended(const HandlerId& id);
    void paused(const std::string& worker, bool is);
    void crashed(const std::string& worker);

    /// Everything accepted must have come to rest by now.
    void finish(engine::Tables& tables);

    void violation(const std::string& guarantee, const std::string& what);
    [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
    [[nodiscard]] const std::vector<std::string>& jobs() const { return order_; }
    /// Kind and key of what succeeded with `ctx.commit`.
    [[nodiscard]] std::vector<std::string> committed() const;
    [[nodiscard]] std::optional<engine::JobRow> find(engine::Tables& tables,
                                                     const std::string& job) const;

 private:
    struct JobFacts {
        engine::Envelope job;
        StoreTime not_before{};
        std::uint64_t failures = 0;   ///< Own ends that were no success.
        std::uint64_t successes = 0;  ///< Also by an answer about it.
        std::uint64_t attempts_seen = 0;
        std::optional<engine::JobState> ended;
        std::size_t company_at_crash = 0;  ///< Handlers alive in the process it died with last.
    };
    struct KeyFacts {
        std::uint64_t epoch = 0;
        std::string fingerprint;
        std::optional<std::string> succeeded;  ///< With which result.
        std::string succeeded_job;
        bool by_commit = false;
        std::size_t effects = 0;  ///< That became durable through `ctx.commit`.
        StoreTime not_before{};
        std::string retrying;                             ///< The job whose retry is due then.
        std::optional<std::uint64_t> unanswered;          ///< Epoch whose handler may have acted.
        std::map<std::string, std::uint64_t> open_steps;  ///< By the epoch that left them open.
        std::set<std::string> recorded_steps;
    };
    struct HandlerFacts {
        RunRef ref;
        bool told = false;  ///< Its stop token has fired.
        bool committing = false;
        bool settled = false;  ///< Its end is in the store.
    };
    using Run = std::tuple<std::string, std::string, std::uint64_t>;  // worker, job, delivery
    using LockName = std::string;
    struct RunFacts {
        std::uint64_t epoch = 0;
        std::uint64_t fence = 0;
        StoreTime lease_until{};  ///< As the store was asked to keep it.
    };
    static Run run_of(const RunRef& ref) { return {ref.worker, ref.job_id, ref.delivery}; }

    static std::string key_name(const std::string& kind, const std::string& key) {
        return kind + "/" + key;
    }
    KeyFacts& key_of(const RunRef& ref) { return keys_[key_name(ref.record.kind, ref.record.key)]; }
    [[nodiscard]] bool is_strict(const std::string& kind) const;
    void settled_first(const engine::Settle& settle, const engine::Settled& reply, bool effects_ran,
                       StoreTime now);
    void succeed(const engine::Settle& settle, bool effects_ran);
    void look_at_job(engine::Tables& tables, const std::string& id);
    void look_at_record(engine::Tables& tables, const engine::Envelope& job);
    void look_at_slots(engine::Tables& tables);
    [[nodiscard]] bool excludes(const HandlerId& id, const HandlerFacts& facts,
                                StoreTime now) const;
    void mark_settled(const RunRef& ref);

    const std::map<std::string, engine::KindSetup>& kinds_;
    const std::function<bool(const std::string&)> is_queued_;
    std::map<std::string, JobFacts> jobs_;
    std::vector<std::string> order_;
    std::map<std::string, KeyFacts> keys_;
    std::map<LockName, std::uint64_t> fences_;
    std::map<LockName, std::uint64_t> breaks_;     ///< The fence after the last break.
    std::map<std::string, std::uint64_t> grants_;  ///< Of `ctx.lock`, by token.
    std::map<Run, RunFacts> runs_;                 ///< That have begun.
    std::map<std::string, Run> last_run_;          ///< Of each job.
    std::map<std::string, std::size_t> deaths_;    ///< Handlers that a process died with.
    std::set<Run> settled_;
    std::map<HandlerId, HandlerFacts> handlers_;  ///< Alive.
    std::set<std::string> paused_;
    /// Jobs that began before this other job's retry was due; right where that one has ended.
    std::vector<std::pair<std::string, std::string>> early_;
    std::vector<std::string> violations_;
};

}  // namespace sekali::sim
