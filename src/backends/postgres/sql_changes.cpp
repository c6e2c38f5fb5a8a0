#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "backends/postgres/sql_text.hpp"

// The statements that write what a unit changed.
namespace sekali::postgres {
namespace {

using namespace sqltext;

constexpr ColumnSet kAllColumns = ~ColumnSet{0};

ColumnSet set_of(const Columns& columns, std::initializer_list<std::string_view> names) {
    ColumnSet set = 0;
    for (std::size_t i = 0; i < columns.size(); ++i)
        for (const std::string_view name : names)
            if (columns[i].name == name) set |= ColumnSet{1} << i;
    return set;
}

std::string_view zero_of(const Column& column) {
    if (column.is_nullable) return "NULL";
    switch (column.type) {
        case PgType::kBool:
            return "false";
        case PgType::kText:
        case PgType::kBytea:
            return "''";
        default:
            return "0";
    }
}

/// All columns: those of the set behind `prefix`, the others as `other` says.
template <typename Other>
std::string mixed_list(const Columns& columns, ColumnSet set, std::string_view prefix,
                       Other other) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        text += text.empty() ? "" : ", ";
        const bool is_chosen = (set >> i & 1U) != 0;
        text += is_chosen ? std::string(prefix) + columns[i].name : std::string(other(columns[i]));
    }
    return text;
}

std::string assignments(const Columns& columns) {
    std::string text;
    for (const Column& column : columns) {
        text += text.empty() ? "" : ", ";
        text += column.name + " = n." + column.name;
    }
    return text;
}

/// Makes the statement fail in the server unless it wrote as many rows as argument `place` says.
std::string checked(const std::string& statement, std::size_t place) {
    return "WITH done AS (" + statement +
           " RETURNING 1) SELECT @expect((SELECT count(*) FROM done), $" + std::to_string(place) +
           "::bigint)";
}

std::string insert(const std::string& table, const Columns& columns, const std::string& behind) {
    return "INSERT INTO " + table + "(" + list(columns) + ") SELECT " + list(columns, "n.") +
           " FROM " + rows_of(columns) + behind;
}

const Columns kVersion{{"version", PgType::kXid}};
/// A row that was not locked before it was read must be of the version that was read.
constexpr std::string_view kSameVersion = " AND (n.version = '0'::xid OR t.xmin = n.version)";

/// Takes the version as the last array.
std::string guarded_update(const std::string& table, const Columns& key, const Columns& changing) {
    return "UPDATE " + table + " AS t SET " + assignments(changing) + " FROM " +
           rows_of(key + changing + kVersion) + " WHERE " + same(key) + std::string(kSameVersion);
}

const Columns kPayload{{"payload", PgType::kBytea}};
const Columns kSeq{{"seq", PgType::kInt8}};

std::string finish_jobs(ColumnSet set) {
    const Columns keeps{{"keeps", PgType::kBool}};
    const Columns changing = chosen(kMoving, set);
    const auto as_it_was = [](const Column& column) { return "t." + column.name; };
    return "WITH gone AS (DELETE FROM @jobs AS t USING " +
           rows_of(kSeq + changing + kFinishedAt + keeps + kVersion) + " WHERE t.seq = n.seq" +
           std::string(kSameVersion) + " RETURNING " + list(kFrozen, "t.") + ", " +
           mixed_list(kMoving, set, "n.", as_it_was) + ", " + list(kFinishedAt, "n.") +
           ", CASE WHEN n.keeps THEN t.payload END AS payload), done AS (INSERT INTO @finished(" +
           list(kFrozen + kMoving + kFinishedAt + kPayload) + ") SELECT " +
           list(kFrozen + kMoving + kFinishedAt + kPayload) +
           " FROM gone RETURNING 1) SELECT @expect((SELECT count(*) FROM done), $" +
           std::to_string(changing.size() + 5) + "::bigint)";
}

std::string insert_jobs(ColumnSet set) {
    const Columns given = chosen(kMoving, set);
    return checked("INSERT INTO @jobs(" + list(kFrozen + kMoving + kPayload) + ") SELECT " +
                       list(kFrozen, "n.") + ", " + mixed_list(kMoving, set, "n.", zero_of) +
                       ", n.payload FROM " + rows_of(kFrozen + given + kPayload) +
                       " ON CONFLICT (id) DO NOTHING",
                   kFrozen.size() + given.size() + 2);
}

/// A record that was pruned meanwhile has raised the floor, from which a new one must start.
std::string insert_records(ColumnSet set) {
    const Columns key = up_to(3, kRecord);
    const Columns rest = from(3, kRecord);
    const Columns given = chosen(rest, set);
    const std::size_t count = key.size() + given.size();
    return checked("INSERT INTO @records(" + list(kRecord) + ") SELECT " + list(key, "n.") + ", " +
                       mixed_list(rest, set, "n.", zero_of) + " FROM " + rows_of(key + given) +
                       " WHERE (SELECT epoch_floor FROM @meta) <= $" + std::to_string(count + 2) +
                       "::bigint ON CONFLICT DO NOTHING",
                   count + 1);
}

std::string revive_jobs() {
    return "WITH gone AS (DELETE FROM @finished AS t USING " + rows_of(kFrozen + kMoving) +
           " WHERE t.seq = n.seq RETURNING " + list(kFrozen + kMoving, "n.") +
           ", coalesce(t.payload, '') AS payload), done AS (INSERT INTO @jobs(" +
           list(kFrozen + kMoving + kPayload) + ") SELECT " + list(kFrozen + kMoving + kPayload) +
           " FROM gone RETURNING 1) SELECT @expect((SELECT count(*) FROM done), $" +
           std::to_string(kFrozen.size() + kMoving.size() + 1) + "::bigint)";
}

}  // namespace

const Variants::Variant& Variants::of(ColumnSet columns) const {
    return *std::find_if(variants_.begin(), variants_.end(),
                         [&](const Variant& variant) { return (columns & ~variant.columns) == 0; });
}

void Statements::make_job_changes(Maker& make) {
    const std::size_t job_count = kFrozen.size() + kMoving.size();
    const auto variants = [&](auto text, const std::string& doing,
                              std::initializer_list<ColumnSet> sets) {
        std::vector<Variants::Variant> made;
        for (const ColumnSet set : sets)
            made.push_back({set, make(text(set), doing)});
        return Variants(std::move(made));
    };
    insert_jobs = variants(postgres::insert_jobs, "write new jobs",
                           {set_of(kMoving, {"state", "run_at", "slot_held"}), kAllColumns});
    const auto update = [](ColumnSet set) {
        const Columns changing = chosen(kMoving, set);
        return checked(guarded_update("@jobs", kSeq, changing), changing.size() + 3);
    };
    update_jobs = variants(
        update, "write jobs",
        {set_of(kMoving, {"lease_until", "begun", "epoch"}),
         set_of(kMoving, {"state", "deliveries", "owner", "lease_until"}),
         set_of(kMoving, {"state", "deliveries", "owner", "lease_until", "begun", "epoch"}),
         kAllColumns});
    finish_jobs = variants(postgres::finish_jobs, "end jobs",
                           {set_of(kMoving, {"state", "slot_held", "attempts", "owner",
                                             "lease_until", "begun", "result"}),
                            kAllColumns});
    insert_finished = make(checked(insert("@finished", kFrozen + kMoving + kFinishedAt + kPayload,
                                          " ON CONFLICT (id) DO NOTHING"),
                                   job_count + 3),
                           "write final jobs");
    revive_jobs = make(postgres::revive_jobs(), "revive jobs");
    delete_jobs = make(checked("DELETE FROM @jobs WHERE seq = ANY($1)", 2), "delete jobs");
    delete_finished =
        make(checked("DELETE FROM @finished WHERE seq = ANY($1)", 2), "delete final jobs");
}

void Statements::make_other_changes(Maker& make) {
    const Columns record_key_columns = up_to(3, kRecord);
    const Columns record_rest = from(3, kRecord);
    const auto update = [&](ColumnSet set) {
        const Columns changing = chosen(record_rest, set);
        return checked(guarded_update("@records", record_key_columns, changing),
                       changing.size() + 5);
    };
    const ColumnSet first_begin = set_of(
        record_rest, {"state", "job_id", "epoch", "owner", "delivery", "lease_until", "fingerprint",
                      "fingerprint_rule", "effects", "on_unknown", "probe_after", "lock_key",
                      "fence", "attempt", "started_at", "keep", "whole_answer"});
    const ColumnSet success =
        set_of(record_rest, {"state", "expires_at", "lease_until", "finished_at", "result"});
    insert_records =
        Variants({{first_begin, make(postgres::insert_records(first_begin), "write new records")},
                  {kAllColumns, make(postgres::insert_records(kAllColumns), "write new records")}});
    // What whoever begins no run needs: a producer's role has no right to more.
    const ColumnSet without_begin =
        kAllColumns & ~set_of(record_rest, {"epoch", "delivery", "started_at"});
    update_records = Variants({{success, make(update(success), "write records")},
                               {without_begin, make(update(without_begin), "write records")},
                               {kAllColumns, make(update(kAllColumns), "write records")}});
    delete_records = make(checked("DELETE FROM @records AS t USING " + rows_of(record_key_columns) +
                                      " WHERE " + same(record_key_columns),
                                  4),
                          "delete records");
    put_steps = make(insert("@steps", kStep,
                            " ON CONFLICT (ns, kind, key, name) DO UPDATE SET epoch ="
                            " excluded.epoch, call = excluded.call, place = excluded.place,"
                            " done = excluded.done, result = excluded.result"),
                     "write steps");
    delete_steps = make("DELETE FROM @steps AS t USING " + rows_of(up_to(3, kStep)) + " WHERE " +
                            same(up_to(3, kStep)),
                        "delete steps");
    const Columns lock_key = up_to(2, kLock);
    insert_locks = make(
        checked(insert("@locks", kLock,
                       " WHERE (SELECT fence_floor FROM @meta) <= $" +
                           std::to_string(kLock.size() + 2) + "::bigint ON CONFLICT DO NOTHING"),
                kLock.size() + 1),
        "write new locks");
    update_locks =
        make(checked(guarded_update("@locks", lock_key, from(2, kLock)), kLock.size() + 2),
             "write locks");
    delete_locks = make(
        checked("DELETE FROM @locks AS t USING " + rows_of(lock_key) + " WHERE " + same(lock_key),
                3),
        "delete locks");
    add_attempts = make(insert("@attempts", kAttempt, " ON CONFLICT DO NOTHING"), "write attempts");
    add_events = make(insert("@events", kEvent, ""), "write events");
    put_workers = make(insert("@workers", kWorker,
                              " ON CONFLICT (id) DO UPDATE SET (" + list(from(1, kWorker)) +
                                  ") = (" + list(from(1, kWorker), "excluded.") + ")"),
                       "write workers");
    delete_worker = make("DELETE FROM @workers WHERE id = $1", "forget a worker");
    put_queue = make(
        "INSERT INTO @queues(ns, name, paused) VALUES ($1, $2, $3)"
        " ON CONFLICT (ns, name) DO UPDATE SET paused = excluded.paused",
        "write a queue");
    raise_floors = make(
        "UPDATE @meta SET epoch_floor = greatest(epoch_floor, $1),"
        " fence_floor = greatest(fence_floor, $2)",
        "raise the floors");
}

}  // namespace sekali::postgres
