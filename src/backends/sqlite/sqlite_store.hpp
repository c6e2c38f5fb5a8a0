#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sqlite/liveness.hpp"
#include "backends/sqlite/options.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

class ChangeSignal;
class ReaderPool;
class StoreTimer;
class Writer;

struct SqliteStats {
    std::int64_t log_bytes = 0;  ///< Size of the write-ahead log in use, as this process saw it.
};

/// A store in one SQLite file. Thread-safe; a child that is forked must not use it.
///
/// Beside the file PATH lie SQLite's own PATH-wal and PATH-shm, and PATH-gate (whose turn it is to
/// write), PATH-wake (touched when something became ready) and PATH-alive (one locked byte for each
/// living worker). A process that is forked without exec must close them: whoever has the gate's
/// descriptor keeps its turn.
class SqliteStore final : public engine::Executor {
 public:
    /// Opens, creates or upgrades the database. Blocks up to the busy deadline.
    static Result<std::unique_ptr<SqliteStore>> open(SqliteOptions options);
    /// Runs what is still queued, as long as the busy deadline allows.
    ~SqliteStore() override;
    SqliteStore(const SqliteStore&) = delete;
    SqliteStore& operator=(const SqliteStore&) = delete;

    /// Blocks while too much is queued, up to the busy deadline; then the rest is refused.
    void submit(std::vector<engine::Task> tasks) override;
    [[nodiscard]] Result<void> read(const std::function<void(engine::Tables&)>& work) override;
    void wait_for_change(engine::Millis at_most) override;

    /// Runs `work` in a transaction and waits for the commit. When that takes longer than `at_most`
    /// the error says whether it may still happen; `work` may outlive the call and must own what it
    /// uses.
    [[nodiscard]] Result<void> write_sync(std::function<void(engine::Tables&)> work,
                                          engine::Millis at_most);

    /// Makes this process provably alive as `worker_id` until the handle and every inherited copy
    /// of its descriptor are closed; then it is provably dead. Call it before the worker's first
    /// claim.
    [[nodiscard]] Result<LivenessHandle> hold_liveness(std::string_view worker_id);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] SqliteStats stats() const;
    /// What somebody who cares for this database should know, in sentences.
    [[nodiscard]] std::vector<std::string> notices() const;

    struct Opening;  ///< Only `open` can make one.
    SqliteStore(const Opening&, SqliteOptions options, std::string path, LivenessFile liveness);

 private:
    const SqliteOptions options_;
    const std::string path_;
    const LivenessFile liveness_;
    std::unique_ptr<StoreTimer> timer_;
    std::unique_ptr<ChangeSignal> signal_;
    std::unique_ptr<ReaderPool> readers_;
    std::unique_ptr<Writer> writer_;  ///< Missing when read-only.
};

}  // namespace sekali::sqlite
