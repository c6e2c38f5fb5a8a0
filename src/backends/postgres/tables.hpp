#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/postgres/known_rows.hpp"
#include "backends/postgres/sql.hpp"
#include "engine/tables.hpp"

namespace sekali::postgres {

/// What a task needs and nobody has loaded yet; thrown through the task, which runs again later.
/// No `std::exception`, so that nothing on the way takes it for a failure.
struct Unforeseen {};

/// Thrown, like `Unforeseen`, through a task with effects of a handler's where those are to share
/// no transaction.
struct Apart {};

/// Rows that tasks asked for, to be loaded at once.
struct Wanted {
    std::set<std::string> jobs;
    std::set<std::string> finished;
    std::set<engine::RecordKey> records;
    std::set<engine::RecordKey> steps;
    std::set<std::pair<std::string, std::string>> locks;
    std::set<std::string> workers;
    std::set<engine::RecordKey> slots;  ///< Namespace, kind, unique key.
    std::set<engine::RecordKey> live_of_keys;
    std::set<std::tuple<std::string, engine::WaitFor, std::string, std::string>> lines;
    std::size_t arrivals = 0;

    [[nodiscard]] bool empty() const {
        return jobs.empty() && finished.empty() && records.empty() && steps.empty() &&
               locks.empty() && workers.empty() && slots.empty() && live_of_keys.empty() &&
               lines.empty() && arrivals == 0;
    }
    void add(const Wanted& other);
};

/// The rows of one open transaction, kept here between a few statements that load and lock many at
/// once and a few that write many back: the unit of work.
///
/// A row is locked when it is read, so that what a task decided stays true until the commit; a row
/// that was not there is protected by its unique index, and whoever comes second runs again. A set
/// of rows (a line, a slot, a list) is asked for after what was changed has been written, by a
/// statement of its own, so that it sees what was committed before the locks were had.
class PostgresTables final : public engine::Tables {
 public:
    /// How a task that asks for what is not loaded gets it.
    enum class Mode : std::uint8_t {
        kForesee,   ///< Notes it in `wanted()` and leaves the task by `Unforeseen`.
        kRehearse,  ///< As `kForesee`; nothing reaches the server, handlers' own writes neither.
        kDirect,    ///< Loads it at once.
        kReadOnly,  ///< As `kDirect`, without locks.
        /// As `kDirect`, but the transaction is somebody else's and may last: writes at once, and
        /// locks only what it changes.
        kWriteThrough,
    };

    /// `known`: what may be assumed and is proven by the server at the commit; none: nothing is.
    PostgresTables(const Statements& sql, const PostgresOptions& options,
                   KnownRows* known = nullptr)
        : sql_(sql), options_(options), known_(known) {}

    // ---- the life of a unit
    /// Forgets everything; `channel` is where the transaction is open.
    void start(Channel& channel, Mode mode);
    /// For a unit of tasks: how many there are, whether it may assume, and whether a task with
    /// effects leaves by `Apart` unless it is the only one.
    void start_unit(Channel& channel, std::size_t tasks, bool may_assume, bool keeps_apart);
    /// Makes the end of handlers' own writes prove that their constraints hold, which costs a round
    /// trip; else they are checked by the commit, where nobody knows whose they are.
    void check_effects() { checks_effects_ = true; }
    /// Whether nothing of others is in the transaction.
    [[nodiscard]] bool is_alone() const { return is_alone_; }
    /// Whether handlers' own writes are part of the unit.
    [[nodiscard]] bool has_effects() const { return has_effects_; }
    void set_mode(Mode mode) { mode_ = mode; }
    [[nodiscard]] Mode mode() const { return mode_; }
    /// Remembers where a task begins.
    void begin_task();
    /// Undoes what the task changed here. Not to be called once it was written.
    void undo_task();
    /// Whether what this task changed has been written already.
    [[nodiscard]] bool task_was_written() const { return task_was_written_; }
    /// What tasks asked for in vain since the last load.
    [[nodiscard]] const Wanted& wanted() const { return wanted_; }
    /// Whether the task left because it needs a query that must see what the unit has changed.
    [[nodiscard]] bool wants_query() const { return wants_query_; }
    /// Loads what is wanted, locks it in the one order, and looks at the clock.
    void load(const Wanted& wanted);
    [[nodiscard]] bool is_dirty() const;
    /// Before statements of sekali's own follow those of a user.
    void plan_by_index();
    /// Writes what changed.
    void flush();
    /// The statements that write what changed, to be sent along with the commit.
    [[nodiscard]] std::vector<Command> take_changes();
    /// Whether a task relied on something that no statement of this unit proves.
    [[nodiscard]] bool has_unproven() const;
    /// Whether anything was assumed.
    [[nodiscard]] bool has_assumed() const { return has_assumed_; }
    /// Remembers for later units what this one has committed as that transaction.
    void keep_known(Xid version);
    /// Whether this transaction made something ready or ended something.
    [[nodiscard]] bool made_news() const { return made_news_; }
    /// The clock stands still for the transaction once a task relies on it.
    void keep_time() { time_is_kept_ = true; }
    [[nodiscard]] bool has_looked() const { return has_looked_; }
    /// Whether anything of this transaction has been written already.
    [[nodiscard]] bool has_written() const { return has_written_; }

    // ---- engine::Tables
    [[nodiscard]] engine::StoreTime now() const override;
    [[nodiscard]] bool is_far() const override { return true; }
    void foresee(const engine::Footprint& rows) override;

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

 private:
    enum class Place : std::uint8_t { kNone, kLive, kFinal };
    struct JobEntry {
        Place stored = Place::kNone;  ///< Where it is in the database.
        Place place = Place::kNone;   ///< Where the unit has it.
        bool live_known = false;      ///< The live jobs have been looked through for it.
        bool final_known = false;
        bool dirty = false;
        bool written = false;   ///< By this unit.
        ColumnSet changed = 0;  ///< Of `moving_fields()`, where a live row is to be written.
        Xid version{};          ///< Of a row that was assumed; none once it is locked.
        engine::JobRow row{};
        std::string payload{};  ///< Of a job that is not stored yet.
    };
    template <typename Row>
    struct Entry {
        bool stored = false;
        bool dirty = false;
        std::optional<Row> row{};
        bool written = false;
        ColumnSet changed = 0;  ///< Of a record, behind its key.
        Xid version{};
        bool absence_assumed = false;
    };
    struct StepsEntry {
        std::vector<engine::StepRow> rows;
        std::set<std::string> dirty;
        bool erased = false;  ///< What is stored goes before what is dirty is written.
    };
    using LockName = std::pair<std::string, std::string>;
    using LineName = std::tuple<std::string, engine::WaitFor, std::string, std::string>;

    void forget_rows();

    /// Namespace, what is waited for, kind and name as four arrays.
    [[nodiscard]] static Parameters arrays_of(const std::set<LineName>& lines);

    // ---- assuming (tables_assumed.cpp)
    [[nodiscard]] bool assume_job(const std::string& id);
    [[nodiscard]] bool assume_record(const engine::RecordKey& key);
    [[nodiscard]] bool assume_lock(const LockName& name);
    /// That nobody waits for a record or lock that was assumed itself.
    [[nodiscard]] bool assume_empty(const LineName& line);
    void assume_time();
    /// The proof of the empty lines, behind the statements that lock what they wait for.
    void check_lines(std::vector<Command>& out);

    // ---- loading
    [[noreturn]] void leave() const { throw Unforeseen{}; }
    /// Ends the foreseeing of a task that needs a query of its own, and writes what that must see.
    void query_begins();
    ResultPtr query(const Sql& sql, Parameters arguments);
    [[nodiscard]] bool foresees() const {
        return mode_ == Mode::kForesee || mode_ == Mode::kRehearse;
    }
    [[nodiscard]] bool locks_rows() const {
        return mode_ != Mode::kReadOnly && mode_ != Mode::kWriteThrough;
    }
    [[nodiscard]] const Sql& form(const LockingSql& sql) const {
        return locks_rows() ? sql.locking : sql.plain;
    }
    void need(const std::function<void(Wanted&)>& want);
    struct Load {
        Command command;
        std::function<void(const PGresult*)> take;
    };
    void load_locks(const Wanted& wanted, std::vector<Load>& loads);
    void load_records(const Wanted& wanted, std::vector<Load>& loads);
    void load_jobs(const Wanted& wanted, std::vector<Load>& loads);
    void load_job_sets(const Wanted& wanted, std::vector<Load>& loads);
    void load_steps(const Wanted& wanted, std::vector<Load>& loads);
    void load_others(const Wanted& wanted, std::vector<Load>& loads);
    /// The unit's view of a job that was read and locked.
    const engine::JobRow& absorb(engine::JobRow row, Place place);
    std::vector<engine::JobRow> absorb_live(const PGresult* result);
    void look(const PGresult* result);

    // ---- overlay
    JobEntry& live_entry(std::string_view id);
    JobEntry& final_entry(std::string_view id);
    void change(JobEntry& entry, engine::JobRow row, Place place);
    /// Locks a row that was read without, and refuses one that has changed since.
    void lock_unchanged(const JobEntry& entry);
    void lock_unchanged(const Entry<engine::RecordRow>& entry);
    void note_moves(const engine::JobRow& row);
    [[nodiscard]] static LineName line_of(const engine::JobRow& row);
    /// Notes how an entry was, so that the task can be undone.
    template <typename Value>
    void remember(Value& value) {
        undo_.push_back([&value, before = value] { value = before; });
    }
    Entry<engine::RecordRow>& record_entry(const engine::RecordKey& key);
    Entry<engine::LockRow>& lock_entry(const LockName& name);
    StepsEntry& steps_entry(const engine::RecordKey& key);
    /// A row has changed here.
    void changed();
    /// A statement that changes rows is about to run.
    void writes();
    /// Behind effects that had the connection itself: what is wrong with how they left it.
    std::optional<std::string> take_back_connection();
    Result<void> check_constraints();
    /// Undoes all, the user's savepoint included, and goes on in a new transaction.
    void begin_again();
    std::vector<engine::RecordKey> standing(const Sql& sql, engine::WaitFor wait,
                                            std::string_view ns, std::size_t limit);
    [[nodiscard]] std::vector<JobEntry*> dirty_jobs();
    /// Writes the columns that have changed, and what `behind` adds.
    static void write_changed(std::vector<Command>& out, const Variants& sql,
                              const std::vector<JobEntry*>& entries,
                              std::initializer_list<std::span<const Field<engine::JobRow>>> behind);
    void insert_new(std::vector<Command>& out, const std::vector<JobEntry*>& entries);
    void changed_jobs(std::vector<Command>& out);
    void changed_records(std::vector<Command>& out);
    void changed_steps(std::vector<Command>& out);
    void changed_locks(std::vector<Command>& out);
    void changed_history(std::vector<Command>& out);

    const Statements& sql_;
    const PostgresOptions& options_;
    KnownRows* const known_;
    Channel* channel_ = nullptr;
    Mode mode_ = Mode::kDirect;
    bool may_assume_ = false;
    bool has_assumed_ = false;
    bool time_is_assumed_ = false;
    bool is_alone_ = true;  ///< The unit has one task.
    bool keeps_apart_ = false;
    bool has_effects_ = false;
    bool checks_effects_ = false;
    bool in_savepoint_ = false;
    bool plans_freely_ = false;  ///< As users' statements are to be planned.
    /// Rows were written by a subtransaction, whose number nobody has asked for.
    bool version_is_unknown_ = false;

    engine::StoreTime now_{};
    std::chrono::steady_clock::time_point asked_{};  ///< When the last load was sent.
    bool has_looked_ = false;
    bool time_is_kept_ = false;
    bool made_news_ = false;
    bool had_news_ = false;  ///< Before the task at hand.
    std::uint64_t epoch_floor_ = 0;
    std::uint64_t fence_floor_ = 0;
    std::uint64_t stored_epoch_floor_ = 0;
    std::uint64_t stored_fence_floor_ = 0;

    std::unordered_map<std::string, JobEntry> jobs_;
    std::map<engine::RecordKey, Entry<engine::RecordRow>> records_;
    std::map<engine::RecordKey, StepsEntry> steps_;
    std::map<LockName, Entry<engine::LockRow>> locks_;
    std::map<std::string, Entry<engine::WorkerRow>, std::less<>> workers_;
    std::vector<std::int64_t> arrivals_;  ///< Numbers for new jobs, the next one last.
    // What was found by these questions when they were asked.
    std::map<engine::RecordKey, std::optional<std::string>> slots_;
    std::map<LineName, std::optional<std::string>> lines_;
    std::set<LineName> assumed_lines_;
    std::map<engine::RecordKey, std::optional<engine::JobRow>> live_of_keys_;
    // Where the unit has changed something since, so that the answer above is out of date.
    std::set<engine::RecordKey> moved_slots_;
    std::set<engine::RecordKey> moved_keys_;
    std::set<LineName> moved_lines_;
    std::vector<engine::AttemptRow> attempts_;
    std::vector<engine::EventRow> events_;

    Wanted wanted_;
    std::vector<std::function<void()>> undo_;
    std::size_t task_attempts_ = 0;
    std::size_t task_events_ = 0;
    bool task_was_written_ = false;
    bool has_written_ = false;
    bool wants_query_ = false;
    /// How far along the lines recovery has looked, by what they wait for and namespace.
    std::map<std::pair<engine::WaitFor, std::string>, engine::RecordKey> line_cursors_;
};

}  // namespace sekali::postgres
