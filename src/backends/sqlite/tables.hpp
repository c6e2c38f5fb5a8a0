#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sqlite/column_updates.hpp"
#include "backends/sqlite/known_rows.hpp"
#include "backends/sqlite/liveness.hpp"
#include "backends/sqlite/query.hpp"
#include "backends/sqlite/user_sql.hpp"
#include "engine/tables.hpp"

namespace sekali::sqlite {

/// The rows on one connection. Belongs to whoever runs the connection's transactions, who calls
/// `start` or `go_on` at the beginning of each, inside it.
class SqliteTables final : public engine::Tables {
 public:
    enum class UserAccess : std::uint8_t {
        kGuarded,  ///< The transaction is ours: users' statements may not end it.
        kOpen,     ///< The connection is the user's.
    };

    /// `liveness` may be null: then no death can be proven. Both must outlive this.
    SqliteTables(Connection& connection, const LivenessFile* liveness, UserAccess access);

    void start(engine::StoreTime now);
    /// As `start`, on a connection that wrote nothing since its last transaction but through this
    /// object: rows that nobody else has changed since then are not read again.
    void go_on(engine::StoreTime now);
    /// The transaction is undone.
    void rolled_back();
    [[nodiscard]] Statements& statements() { return statements_; }
    /// Whether this transaction made something ready or ended something, so that others may want to
    /// look.
    [[nodiscard]] bool made_news() const { return made_news_; }

    [[nodiscard]] engine::StoreTime now() const override { return now_; }

    std::optional<engine::JobRow> job(std::string_view id) override;
    bool insert_job(engine::JobRow& row) override;
    void update_job(const engine::JobRow& row) override;
    void finish_job(const engine::JobRow& row) override;
    std::optional<engine::JobRow> finished_job(std::string_view id) override;
    void insert_finished(const engine::JobRow& row) override;
    void revive_job(const engine::JobRow& row) override;
    void erase_finished(std::string_view id) override;
    std::string payload(std::string_view job_id) override;

    std::size_t promote_due(std::string_view ns, std::size_t limit) override;
    std::vector<engine::JobRow> claimable(const engine::ClaimSpec& spec) override;
    std::vector<engine::JobRow> lapsed_jobs(std::string_view ns,
                                            const std::vector<std::string>& kinds,
                                            std::int64_t after_seq, std::size_t limit) override;
    std::uint64_t count_begun(std::string_view owner) override;
    bool has_jobs_of(std::string_view owner) override;
    std::vector<engine::JobRow> running_jobs_of(std::string_view ns,
                                                std::string_view owner) override;
    std::optional<engine::JobRow> unique_holder(std::string_view ns, std::string_view kind,
                                                std::string_view unique_key) override;
    std::optional<engine::JobRow> first_waiting(std::string_view ns, engine::WaitFor wait,
                                                std::string_view kind,
                                                std::string_view name) override;
    bool has_live_or_dead_job(const engine::RecordKey& key) override;
    std::optional<engine::JobRow> live_job_of_key(const engine::RecordKey& key) override;
    std::optional<engine::StoreTime> next_run_at(const engine::ClaimSpec& spec) override;
    bool has_drainable(const engine::ClaimSpec& spec) override;
    engine::Page<engine::JobRow> list_jobs(const engine::JobFilter& filter) override;

    std::optional<engine::RecordRow> record(const engine::RecordKey& key) override;
    void put_record(const engine::RecordRow& row) override;
    void erase_record(const engine::RecordKey& key) override;
    std::uint64_t epoch_floor() override;
    std::vector<engine::RecordRow> prunable_records(std::string_view ns,
                                                    std::size_t limit) override;
    std::vector<engine::RecordRow> stale_records(std::string_view ns, std::size_t limit) override;

    std::vector<engine::StepRow> steps(const engine::RecordKey& key) override;
    void put_step(const engine::StepRow& row) override;
    void erase_steps(const engine::RecordKey& key) override;

    std::optional<engine::LockRow> lock(std::string_view ns, std::string_view name) override;
    void put_lock(const engine::LockRow& row) override;
    void erase_lock(std::string_view ns, std::string_view name) override;
    std::uint64_t fence_floor() override;
    std::vector<engine::LockRow> held_locks(std::string_view ns) override;
    std::vector<engine::LockRow> idle_locks(std::string_view ns, engine::StoreTime before,
                                            std::size_t limit) override;
    std::vector<std::string> stalled_lines(std::string_view ns, std::size_t limit) override;
    std::vector<engine::RecordKey> stalled_keys(std::string_view ns, std::size_t limit) override;

    void add_attempt(const engine::AttemptRow& row) override;
    void add_event(const engine::EventRow& row) override;
    std::vector<engine::AttemptRow> attempts_of_key(const engine::RecordKey& key) override;
    std::vector<engine::EventRow> events_of_key(const engine::RecordKey& key) override;
    std::vector<engine::JobRow> jobs_of_key(std::string_view ns, std::string_view kind,
                                            std::string_view key) override;
    std::vector<std::string> kinds_of_key(std::string_view ns, std::string_view key) override;
    std::vector<std::string> nearest_keys(std::string_view ns, std::string_view key,
                                          std::size_t limit) override;
    std::size_t prune_history(std::string_view ns, engine::StoreTime before,
                              std::size_t limit) override;

    void put_worker(const engine::WorkerRow& row) override;
    std::optional<engine::WorkerRow> worker(std::string_view id) override;
    void erase_worker(std::string_view id) override;
    std::vector<engine::WorkerRow> workers(std::string_view ns) override;
    engine::OwnerFate owner_fate(std::string_view worker_id) override;
    std::optional<engine::QueueRow> queue(std::string_view ns, std::string_view name) override;
    void put_queue(const engine::QueueRow& row) override;
    std::vector<engine::QueueCounts> queue_counts(std::string_view ns) override;

    Result<void> run_effects(const std::function<Result<void>(Transaction&)>& effects) override;

    /// The liveness row of a worker or lock client, to be written after its byte was locked.
    void put_liveness(std::string_view worker, std::string_view file, std::int64_t place);
    /// Forgets processes that ended long ago without saying so; at most `limit`.
    void sweep_liveness(std::size_t limit);

 private:
    [[nodiscard]] std::optional<engine::JobRow> one_job(Query& query);
    [[nodiscard]] std::vector<engine::JobRow> jobs_with_payload(Query& query);
    [[nodiscard]] std::int64_t next_seq();
    [[nodiscard]] bool paused(std::string_view ns, std::string_view queue);
    [[nodiscard]] std::vector<std::string> open_queues(const engine::ClaimSpec& spec);
    [[nodiscard]] bool has_ready_or_retry(const engine::ClaimSpec& spec);
    [[nodiscard]] bool line_is_held_up(std::string_view ns, engine::WaitFor wait,
                                       std::string_view kind, std::string_view name);
    [[nodiscard]] bool has_drainable_line(const engine::ClaimSpec& spec);
    /// Moves on to the next line of what waits for a lock or key; a lock's line has no kind.
    [[nodiscard]] bool next_line(engine::WaitFor wait, engine::RecordKey& line);
    [[nodiscard]] std::vector<engine::RecordKey> standing_lines(
        std::string_view ns, engine::WaitFor wait, std::size_t limit,
        const std::function<bool(const engine::RecordKey&)>& stands);
    [[nodiscard]] std::vector<std::string> record_kinds(std::string_view ns);
    [[nodiscard]] std::uint64_t floor(std::optional<std::uint64_t>& known, std::string_view name);
    void raise_floor(std::optional<std::uint64_t>& known, std::string_view name,
                     std::uint64_t reached);
    void note_wait(const engine::JobRow& row);
    void update_record(const engine::RecordRow& row, ColumnSet changed);
    void begin_at(engine::StoreTime now);
    void forget_learned();

    Connection& connection_;
    Statements statements_;
    ColumnUpdates job_updates_;
    ColumnUpdates record_updates_;
    const LivenessFile* liveness_;
    UserSql user_sql_;
    engine::StoreTime now_{};
    bool made_news_ = false;

    // What is true as long as only this connection writes.
    KnownRows known_;
    std::optional<bool> somebody_waits_;  ///< In line for any lock or key.
    std::int64_t data_version_ = 0;

    // What this transaction has learned; emptied by `start` and by a rollback to a savepoint.
    std::string not_finished_;  ///< An id that no final job has.
    std::optional<std::int64_t> last_seq_;
    std::optional<std::uint64_t> epoch_floor_;
    std::optional<std::uint64_t> fence_floor_;
    std::map<std::string, engine::OwnerFate, std::less<>> fates_;

    // Where the search for standing lines goes on, so that one call never walks all lines.
    std::map<std::pair<engine::WaitFor, std::string>, engine::RecordKey> line_cursors_;
};

}  // namespace sekali::sqlite
