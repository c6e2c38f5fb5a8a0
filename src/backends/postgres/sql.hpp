#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/fields.hpp"

namespace sekali::postgres {

/// Puts the quoted schema in place of each `@`.
[[nodiscard]] std::string in_schema(std::string_view text, std::string_view schema);

/// A query that also exists in a form that locks what it finds until the transaction ends.
struct LockingSql {
    Sql plain;
    Sql locking;
};

/// A statement in forms that write ever more columns; the others stay as they are, or are zero in a
/// new row.
class Variants {
 public:
    struct Variant {
        ColumnSet columns;
        Sql sql;
    };
    /// The last one writes all.
    explicit Variants(std::vector<Variant> variants = {}) : variants_(std::move(variants)) {}
    /// The first that writes these.
    [[nodiscard]] const Variant& of(ColumnSet columns) const;
    [[nodiscard]] std::span<const Variant> all() const { return variants_; }

 private:
    std::vector<Variant> variants_;
};

/// Every statement of a store, for its schema. Those of a kind take their rows as arrays.
struct Statements {
    explicit Statements(std::string_view schema);
    /// A text of one's own with the schema in place of each `@`.
    [[nodiscard]] std::string qualified(std::string_view text) const {
        return in_schema(text, schema_);
    }

    // The transaction.
    Sql begin;
    Sql begin_read;
    Sql commit;
    Sql roll_back;
    Sql check_constraints;
    Sql savepoint;
    Sql savepoint_release;
    Sql savepoint_roll_back;
    Sql plan_freely;  ///< For users' statements, until the savepoint's end.
    Sql plan_by_index;
    Sql put_token;
    Sql take_token;
    /// Floors and the server's clock.
    Sql look_around;
    Sql arrivals;

    // Rows by their keys.
    LockingSql jobs;
    LockingSql finished;
    LockingSql records;
    Sql kept_records;  ///< As above; what is found cannot be pruned until the transaction ends.
    LockingSql locks;
    LockingSql workers;
    Sql steps;
    LockingSql slot_holders;
    LockingSql first_in_line;
    Sql lines_are_empty;  ///< Raises where somebody waits after all.
    Sql live_of_key;

    // Changed rows. The last argument of those that check is how many there must be.
    // Columns of `moving_fields()`.
    Variants insert_jobs;
    Variants update_jobs;
    Variants finish_jobs;
    Sql insert_finished;
    Sql revive_jobs;
    Sql delete_jobs;
    Sql delete_finished;
    // Columns of `record_fields()` behind the key.
    Variants insert_records;
    Variants update_records;
    Sql delete_records;
    Sql put_steps;
    Sql delete_steps;
    Sql insert_locks;
    Sql update_locks;
    Sql delete_locks;
    Sql add_attempts;
    Sql add_events;
    Sql put_workers;
    Sql delete_worker;
    Sql put_queue;
    Sql raise_floors;

    // Jobs.
    Sql payload;
    Sql promote_due;
    LockingSql claimable;
    LockingSql lapsed;
    Sql running_owners;
    Sql count_begun;
    Sql has_jobs_of;
    LockingSql running_jobs_of;
    Sql has_live_or_dead;
    Sql next_run_at;
    Sql has_drainable;
    Sql live_of_key_all;
    Sql finished_of_key_all;

    // Records, locks, lines.
    LockingSql prunable_records;
    Sql stale_records;
    Sql held_locks;
    Sql idle_locks;
    Sql stalled_lines;
    Sql stalled_keys;

    // History and people.
    Sql attempts_of_key;
    Sql events_of_key;
    Sql kinds_of_key;
    Sql neighbours;
    Sql prune_finished;
    Sql prune_attempts;
    Sql prune_events;
    Sql workers_of;
    Sql queue;
    Sql queues_of;
    Sql live_counts;

 private:
    class Maker;
    void make_transactions(Maker& make);
    void make_rows(Maker& make);
    void make_job_sets(Maker& make);
    void make_job_changes(Maker& make);
    void make_other_changes(Maker& make);
    void make_job_questions(Maker& make);
    void make_record_questions(Maker& make);
    void make_history(Maker& make);
    void make_people(Maker& make);

    std::string schema_;
};

/// The columns of jobs and of final jobs as `take_job` and `take_final_job` read them, each behind
/// `prefix`.
[[nodiscard]] std::string job_columns(std::string_view prefix);
[[nodiscard]] std::string final_columns(std::string_view prefix);

}  // namespace sekali::postgres
