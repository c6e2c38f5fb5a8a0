#include <algorithm>
#include <set>
#include <tuple>

#include "backends/sqlite/rows.hpp"
#include "backends/sqlite/tables.hpp"

// What is ready, running, waiting in line, or due.
namespace sekali::sqlite {
namespace {

using engine::ClaimSpec;
using engine::JobRow;
using engine::JobState;
using engine::RecordKey;
using engine::StoreTime;
using engine::WaitFor;

/// Lines that one search for standing lines looks at, so that a recovery pass stays short whatever
/// the number of lines; the next pass goes on from there.
constexpr std::size_t kLinesAtOnce = 1000;

std::string_view line_kind(WaitFor wait, std::string_view kind) {
    return wait == WaitFor::kLock ? std::string_view{} : kind;
}

}  // namespace

std::size_t SqliteTables::promote_due(std::string_view ns, std::size_t limit) {
    const std::size_t promoted = Query(statements_, Sql::kPromoteDue, ns, now_, limit).run();
    if (promoted != 0) {
        known_.forget_jobs();
        made_news_ = true;
    }
    return promoted;
}

bool SqliteTables::paused(std::string_view ns, std::string_view queue_name) {
    const auto row = queue(ns, queue_name);
    return row && row->paused;
}

std::vector<std::string> SqliteTables::open_queues(const ClaimSpec& spec) {
    std::vector<std::string> open = spec.queues;
    std::erase_if(open, [&](const std::string& name) { return paused(spec.ns, name); });
    return open;
}

/// Reads the rows of a query for whole jobs.
std::vector<JobRow> SqliteTables::jobs_with_payload(Query& query) {
    std::vector<JobRow> rows;
    while (auto row = one_job(query)) {
        query.take_into(row->job.payload);
        rows.push_back(*std::move(row));
    }
    return rows;
}

std::vector<JobRow> SqliteTables::claimable(const ClaimSpec& spec) {
    const std::vector<std::string> queues = open_queues(spec);
    if (queues.size() == 1 && spec.kinds.size() == 1) {
        Query query(statements_, Sql::kReadyJobs, spec.ns, queues[0], spec.kinds[0], spec.limit);
        return jobs_with_payload(query);
    }
    // Else one bounded search for each queue and kind, so that a head of kinds that nobody here
    // serves slows nothing down.
    std::vector<std::pair<std::int32_t, std::int64_t>> places;
    for (const std::string& queue_name : queues) {
        for (const std::string& kind : spec.kinds) {
            Query query(statements_, Sql::kReadyPlaces, spec.ns, queue_name, kind, spec.limit);
            while (query.next()) {
                const auto priority = query.take<std::int32_t>();
                places.emplace_back(-priority, query.take<std::int64_t>());
            }
        }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    places.resize(std::min(places.size(), spec.limit));
    std::vector<JobRow> rows;
    rows.reserve(places.size());
    for (const auto& [order, seq] : places) {
        Query query(statements_, Sql::kClaimedJob, seq);
        if (auto row = one_job(query)) {
            query.take_into(row->job.payload);
            rows.push_back(*std::move(row));
        }
    }
    return rows;
}

std::vector<JobRow> SqliteTables::lapsed_jobs(std::string_view ns,
                                              const std::vector<std::string>& kinds,
                                              std::int64_t after_seq, std::size_t limit) {
    const std::set<std::string_view> wanted(kinds.begin(), kinds.end());
    std::vector<std::int64_t> lost;
    {
        Query query(statements_, Sql::kRunning, ns, after_seq);
        while (lost.size() < limit && query.next()) {
            const auto seq = query.take<std::int64_t>();
            const auto kind = query.take<std::string>();
            const auto owner = query.take<std::string>();
            if (!wanted.contains(kind)) continue;
            const bool lapsed = query.take<StoreTime>() <= now_;
            if (lapsed || owner_fate(owner) == engine::OwnerFate::kDead) lost.push_back(seq);
        }
    }
    std::vector<JobRow> rows;
    for (const std::int64_t seq : lost) {
        Query query(statements_, Sql::kJobBySeq, seq);
        if (auto row = one_job(query)) rows.push_back(*std::move(row));
    }
    return rows;
}

std::uint64_t SqliteTables::count_begun(std::string_view owner) {
    Query query(statements_, Sql::kCountBegun, owner);
    return query.next() ? query.take<std::uint64_t>() : 0;
}

bool SqliteTables::has_jobs_of(std::string_view owner) {
    return Query(statements_, Sql::kHasJobsOf, owner).next();
}

std::vector<JobRow> SqliteTables::running_jobs_of(std::string_view ns, std::string_view owner) {
    Query query(statements_, Sql::kJobsOf, ns, owner);
    return jobs_with_payload(query);
}

std::optional<JobRow> SqliteTables::unique_holder(std::string_view ns, std::string_view kind,
                                                  std::string_view unique_key) {
    Query query(statements_, Sql::kSlotHolder, ns, kind, unique_key);
    return one_job(query);
}

std::optional<JobRow> SqliteTables::first_waiting(std::string_view ns, WaitFor wait,
                                                  std::string_view kind, std::string_view name) {
    if (!somebody_waits_) somebody_waits_ = Query(statements_, Sql::kSomebodyWaits).next();
    if (!*somebody_waits_) return std::nullopt;
    Query query(statements_, Sql::kFirstInLine, ns, wait, line_kind(wait, kind), name);
    return one_job(query);
}

bool SqliteTables::has_live_or_dead_job(const RecordKey& key) {
    return Query(statements_, Sql::kHasLiveOfKey, key.ns, key.kind, key.key).next() ||
           Query(statements_, Sql::kHasDeadOfKey, key.ns, key.kind, key.key).next();
}

std::optional<JobRow> SqliteTables::live_job_of_key(const RecordKey& key) {
    const auto comes_before = [](const JobRow& a, const JobRow& b) {
        return std::tuple(a.state == JobState::kWaiting, a.seq) <
               std::tuple(b.state == JobState::kWaiting, b.seq);
    };
    if (!Query(statements_, Sql::kHasLiveOfKey, key.ns, key.kind, key.key).next()) return {};
    std::optional<JobRow> first;
    for (const Sql which : {Sql::kNotWaitingWithKey, Sql::kLiveWithKey, Sql::kLiveWithId}) {
        Query query(statements_, which, key.ns, key.kind, key.key);
        auto row = one_job(query);
        if (row && (!first || comes_before(*row, *first))) first = std::move(row);
    }
    return first;
}

std::optional<StoreTime> SqliteTables::next_run_at(const ClaimSpec& spec) {
    std::optional<StoreTime> next;
    for (const std::string& queue_name : spec.queues) {
        for (const std::string& kind : spec.kinds) {
            for (const bool retry : {false, true}) {
                Query query(statements_, Sql::kNextRunAt, spec.ns, queue_name, kind, retry);
                if (!query.next()) continue;
                const auto run_at = query.take<StoreTime>();
                next = std::min(next.value_or(run_at), run_at);
            }
        }
    }
    return next;
}

bool SqliteTables::has_ready_or_retry(const ClaimSpec& spec) {
    for (const std::string& queue_name : open_queues(spec)) {
        for (const std::string& kind : spec.kinds) {
            if (Query(statements_, Sql::kHasReady, spec.ns, queue_name, kind).next()) return true;
            Query retry(statements_, Sql::kNextRunAt, spec.ns, queue_name, kind, true);
            if (retry.next()) return true;
        }
    }
    return false;
}

bool SqliteTables::line_is_held_up(std::string_view ns, WaitFor wait, std::string_view kind,
                                   std::string_view name) {
    std::string blocker;
    if (wait == WaitFor::kLock) {
        const auto row = lock(ns, name);
        if (row) blocker = row->owner.empty() ? row->reserved_for : row->job_id;
    } else {
        const auto row = record({std::string(ns), std::string(kind), std::string(name)});
        if (row && row->state == engine::RecordState::kHeld) return true;
        if (row) blocker = row->job_id;
    }
    const auto row = job(blocker);
    if (!row || row->state == JobState::kRunning) return false;
    const bool delayed = row->state == JobState::kScheduled && row->deliveries == 0;
    return row->state == JobState::kHeld || delayed || paused(ns, row->job.queue);
}

bool SqliteTables::has_drainable_line(const ClaimSpec& spec) {
    const std::vector<std::string> open = open_queues(spec);
    const auto contains = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const WaitFor wait : {WaitFor::kLock, WaitFor::kKey}) {
        RecordKey line{spec.ns, {}, {}};
        while (next_line(wait, line)) {
            if (line_is_held_up(line.ns, wait, line.kind, line.key)) continue;
            Query jobs(statements_, Sql::kLineJobs, line.ns, wait, line.kind, line.key);
            while (jobs.next()) {
                const bool served = contains(open, jobs.take<std::string>());
                if (contains(spec.kinds, jobs.take<std::string>()) && served) return true;
            }
        }
    }
    return false;
}

bool SqliteTables::has_drainable(const ClaimSpec& spec) {
    const auto contains = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    {
        Query running(statements_, Sql::kRunningServed, spec.ns);
        while (running.next()) {
            const bool queue_served = contains(spec.queues, running.take<std::string>());
            if (contains(spec.kinds, running.take<std::string>()) && queue_served) return true;
        }
    }
    return has_ready_or_retry(spec) || has_drainable_line(spec);
}

bool SqliteTables::next_line(WaitFor wait, RecordKey& line) {
    Query query(statements_, Sql::kNextLine, line.ns, wait, line.kind, line.key);
    if (!query.next()) return false;
    query.take_into(line.kind);
    query.take_into(line.key);
    return true;
}

std::vector<RecordKey> SqliteTables::standing_lines(
    std::string_view ns, WaitFor wait, std::size_t limit,
    const std::function<bool(const RecordKey&)>& stands) {
    std::vector<RecordKey> standing;
    RecordKey& line = line_cursors_.try_emplace({wait, std::string(ns)}).first->second;
    line.ns = ns;
    for (std::size_t seen = 0; seen < kLinesAtOnce && standing.size() < limit; ++seen) {
        if (!next_line(wait, line)) {
            line = {std::string(ns), {}, {}};
            break;
        }
        if (stands(line)) standing.push_back(line);
    }
    return standing;
}

std::vector<std::string> SqliteTables::stalled_lines(std::string_view ns, std::size_t limit) {
    const auto stands = [this](const RecordKey& line) {
        const auto row = lock(line.ns, line.key);
        const bool held = row && !row->owner.empty() && row->lease_until > now_;
        const bool reserved = row && !row->reserved_for.empty() && row->reserved_until > now_;
        return !held && !reserved;
    };
    std::vector<std::string> names;
    for (RecordKey& line : standing_lines(ns, WaitFor::kLock, limit, stands))
        names.push_back(std::move(line.key));
    return names;
}

std::vector<RecordKey> SqliteTables::stalled_keys(std::string_view ns, std::size_t limit) {
    const auto stands = [this](const RecordKey& line) {
        const auto row = record(line);
        const bool runs =
            row && row->state == engine::RecordState::kProcessing && row->lease_until > now_;
        const bool held = row && row->state == engine::RecordState::kHeld;
        return !runs && !held;
    };
    return standing_lines(ns, WaitFor::kKey, limit, stands);
}

}  // namespace sekali::sqlite
