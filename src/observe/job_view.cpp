#include "observe/job_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/json_check.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace sekali::observe {

using engine::JobRow;
using engine::JobState;
using engine::StoreTime;
using engine::WaitFor;

namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Surroundings::Surroundings(engine::Tables& tables, std::string_view ns)
    : tables_(tables), ns_(ns), now_(tables.now()) {
    for (engine::WorkerRow& worker : tables.workers(ns)) {
        const bool lives =
            worker.lease_until > now_ && tables.owner_fate(worker.id) != engine::OwnerFate::kDead;
        if (lives && !worker.stopping) workers_.push_back(std::move(worker));
    }
    std::stable_sort(workers_.begin(), workers_.end(),
                     [](const auto& a, const auto& b) { return a.started_at < b.started_at; });
}

bool Surroundings::is_paused(const std::string& queue) {
    const auto [known, is_new] = paused_.try_emplace(queue, false);
    if (is_new) {
        const auto row = tables_.queue(ns_, queue);
        known->second = row && row->paused;
    }
    return known->second;
}

bool Surroundings::is_served(std::string_view queue) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const engine::WorkerRow& worker) {
        return contains(worker.queues, queue);
    });
}

bool Surroundings::is_handled(std::string_view queue, std::string_view kind) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const engine::WorkerRow& worker) {
        return contains(worker.queues, queue) && contains(worker.kinds, kind);
    });
}

JobView view_job(JobRow row, Surroundings& surroundings) {
    JobView view;
    view.state = row.state;
    if (row.state == JobState::kWaiting) {
        view.waiting_for =
            (row.waiting_for == WaitFor::kLock ? "lock:" : "key:") + row.waiting_name;
    }
    // Only a worker promotes what is due; where there is none it is ready all the same.
    const bool due = row.state == JobState::kScheduled && row.run_at <= surroundings.now();
    if (due) view.state = JobState::kReady;
    if (view.state == JobState::kReady) {
        const bool unhandled = surroundings.is_served(row.job.queue) &&
                               !surroundings.is_handled(row.job.queue, row.job.kind);
        if (surroundings.is_paused(row.job.queue)) {
            view.waiting_for = "pause";
        } else if (unhandled) {
            view.waiting_for = "handler";
        }
        if (!view.waiting_for.empty()) view.state = JobState::kWaiting;
    }
    view.row = std::move(row);
    return view;
}

namespace {

/// Valid JSON without the white space between its tokens, which could hold line breaks.
std::string on_one_line(std::string_view json) {
    std::string out;
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (in_string && c == '\\') {
            out += c;
            out += json[++i];
            continue;
        }
        if (c == '"') in_string = !in_string;
        const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (in_string || !space) out += c;
    }
    return out;
}

void write_text(base::JsonWriter& json, std::string_view name, std::string_view text) {
    json.field(name);
    text.empty() ? json.value(nullptr) : json.value(text);
}

}  // namespace

void write_result(base::JsonWriter& json, std::string_view result) {
    if (result.empty()) {
        json.value(nullptr);
    } else if (base::check_json(result, base::kMaxResultBytes, base::kMaxJsonDepth)) {
        json.raw(on_one_line(result));
    } else {
        json.value(result);
    }
}

std::string shown_time(StoreTime time) {
    return base::format_instant(time.time_since_epoch().count());
}

void write_item(base::JsonWriter& json, const JobView& view) {
    json.begin_object();
    write_item_fields(json, view);
    json.end_object();
}

void write_item_fields(base::JsonWriter& json, const JobView& view) {
    const JobRow& row = view.row;
    std::optional<std::string> finished_at;
    if (row.finished_at) finished_at = shown_time(*row.finished_at);
    json.field("id", row.job.id).field("kind", row.job.kind).field("queue", row.job.queue);
    json.field("state", engine::to_string(view.state)).field("key", row.job.key);
    write_text(json, "lock_key", row.job.lock_key);
    write_text(json, "unique_key", row.job.unique_key);
    json.field("attempts", row.attempts).field("crashes", row.crashes);
    json.field("deliveries", row.deliveries).field("epoch", row.epoch);
    json.field("max_attempts", row.job.retry.max_attempts.value_or(RetryPolicy{}.max_attempts));
    json.field("priority", row.job.priority);
    json.field("enqueued_at", shown_time(row.enqueued_at));
    json.field("run_at", shown_time(row.run_at)).field("finished_at", finished_at);
    write_text(json, "worker", row.owner);
    write_text(json, "waiting_for", view.waiting_for);
    json.field("result");
    write_result(json, row.result);
    write_text(json, "error", row.error);
    write_text(json, "reason", row.reason);
}

namespace {

/// The stored states among which jobs of a shown state are found, in the order they are listed.
std::vector<JobState> stored_states(JobState shown) {
    switch (shown) {
        case JobState::kWaiting:
            return {JobState::kWaiting, JobState::kReady, JobState::kScheduled};
        case JobState::kReady:
            return {JobState::kReady, JobState::kScheduled};
        default:
            return {shown};
    }
}

/// Walks the jobs of one shown state through its stored states; `after` is `N:TOKEN`, where N is
/// the index of the stored state and TOKEN the store's own.
class ShownStateWalk {
 public:
    ShownStateWalk(engine::Tables& tables, const engine::JobFilter& filter, JobState shown)
        : tables_(tables),
          filter_(filter),
          shown_(shown),
          states_(stored_states(shown)),
          surroundings_(tables, filter.ns) {
        if (filter.after.empty()) return;
        const std::size_t index = static_cast<unsigned char>(filter.after.front()) - '0';
        if (filter.after.size() < 2 || filter.after[1] != ':' || index >= states_.size()) {
            throw Failure(base::usage_error(
                fmt::format("--after {} is no `next` of this list", base::quoted(filter.after))));
        }
        index_ = index;
        filter_.after = filter.after.substr(2);
    }

    engine::Page<JobView> page() {
        engine::Page<JobView> out;
        const std::size_t wanted = filter_.limit;
        while (index_ < states_.size() && out.items.size() < wanted) {
            filter_.state = engine::to_string(states_[index_]);
            filter_.limit = wanted - out.items.size();
            engine::Page<JobRow> found = tables_.list_jobs(filter_);
            for (JobRow& row : found.items) {
                JobView view = view_job(std::move(row), surroundings_);
                if (view.state == shown_) out.items.push_back(std::move(view));
            }
            filter_.after = std::move(found.next);
            if (filter_.after.empty()) ++index_;
        }
        if (index_ < states_.size()) out.next = fmt::format("{}:{}", index_, filter_.after);
        return out;
    }

 private:
    engine::Tables& tables_;
    engine::JobFilter filter_;
    JobState shown_;
    std::vector<JobState> states_;
    std::size_t index_ = 0;
    Surroundings surroundings_;
};

}  // namespace

engine::Page<JobView> list_jobs(engine::Tables& tables, const engine::JobFilter& filter) {
    if (filter.state) {
        const std::optional<JobState> shown = engine::parse_job_state(*filter.state);
        if (!shown) {
            throw Failure(base::usage_error(
                fmt::format("--state {} is no state", base::quoted(*filter.state)),
                "states are scheduled, ready, waiting, running, held, succeeded, duplicate, dead, "
                "cancelled"));
        }
        return ShownStateWalk(tables, filter, *shown).page();
    }
    Surroundings surroundings(tables, filter.ns);
    engine::Page<JobRow> found = tables.list_jobs(filter);
    engine::Page<JobView> out;
    for (JobRow& row : found.items)
        out.items.push_back(view_job(std::move(row), surroundings));
    out.next = std::move(found.next);
    return out;
}

std::optional<JobView> find_job(engine::Tables& tables, std::string_view ns, std::string_view id) {
    std::optional<JobRow> row = tables.job(id);
    if (!row) row = tables.finished_job(id);
    if (!row || row->job.ns != ns) return std::nullopt;
    Surroundings surroundings(tables, ns);
    return view_job(*std::move(row), surroundings);
}

}  // namespace sekali::observe
