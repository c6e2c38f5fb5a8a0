#include "backends/sqlite/rows.hpp"
#include "backends/sqlite/tables.hpp"

// Idempotency records, their steps, lock rows, and the floors that both leave behind.
namespace sekali::sqlite {
namespace {

using engine::LockRow;
using engine::RecordKey;
using engine::RecordRow;
using engine::RecordState;
using engine::StepRow;
using engine::StoreTime;

constexpr std::string_view kEpochFloor = "epoch_floor";
constexpr std::string_view kFenceFloor = "fence_floor";

std::vector<RecordRow> all_records(Query& query) {
    std::vector<RecordRow> rows;
    while (query.next())
        rows.push_back(take_record(query));
    return rows;
}

std::vector<LockRow> all_locks(Query& query) {
    std::vector<LockRow> rows;
    while (query.next())
        rows.push_back(take_lock(query));
    return rows;
}

}  // namespace

std::optional<RecordRow> SqliteTables::record(const RecordKey& key) {
    if (const RecordRow* known = known_.record(key)) return *known;
    Query query(statements_, Sql::kRecord, key.ns, key.kind, key.key);
    if (!query.next()) return std::nullopt;
    RecordRow row = take_record(query);
    known_.put(row);
    return row;
}

void SqliteTables::put_record(const RecordRow& row) {
    const RecordRow* known = known_.record(row.id);
    const ColumnSet changed =
        known == nullptr ? record_updates_.all() : differing(kRecordChangingFields, *known, row);
    if (known == nullptr) {
        Query query(statements_, Sql::kPutRecord);
        bind_record(query, row);
        query.run();
    } else if (changed != 0) {
        update_record(row, changed);
    }
    // What has ended is rarely asked for again.
    if (expiry_of(row)) {
        known_.forget_record(row.id);
    } else {
        known_.put(row);
    }
    const bool moved = (changed & kRecordPlacedColumns) != 0;
    if (moved && row.state != RecordState::kProcessing) made_news_ = true;
}

void SqliteTables::update_record(const RecordRow& row, ColumnSet changed) {
    Query query(connection_, record_updates_.use(changed));
    query.bind(row.id.ns).bind(row.id.kind).bind(row.id.key);
    bind_fields(query, kRecordChangingFields, row, changed);
    if (query.run() == 0) {
        throw Failure({.code = ErrorCode::kInternal,
                       .message = "there is no record of " + row.id.key + " to write"});
    }
}

void SqliteTables::erase_record(const RecordKey& key) {
    const auto row = record(key);
    if (!row) return;
    raise_floor(epoch_floor_, kEpochFloor, row->epoch);
    erase_steps(key);
    Query(statements_, Sql::kDeleteRecord, key.ns, key.kind, key.key).run();
    known_.forget_record(key);
}

std::uint64_t SqliteTables::epoch_floor() {
    return floor(epoch_floor_, kEpochFloor);
}

std::uint64_t SqliteTables::fence_floor() {
    return floor(fence_floor_, kFenceFloor);
}

std::uint64_t SqliteTables::floor(std::optional<std::uint64_t>& known, std::string_view name) {
    if (!known) {
        Query query(statements_, Sql::kMeta, name);
        known = query.next() ? query.take<std::uint64_t>() : 0;
    }
    return *known;
}

void SqliteTables::raise_floor(std::optional<std::uint64_t>& known, std::string_view name,
                               std::uint64_t reached) {
    if (reached <= floor(known, name)) return;
    Query(statements_, Sql::kRaiseMeta, name, reached).run();
    known = reached;
}

std::vector<RecordRow> SqliteTables::prunable_records(std::string_view ns, std::size_t limit) {
    Query query(statements_, Sql::kPrunableRecords, ns, now_, limit);
    return all_records(query);
}

std::vector<RecordRow> SqliteTables::stale_records(std::string_view ns, std::size_t limit) {
    Query query(statements_, Sql::kStaleRecords, ns, now_, limit);
    return all_records(query);
}

std::vector<StepRow> SqliteTables::steps(const RecordKey& key) {
    std::vector<StepRow> rows;
    Query query(statements_, Sql::kSteps, key.ns, key.kind, key.key);
    while (query.next()) {
        StepRow& row = rows.emplace_back();
        row.record = key;
        query.take_into(row.name);
        query.take_into(row.epoch);
        query.take_into(row.call);
        query.take_into(row.order);
        query.take_into(row.done);
        query.take_into(row.result);
    }
    return rows;
}

void SqliteTables::put_step(const StepRow& row) {
    Query(statements_, Sql::kPutStep, row.record.ns, row.record.kind, row.record.key, row.name,
          row.epoch, row.call, row.order, row.done, row.result)
        .run();
}

void SqliteTables::erase_steps(const RecordKey& key) {
    Query(statements_, Sql::kDeleteSteps, key.ns, key.kind, key.key).run();
}

std::optional<LockRow> SqliteTables::lock(std::string_view ns, std::string_view name) {
    Query query(statements_, Sql::kLock, ns, name);
    if (!query.next()) return std::nullopt;
    return take_lock(query);
}

void SqliteTables::put_lock(const LockRow& row) {
    Query(statements_, Sql::kPutLock, row.ns, row.name, row.owner, row.token, row.job_id, row.fence,
          row.lease_until, row.reserved_for, row.reserved_until)
        .run();
    if (row.owner.empty()) made_news_ = true;
}

void SqliteTables::erase_lock(std::string_view ns, std::string_view name) {
    const auto row = lock(ns, name);
    if (!row) return;
    raise_floor(fence_floor_, kFenceFloor, row->fence);
    Query(statements_, Sql::kDeleteLock, ns, name).run();
    made_news_ = true;
}

std::vector<LockRow> SqliteTables::held_locks(std::string_view ns) {
    Query query(statements_, Sql::kLocksHeld, ns, now_);
    return all_locks(query);
}

std::vector<LockRow> SqliteTables::idle_locks(std::string_view ns, StoreTime before,
                                              std::size_t limit) {
    Query query(statements_, Sql::kLocksIdle, ns, before, limit);
    return all_locks(query);
}

}  // namespace sekali::sqlite
