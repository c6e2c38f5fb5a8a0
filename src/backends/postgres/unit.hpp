#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/tables.hpp"

namespace sekali::postgres {

/// Runs tasks in transactions on one connection: many in one where that goes well, each alone
/// where it does not. Belongs to one thread.
class Units {
 public:
    /// All must outlive this. While `closing` is set nothing is waited for.
    Units(const PostgresOptions& options, const Statements& sql, KnownRows& known,
          const std::atomic<bool>& closing);
    ~Units();
    Units(const Units&) = delete;
    Units& operator=(const Units&) = delete;

    /// An answer for every task, after the commit.
    [[nodiscard]] std::vector<Result<void>> run(std::span<const engine::Task> tasks);
    /// Whether the commits of the last `run` made anything ready or ended anything.
    [[nodiscard]] bool made_news() const { return made_news_; }
    /// Tells other processes of news, in a transaction of its own. Failures are let go: whoever
    /// waits looks by himself, too.
    void notify(const std::string& channel);

 private:
    using Answers = std::vector<std::optional<Result<void>>>;
    using Chosen = std::vector<std::size_t>;
    class UnitChannel;

    /// One transaction. Answers those of the chosen tasks that are settled by it; returns the one
    /// that failed after it had written, which has undone the others. Moves to `alone` what is not
    /// to be in company.
    [[nodiscard]] std::optional<std::size_t> attempt(std::span<const engine::Task> tasks,
                                                     Chosen& chosen, Answers& answers,
                                                     Chosen& alone);
    void run_together(std::span<const engine::Task> tasks, Chosen chosen, Answers& answers,
                      Chosen& alone);
    void foresee_rest(std::span<const engine::Task> tasks, std::span<const std::size_t> rest);
    void commit(UnitChannel& channel);
    /// After a refusal some units assume nothing, more each time.
    void note_refusal();
    /// After a deadlock in company the next effects of handlers have a transaction of their own,
    /// more each time: a transaction with few of users' rows meets few others.
    void note_deadlock();
    /// After a commit whose answer was lost: whether it landed. Settled by a write, which waits for
    /// the transaction in doubt or keeps it from landing.
    [[nodiscard]] bool landed(Connection::Clock::time_point deadline);
    Connection& connection();
    [[nodiscard]] bool may_wait(Connection::Clock::time_point deadline) const;

    const PostgresOptions& options_;
    const Statements& sql_;
    const std::atomic<bool>& closing_;
    PostgresTables tables_;
    std::unique_ptr<Connection> connection_;
    std::string token_;       ///< Of the commit that is under way.
    std::string last_token_;  ///< Of the last one that landed on this connection.
    bool commit_was_sent_ = false;
    bool assumes_ = true;          ///< The unit at hand.
    unsigned cautious_for_ = 0;    ///< Units to come that assume nothing.
    unsigned caution_ = 0;         ///< As many after the last refusal.
    bool checks_effects_ = false;  ///< The unit at hand, because its commit was refused before.
    bool keeps_apart_ = false;     ///< The unit at hand, effects from all else.
    unsigned apart_for_ = 0;       ///< Effects to come that are.
    unsigned apartness_ = 0;       ///< As many after the last deadlock, less where none came.
    bool made_news_ = false;
};

}  // namespace sekali::postgres
