#include "observe/status.hpp"

#include <algorithm>

#include "observe/job_view.hpp"

namespace sekali::observe {

using engine::Millis;

namespace {

std::uint64_t count_of(const engine::QueueCounts& counts, engine::JobState state) {
    const auto found = counts.by_state.find(std::string(engine::to_string(state)));
    return found == counts.by_state.end() ? 0 : found->second;
}

std::uint64_t count_dead(engine::Tables& tables, std::string_view ns, std::uint64_t limit) {
    constexpr std::size_t kPage = 1000;
    engine::JobFilter filter;
    filter.ns = ns;
    filter.state = engine::to_string(engine::JobState::kDead);
    std::uint64_t dead = 0;
    while (dead < limit) {
        filter.limit = static_cast<std::size_t>(std::min<std::uint64_t>(kPage, limit - dead));
        engine::Page<engine::JobRow> page = tables.list_jobs(filter);
        dead += page.items.size();
        if (page.next.empty()) break;
        filter.after = std::move(page.next);
    }
    return dead;
}

Millis age(const QueueStatus& queue, engine::StoreTime now) {
    if (!queue.oldest_ready_at) return Millis{0};
    return std::max(Millis{0}, now - *queue.oldest_ready_at);
}

}  // namespace

std::uint64_t Status::ready() const {
    std::uint64_t sum = 0;
    for (const QueueStatus& queue : queues)
        sum += queue.ready;
    return sum;
}

Millis Status::oldest_age() const {
    Millis oldest{0};
    for (const QueueStatus& queue : queues)
        oldest = std::max(oldest, age(queue, now));
    return oldest;
}

std::vector<std::string> Status::unserved() const {
    std::vector<std::string> names;
    for (const QueueStatus& queue : queues) {
        const bool has_work = queue.ready + queue.scheduled + queue.waiting + queue.running > 0;
        if (has_work && queue.live_workers == 0) names.push_back(queue.name);
    }
    return names;
}

std::vector<QueueStatus> read_queues(engine::Tables& tables, std::string_view ns) {
    using engine::JobState;
    std::vector<QueueStatus> queues;
    for (engine::QueueCounts& counts : tables.queue_counts(ns)) {
        QueueStatus queue;
        queue.name = std::move(counts.queue);
        queue.paused = counts.paused;
        queue.scheduled = count_of(counts, JobState::kScheduled);
        queue.ready = count_of(counts, JobState::kReady);
        queue.waiting = count_of(counts, JobState::kWaiting);
        queue.running = count_of(counts, JobState::kRunning);
        queue.held = count_of(counts, JobState::kHeld);
        queue.oldest_ready_at = counts.oldest_ready;
        queue.live_workers = counts.live_workers;
        queues.push_back(std::move(queue));
    }
    std::sort(queues.begin(), queues.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return queues;
}

Status read_status(engine::Tables& tables, std::string_view ns, std::uint64_t dead_limit) {
    Status status;
    status.now = tables.now();
    status.queues = read_queues(tables, ns);
    status.workers = Surroundings(tables, ns).workers().size();
    for (const QueueStatus& queue : status.queues)
        status.held += queue.held;
    status.dead = count_dead(tables, ns, dead_limit);
    return status;
}

void write_queue(base::JsonWriter& json, const QueueStatus& queue, engine::StoreTime now) {
    std::optional<std::string> oldest;
    if (queue.oldest_ready_at) oldest = shown_time(*queue.oldest_ready_at);
    json.begin_object().field("queue", queue.name).field("paused", queue.paused);
    json.field("scheduled", queue.scheduled).field("ready", queue.ready);
    json.field("waiting", queue.waiting).field("running", queue.running);
    json.field("held", queue.held).field("oldest_ready_at", oldest);
    json.field("oldest_age_ms", age(queue, now).count());
    json.field("live_workers", queue.live_workers).end_object();
}

void write_status(base::JsonWriter& json, const Status& status, std::string_view ns) {
    json.begin_object().field("namespace", ns).field("at", shown_time(status.now));
    json.field("workers", status.workers).field("ready", status.ready());
    json.field("held", status.held).field("dead", status.dead);
    json.field("oldest_age_ms", status.oldest_age().count());
    json.field("unserved").begin_array();
    for (const std::string& name : status.unserved())
        json.value(name);
    json.end_array().field("queues").begin_array();
    for (const QueueStatus& queue : status.queues)
        write_queue(json, queue, status.now);
    json.end_array().end_object();
}

std::vector<CheckResult> check_status(const Status& status, const CheckLimits& limits) {
    std::vector<CheckResult> results;
    const auto at_most = [&](const char* name, const char* unit, std::uint64_t value,
                             const std::optional<std::uint64_t>& limit) {
        if (limit) results.push_back({name, unit, value, *limit, value <= *limit});
    };
    std::optional<std::uint64_t> max_age;
    if (limits.max_age) max_age = static_cast<std::uint64_t>(limits.max_age->count());
    at_most("max-age", "ms", static_cast<std::uint64_t>(status.oldest_age().count()), max_age);
    at_most("max-ready", "jobs", status.ready(), limits.max_ready);
    at_most("max-held", "jobs", status.held, limits.max_held);
    at_most("max-dead", "jobs", status.dead, limits.max_dead);
    at_most("max-unserved", "queues", status.unserved().size(), limits.max_unserved);
    if (limits.min_workers) {
        results.push_back({"min-workers", "workers", status.workers, *limits.min_workers,
                           status.workers >= *limits.min_workers});
    }
    return results;
}

}  // namespace sekali::observe
