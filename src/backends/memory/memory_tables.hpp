#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/memory/history.hpp"
#include "backends/memory/job_table.hpp"
#include "backends/memory/undo_log.hpp"
#include "engine/tables.hpp"

namespace sekali::memory {

/// The rows of a `MemoryStore`. Every write leaves its inverse in the undo log; the store decides
/// whether a transaction's are forgotten or run. Not thread-safe.
class MemoryTables final : public engine::Tables {
 public:
    using StoreTime = engine::StoreTime;
    using JobRow = engine::JobRow;
    using RecordKey = engine::RecordKey;
    using RecordRow = engine::RecordRow;
    using LockRow = engine::LockRow;
    using StepRow = engine::StepRow;

    void set_now(StoreTime now) { now_ = now; }
    void set_fate(const std::string& worker, engine::OwnerFate fate) { fates_[worker] = fate; }
    [[nodiscard]] UndoLog& undo() { return undo_; }

    [[nodiscard]] StoreTime now() const override { return now_; }

    std::optional<JobRow> job(std::string_view id) override;
    bool insert_job(JobRow& row) override;
    void update_job(const JobRow& row) override;
    void finish_job(const JobRow& row) override;
    std::optional<JobRow> finished_job(std::string_view id) override;
    void insert_finished(const JobRow& row) override;
    void revive_job(const JobRow& row) override;
    void erase_finished(std::string_view id) override;
    std::string payload(std::string_view job_id) override;
    std::size_t promote_due(std::string_view ns, std::size_t limit) override;
    std::vector<JobRow> claimable(const engine::ClaimSpec& spec) override;
    std::vector<JobRow> lapsed_jobs(std::string_view ns, const std::vector<std::string>& kinds,
                                    std::int64_t after_seq, std::size_t limit) override;
    std::uint64_t count_begun(std::string_view owner) override { return jobs_.load(owner).begun; }
    bool has_jobs_of(std::string_view owner) override { return jobs_.load(owner).running > 0; }
    std::vector<engine::JobRow> running_jobs_of(std::string_view ns,
                                                std::string_view owner) override;
    std::optional<JobRow> unique_holder(std::string_view ns, std::string_view kind,
                                        std::string_view unique_key) override;
    std::optional<JobRow> first_waiting(std::string_view ns, engine::WaitFor wait,
                                        std::string_view kind, std::string_view name) override;
    bool has_live_or_dead_job(const RecordKey& key) override;
    std::optional<JobRow> live_job_of_key(const RecordKey& key) override;
    std::optional<StoreTime> next_run_at(const engine::ClaimSpec& spec) override;
    bool has_drainable(const engine::ClaimSpec& spec) override;
    engine::Page<JobRow> list_jobs(const engine::JobFilter& filter) override;

    std::optional<RecordRow> record(const RecordKey& key) override;
    void put_record(const RecordRow& row) override;
    void erase_record(const RecordKey& key) override;
    std::uint64_t epoch_floor() override { return epoch_floor_; }
    std::vector<RecordRow> prunable_records(std::string_view ns, std::size_t limit) override;
    std::vector<RecordRow> stale_records(std::string_view ns, std::size_t limit) override;

    std::vector<StepRow> steps(const RecordKey& key) override;
    void put_step(const StepRow& row) override;
    void erase_steps(const RecordKey& key) override;

    std::optional<LockRow> lock(std::string_view ns, std::string_view name) override;
    void put_lock(const LockRow& row) override;
    void erase_lock(std::string_view ns, std::string_view name) override;
    std::uint64_t fence_floor() override { return fence_floor_; }
    std::vector<LockRow> held_locks(std::string_view ns) override;
    std::vector<LockRow> idle_locks(std::string_view ns, StoreTime before,
                                    std::size_t limit) override;
    std::vector<std::string> stalled_lines(std::string_view ns, std::size_t limit) override;
    std::vector<RecordKey> stalled_keys(std::string_view ns, std::size_t limit) override;

    void add_attempt(const engine::AttemptRow& row) override;
    void add_event(const engine::EventRow& row) override;
    std::vector<engine::AttemptRow> attempts_of_key(const RecordKey& key) override;
    std::vector<engine::EventRow> events_of_key(const RecordKey& key) override;
    std::vector<JobRow> jobs_of_key(std::string_view ns, std::string_view kind,
                                    std::string_view key) override;
    std::vector<std::string> kinds_of_key(std::string_view ns, std::string_view key) override;
    std::vector<std::string> nearest_keys(std::string_view ns, std::string_view key,
                                          std::size_t limit) override;
    std::size_t prune_history(std::string_view ns, StoreTime before, std::size_t limit) override;

    void put_worker(const engine::WorkerRow& row) override;
    std::optional<engine::WorkerRow> worker(std::string_view id) override;
    void erase_worker(std::string_view id) override;
    std::vector<engine::WorkerRow> workers(std::string_view ns) override;
    engine::OwnerFate owner_fate(std::string_view worker_id) override;
    std::optional<engine::QueueRow> queue(std::string_view ns, std::string_view name) override;
    void put_queue(const engine::QueueRow& row) override;
    std::vector<engine::QueueCounts> queue_counts(std::string_view ns) override;

    Result<void> run_effects(const std::function<Result<void>(Transaction&)>& effects) override;

 private:
    /// Namespace and name of a lock or queue; a tuple, because pairs have no lookup by views.
    using Name = std::tuple<std::string, std::string>;
    /// Namespace, end of retention, record.
    using Expiry = std::tuple<std::string, StoreTime, RecordKey>;
    /// Record, job id, epoch and worker: epochs count for a record, and an id that was pruned may
    /// come back under another key.
    using AttemptRun = std::tuple<RecordKey, std::string, std::uint64_t, std::string>;
    static AttemptRun run_of(const engine::AttemptRow& row) {
        return {{row.ns, row.kind, row.key}, row.job_id, row.epoch, row.worker};
    }
    /// Payload bytes by job id, apart from the rows, so that reading a row never copies them.
    using Payloads = std::map<std::string, std::string, std::less<>>;

    /// Puts the value under the key, or removes it; returns what was there.
    template <typename Map>
    static std::optional<typename Map::mapped_type> replace(
        Map& map, const typename Map::key_type& key,
        std::optional<typename Map::mapped_type> value) {
        std::optional<typename Map::mapped_type> before;
        const auto found = map.find(key);
        if (found != map.end()) before = std::move(found->second);
        if (value) {
            map.insert_or_assign(key, *std::move(value));
        } else if (found != map.end()) {
            map.erase(found);
        }
        return before;
    }
    /// The same, with its inverse in the undo log.
    template <typename Map>
    void set(Map& map, const typename Map::key_type& key,
             std::optional<typename Map::mapped_type> value) {
        auto before = replace(map, key, std::move(value));
        undo_.push([&map, key, before = std::move(before)]() mutable {
            replace(map, key, std::move(before));
        });
    }
    std::uint64_t next(std::uint64_t& counter);
    void raise(std::uint64_t& floor, std::uint64_t reached);
    template <typename Row>
    void append(History<Row>& history, const Row& row);
    template <typename Row>
    void drop(History<Row>& history, std::uint64_t id);

    void write_job(const JobRow& row);
    const JobRow& require_job(std::string_view id, bool live) const;
    void set_record(const RecordKey& key, std::optional<RecordRow> row);
    std::optional<RecordRow> replace_record(const RecordKey& key, std::optional<RecordRow> row);
    [[nodiscard]] bool paused(std::string_view ns, std::string_view queue) const;
    std::vector<JobTable::LineName> find_lines(
        std::string_view ns, engine::WaitFor wait, std::size_t limit,
        const std::function<bool(const JobTable::LineName&)>& stalled);
    [[nodiscard]] bool held_up(const JobTable::LineName& line);
    void index_record(const RecordRow& row, bool present);
    [[nodiscard]] std::set<RecordKey> known_keys(std::string_view ns) const;

    StoreTime now_{};
    UndoLog undo_;
    JobTable jobs_;
    Payloads payloads_;
    std::uint64_t last_seq_ = 0;
    std::uint64_t last_history_id_ = 0;
    std::map<RecordKey, RecordRow> records_;
    std::set<Expiry> expiring_records_;
    std::set<RecordKey> open_records_;
    std::uint64_t epoch_floor_ = 0;
    std::map<RecordKey, std::vector<StepRow>> steps_;
    std::map<Name, LockRow, std::less<>> locks_;
    std::uint64_t fence_floor_ = 0;
    History<engine::AttemptRow> attempts_;
    std::set<AttemptRun> attempt_runs_;
    History<engine::EventRow> events_;
    std::map<std::string, engine::WorkerRow, std::less<>> workers_;
    std::map<Name, engine::QueueRow, std::less<>> queues_;
    std::map<std::string, engine::OwnerFate, std::less<>> fates_;
    std::map<std::pair<std::string, engine::WaitFor>, JobTable::LineName> last_line_seen_;
};

}  // namespace sekali::memory
