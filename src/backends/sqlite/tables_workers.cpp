#include <nlohmann/json.hpp>

#include "backends/sqlite/rows.hpp"
#include "backends/sqlite/tables.hpp"

// Workers, their liveness, and queues.
namespace sekali::sqlite {
namespace {

using engine::OwnerFate;
using engine::QueueCounts;
using engine::WorkerRow;

/// A liveness row without a worker row is of use until every lease of its process has lapsed; a day
/// is longer than any.
constexpr engine::Millis kLivenessKept = std::chrono::hours{24};

}  // namespace

void SqliteTables::put_worker(const WorkerRow& row) {
    const std::string queues = nlohmann::json(row.queues).dump();
    const std::string kinds = nlohmann::json(row.kinds).dump();
    Query(statements_, Sql::kPutWorker, row.id, row.ns, row.host, row.pid, queues, kinds,
          row.concurrency, row.started_at, row.lease_until, row.stopping, row.death_company)
        .run();
}

std::optional<WorkerRow> SqliteTables::worker(std::string_view id) {
    Query query(statements_, Sql::kWorker, id);
    if (!query.next()) return std::nullopt;
    return take_worker(query);
}

void SqliteTables::erase_worker(std::string_view id) {
    // Its liveness row stays until it is swept: records may still name it as their owner.
    Query(statements_, Sql::kDeleteWorker, id).run();
}

std::vector<WorkerRow> SqliteTables::workers(std::string_view ns) {
    Query query(statements_, Sql::kWorkers, ns);
    std::vector<WorkerRow> rows;
    while (query.next())
        rows.push_back(take_worker(query));
    return rows;
}

OwnerFate SqliteTables::owner_fate(std::string_view worker_id) {
    if (liveness_ == nullptr) return OwnerFate::kUnknown;
    const auto known = fates_.find(worker_id);
    if (known != fates_.end()) return known->second;
    OwnerFate fate = OwnerFate::kUnknown;
    Query query(statements_, Sql::kLiveness, worker_id);
    if (query.next()) {
        const auto file = query.take<std::string>();
        fate = liveness_->fate(file, query.take<std::int64_t>());
    }
    fates_.emplace(worker_id, fate);
    return fate;
}

void SqliteTables::put_liveness(std::string_view worker_id, std::string_view file,
                                std::int64_t place) {
    Query(statements_, Sql::kPutLiveness, worker_id, file, place, now_).run();
}

void SqliteTables::sweep_liveness(std::size_t limit) {
    std::vector<std::string> gone;
    {
        Query query(statements_, Sql::kOldLiveness, now_ - kLivenessKept, limit);
        while (query.next())
            gone.push_back(query.take<std::string>());
    }
    for (const std::string& worker_id : gone) {
        if (owner_fate(worker_id) == OwnerFate::kAlive) continue;
        Query(statements_, Sql::kDeleteLiveness, worker_id).run();
    }
}

std::optional<engine::QueueRow> SqliteTables::queue(std::string_view ns, std::string_view name) {
    Query query(statements_, Sql::kQueue, ns, name);
    if (!query.next()) return std::nullopt;
    return engine::QueueRow{std::string(ns), std::string(name), query.take<bool>()};
}

void SqliteTables::put_queue(const engine::QueueRow& row) {
    Query(statements_, Sql::kPutQueue, row.ns, row.name, row.paused).run();
    made_news_ = true;
}

std::vector<QueueCounts> SqliteTables::queue_counts(std::string_view ns) {
    std::map<std::string, QueueCounts> counts;
    Query jobs(statements_, Sql::kLiveCounts, ns);
    while (jobs.next()) {
        QueueCounts& queue = counts[jobs.take<std::string>()];
        const auto state = jobs.take<engine::JobState>();
        queue.by_state[std::string(to_string(state))] = jobs.take<std::uint64_t>();
        if (state == engine::JobState::kReady) jobs.take_into(queue.oldest_ready);
    }
    Query queues(statements_, Sql::kQueues, ns);
    while (queues.next()) {
        QueueCounts& queue = counts[queues.take<std::string>()];
        queues.take_into(queue.paused);
    }
    for (const WorkerRow& worker : workers(ns)) {
        if (worker.lease_until <= now_) continue;
        for (const std::string& name : worker.queues)
            ++counts[name].live_workers;
    }
    std::vector<QueueCounts> list;
    for (auto& [name, queue] : counts) {
        queue.queue = name;
        list.push_back(std::move(queue));
    }
    return list;
}

}  // namespace sekali::sqlite
