#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backends/sqlite/change_signal.hpp"
#include "backends/sqlite/gate.hpp"
#include "backends/sqlite/group_commit.hpp"
#include "backends/sqlite/inbox.hpp"
#include "backends/sqlite/log_keeper.hpp"
#include "backends/sqlite/options.hpp"

namespace sekali::sqlite {

/// The one thread of a process that writes: takes what is queued, runs it in a transaction of a few
/// milliseconds when it is this process's turn, and answers after the commit.
class Writer {
 public:
    /// `connection` is ready for writing; `signal` outlives this.
    Writer(const SqliteOptions& options, std::unique_ptr<Connection> connection, Gate gate,
           const LivenessFile& liveness, StoreTimer& timer, ChangeSignal& signal);
    /// Runs what is still queued, as long as the busy deadline allows, and ends.
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// Blocks while the inbox is full, at most for the busy deadline; then refuses.
    void submit(std::vector<engine::Task> tasks);
    /// Runs `work` and waits for its commit. Where that takes longer than `at_most` the answer says
    /// whether it may still happen; `work` may then outlive the call and must own what it uses.
    [[nodiscard]] Result<void> run(std::function<void(SqliteTables&)> work, engine::Millis at_most);
    [[nodiscard]] std::int64_t log_bytes() const { return log_.log_bytes(); }

 private:
    void run_until_closed();
    void run_group();
    void refuse_overdue(const Error& why);
    static void answer(const engine::Task& task, Result<void> result);

    const engine::Millis busy_deadline_;
    std::unique_ptr<Connection> connection_;
    Gate gate_;
    StoreTimer& timer_;
    ChangeSignal& signal_;
    SqliteTables tables_;
    GroupCommit commit_;
    LogKeeper log_;
    Inbox inbox_;
    std::atomic<bool> closing_{false};
    std::thread thread_;
};

}  // namespace sekali::sqlite
