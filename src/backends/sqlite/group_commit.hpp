#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "backends/sqlite/store_time.hpp"
#include "backends/sqlite/tables.hpp"
#include "engine/tables.hpp"

namespace sekali::sqlite {

/// Runs tasks in transactions on one connection: many in one commit, and, where that fails, so that
/// none pays for another. For one thread; the caller holds the write gate.
class GroupCommit {
 public:
    using Duration = std::chrono::steady_clock::duration;
    using AddMore = std::function<void(Duration patience)>;

    GroupCommit(SqliteTables& tables, Connection& connection, StoreTimer& timer)
        : tables_(tables), connection_(connection), timer_(timer) {}

    /// An answer for every task that was dealt with; those that found no time are left out, to be
    /// taken first the next time. At least one is dealt with. While there is time before the commit
    /// `add_more` is asked to append what has come in meanwhile, or comes in within `patience`.
    [[nodiscard]] std::vector<std::optional<Result<void>>> run(std::vector<engine::Task>& tasks,
                                                               const AddMore& add_more);
    /// Whether the commits of the last `run` made anything ready or ended anything.
    [[nodiscard]] bool made_news() const { return made_news_; }

 private:
    struct Attempt {
        enum class End { kCommitted, kNoTransaction, kTaskFailed, kCommitFailed } end;
        std::size_t ran = 0;  ///< Tasks that were run; the last one of them failed.
        std::optional<Error> error;
    };
    /// Runs the `chosen` tasks in one transaction; `add_more` may add to them.
    [[nodiscard]] Attempt attempt(const std::vector<engine::Task>& tasks,
                                  std::vector<std::size_t>& chosen, const AddMore& add_more);
    [[nodiscard]] std::optional<Error> begin();
    [[nodiscard]] std::optional<Error> work(const engine::Task& task);
    [[nodiscard]] std::optional<Error> commit();
    void roll_back();

    SqliteTables& tables_;
    Connection& connection_;
    StoreTimer& timer_;
    bool made_news_ = false;
    Duration commit_time_{};      ///< Smoothed.
    std::size_t last_group_ = 0;  ///< Tasks that were committed together.
};

}  // namespace sekali::sqlite
