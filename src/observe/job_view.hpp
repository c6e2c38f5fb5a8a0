#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "engine/tables.hpp"

namespace sekali::observe {

/// Who works in a namespace and what is paused there, as one transaction sees it. Must not outlive
/// the transaction.
class Surroundings {
 public:
    Surroundings(engine::Tables& tables, std::string_view ns);

    [[nodiscard]] engine::StoreTime now() const { return now_; }
    [[nodiscard]] bool is_paused(const std::string& queue);
    /// Whether a live worker takes jobs of the queue.
    [[nodiscard]] bool is_served(std::string_view queue) const;
    /// Whether a live worker of the queue has a handler for the kind.
    [[nodiscard]] bool is_handled(std::string_view queue, std::string_view kind) const;
    /// Live workers, oldest first.
    [[nodiscard]] const std::vector<engine::WorkerRow>& workers() const { return workers_; }

 private:
    engine::Tables& tables_;
    std::string ns_;
    engine::StoreTime now_;
    std::vector<engine::WorkerRow> workers_;
    std::map<std::string, bool> paused_;
};

/// A job as people see it.
struct JobView {
    engine::JobRow row;
    /// The stored state, but for a ready job that cannot be claimed: that one waits.
    engine::JobState state{};
    std::string waiting_for;  ///< `lock:NAME`, `key:KEY`, `pause`, `handler`; empty: nothing.
};

[[nodiscard]] JobView view_job(engine::JobRow row, Surroundings& surroundings);

/// Writes the job as an item: every field, absent ones as `null`.
void write_item(base::JsonWriter& json, const JobView& job);
/// The same fields into an object that is open.
void write_item_fields(base::JsonWriter& json, const JobView& job);

/// A result as it is shown: JSON where it is JSON, on one line, else a string; `null` when empty.
void write_result(base::JsonWriter& json, std::string_view result);

/// A moment of the store's clock in RFC 3339, UTC.
[[nodiscard]] std::string shown_time(engine::StoreTime time);

/// A page of jobs whose shown state is the filter's. `after` is the `next` of an earlier page; one
/// that is not is refused with `kUsage`.
[[nodiscard]] engine::Page<JobView> list_jobs(engine::Tables& tables,
                                              const engine::JobFilter& filter);

/// The job by its id, live or ended.
[[nodiscard]] std::optional<JobView> find_job(engine::Tables& tables, std::string_view ns,
                                              std::string_view id);

}  // namespace sekali::observe
