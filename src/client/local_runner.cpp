#include "client/local_runner.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/faults.hpp"
#include "client/blocking.hpp"
#include "client/outcomes.hpp"

namespace sekali::client {
namespace {

using engine::Answer;
using engine::Settled;

Settled superseded() {
    Settled settled;
    settled.kind = Settled::Kind::kSuperseded;
    return settled;
}

}  // namespace

/// One commit between the handler that waits for it and the port that runs its effects. When the
/// worker ends in between, the handler leaves first, and the port finds the gate closed.
class LocalRunner::CommitGate {
 public:
    explicit CommitGate(internal::RunHost::Effects effects) : effects_(std::move(effects)) {}

    Result<void> write(Transaction& tx) {
        const std::lock_guard guard(mutex_);
        if (settled_) {
            return Error{.code = ErrorCode::kCancelled, .message = "the worker has ended"};
        }
        return effects_(tx);
    }
    void settle(const Settled& settled) {
        const std::lock_guard guard(mutex_);
        settled_ = settled;
    }
    /// To be asked for once it is settled.
    [[nodiscard]] const Settled& settled() const { return *settled_; }

    WakeLine::Place place;  ///< Where the handler waits.

 private:
    std::mutex mutex_;
    internal::RunHost::Effects effects_;
    std::optional<Settled> settled_;
};

/// One handler that runs.
class LocalRunner::Entry {
 public:
    Entry(engine::action::StartHandler start, engine::Millis lock_ttl, internal::RunHost& host)
        : run(std::move(start), lock_ttl, host) {}

    internal::Run run;
    std::mutex mutex;
    std::shared_ptr<CommitGate> commit;
    bool abandoned = false;
};

LocalRunner::LocalRunner(std::map<std::string, LocalKind, std::less<>> kinds,
                         std::shared_ptr<Backend> backend, std::shared_ptr<Inbox> inbox,
                         std::size_t threads, RunLog log)
    : kinds_(std::move(kinds)),
      backend_(std::move(backend)),
      inbox_(std::move(inbox)),
      log_(std::move(log)),
      pool_(threads) {}

LocalRunner::~LocalRunner() = default;

void LocalRunner::start(engine::action::StartHandler request) {
    const auto kind = kinds_.find(request.delivery.row.job.kind);
    SEKALI_ASSERT(kind != kinds_.end(), "a handler was started whose kind has none");
    const engine::RunId id = request.run;
    auto entry = std::make_shared<Entry>(std::move(request), kind->second.lock_ttl,
                                         static_cast<internal::RunHost&>(*this));
    {
        const std::lock_guard guard(mutex_);
        entries_.emplace(id, entry);
    }
    pool_.add([self = shared_from_this(), this, id, entry = std::move(entry),
               &handler = kind->second.handler] {
        engine::Outcome outcome;
        if (SEKALI_FAULT("handler.before")) {
            outcome = failed_run(kFailedByTest, false);
        } else {
            outcome = entry->run.perform(handler);
        }
        if (SEKALI_FAULT("handler.after")) outcome = failed_run(kFailedByTest, false);
        {
            const std::lock_guard guard(mutex_);
            entries_.erase(id);
        }
        inbox_->push(engine::event::HandlerEnded{id, std::move(outcome)});
    });
}

void LocalRunner::probe(engine::action::AskProbe request) {
    const auto kind = kinds_.find(request.delivery.row.job.kind);
    SEKALI_ASSERT(kind != kinds_.end(), "a handler is asked about whose kind has none");
    pool_.run([self = shared_from_this(), this, id = request.run, &probe = kind->second.probe,
               facts = internal::facts_of(std::move(request.delivery.row.job))] {
        engine::event::ProbeEnded ended{id, Answer::Kind::kCannotTell, {}};
        try {
            if (probe) {
                const auto result = probe(facts);
                ended.result = result.value_or("");
                ended.answer = result ? Answer::Kind::kHappened : Answer::Kind::kDidNot;
            }
        } catch (...) {
            // Whatever it throws, it could not tell.
        }
        inbox_->push(std::move(ended));
    });
}

void LocalRunner::ask_stop(engine::RunId run, engine::StopReason reason) {
    if (const auto entry = find(run)) entry->run.ask_stop(reason);
}

void LocalRunner::complete_commit(engine::RunId run, const Settled& settled) {
    const auto entry = find(run);
    if (!entry) return;
    std::shared_ptr<CommitGate> commit;
    {
        const std::lock_guard guard(entry->mutex);
        commit = std::exchange(entry->commit, nullptr);
    }
    if (commit) settle(commit, settled);
}

void LocalRunner::settle(const std::shared_ptr<CommitGate>& commit, const Settled& settled) {
    commit->settle(settled);
    committed_.call({commit, &commit->place});
}

bool LocalRunner::close(std::chrono::milliseconds patience) {
    std::map<engine::RunId, std::shared_ptr<Entry>> left;
    {
        const std::lock_guard guard(mutex_);
        left = entries_;
    }
    for (const auto& [id, entry] : left) {
        entry->run.ask_stop(engine::StopReason::kLeaseLost);
        std::shared_ptr<CommitGate> commit;
        {
            const std::lock_guard guard(entry->mutex);
            entry->abandoned = true;
            commit = std::exchange(entry->commit, nullptr);
        }
        if (commit) settle(commit, superseded());
    }
    return pool_.close(patience);
}

Settled LocalRunner::commit(engine::RunId run, Effects effects, std::string result) {
    const auto entry = find(run);
    SEKALI_ASSERT(entry != nullptr, "a run commits that is not there");
    const auto gate = std::make_shared<CommitGate>(std::move(effects));
    {
        const std::lock_guard guard(entry->mutex);
        if (entry->abandoned) return superseded();
        entry->commit = gate;
    }
    inbox_->push(engine::event::CommitRequested{
        run, [gate](Transaction& tx) { return gate->write(tx); }, std::move(result)});
    committed_.wait(gate->place);
    return gate->settled();
}

Result<engine::StoreReply> LocalRunner::ask_store(engine::StoreCommand command) {
    return ask<engine::StorePort, engine::StoreReply>(backend_->ports(), std::move(command));
}

Result<engine::LockReply> LocalRunner::ask_lock(engine::LockCommand command) {
    return ask<engine::LockPort, engine::LockReply>(backend_->ports(), std::move(command));
}

void LocalRunner::lock_taken(engine::event::LockTaken taken) {
    inbox_->push(std::move(taken));
}

void LocalRunner::pause(engine::Millis time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock guard(mutex);
    never.wait_for(guard, stop, time, [] { return false; });
}

bool LocalRunner::reach(std::size_t fault_index) {
    return base::fault_reached(fault_index);
}

void LocalRunner::log(const internal::Run& run, LogSeverity severity, std::string_view message) {
    log_(run, severity, message);
}

std::shared_ptr<LocalRunner::Entry> LocalRunner::find(engine::RunId run) {
    const std::lock_guard guard(mutex_);
    const auto found = entries_.find(run);
    return found == entries_.end() ? nullptr : found->second;
}

}  // namespace sekali::client
