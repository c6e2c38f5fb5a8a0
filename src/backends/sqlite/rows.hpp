#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "backends/sqlite/column_updates.hpp"
#include "backends/sqlite/query.hpp"
#include "engine/model.hpp"

// How rows lie in the columns that sql.cpp lists.
namespace sekali::sqlite {

/// Whether and until when a record is kept: null while it must not be pruned.
[[nodiscard]] std::optional<engine::StoreTime> expiry_of(const engine::RecordRow& row);

using engine::JobRow;
using engine::RecordRow;

/// What `job_update` names. The first ones are those on which the indexes of live jobs depend.
inline constexpr ColumnSet kJobPlacedColumns = (ColumnSet{1} << 7) - 1;
inline constexpr std::tuple kJobChangingFields{
    &JobRow::state,         &JobRow::waiting_for, &JobRow::waiting_name,
    &JobRow::run_at,        &JobRow::slot_held,   &JobRow::deliveries,
    &JobRow::owner,         &JobRow::attempts,    &JobRow::crashes,
    &JobRow::interruptions, &JobRow::lost_claims, &JobRow::lease_until,
    &JobRow::begun,         &JobRow::suspect,     &JobRow::cancel_requested,
    &JobRow::requested_by,  &JobRow::epoch,       &JobRow::result,
    &JobRow::error,         &JobRow::reason};
/// What `record_update` names. The first ones are those on which the indexes of records depend.
inline constexpr ColumnSet kRecordPlacedColumns = (ColumnSet{1} << 2) - 1;
inline constexpr std::tuple kRecordChangingFields{&RecordRow::state,
                                                  &expiry_of,
                                                  &RecordRow::job_id,
                                                  &RecordRow::epoch,
                                                  &RecordRow::owner,
                                                  &RecordRow::delivery,
                                                  &RecordRow::lease_until,
                                                  &RecordRow::fingerprint,
                                                  &RecordRow::fingerprint_rule,
                                                  &RecordRow::not_before,
                                                  &RecordRow::effects,
                                                  &RecordRow::on_unknown,
                                                  &RecordRow::marked,
                                                  &RecordRow::mark_cause,
                                                  &RecordRow::probing,
                                                  &RecordRow::death_proven,
                                                  &RecordRow::probe_after,
                                                  &RecordRow::ends,
                                                  &RecordRow::lock_key,
                                                  &RecordRow::fence,
                                                  &RecordRow::attempt,
                                                  &RecordRow::started_at,
                                                  &RecordRow::finished_at,
                                                  &RecordRow::keep,
                                                  &RecordRow::whole_answer,
                                                  &RecordRow::result};

/// The fields in which two rows differ.
template <typename Row, typename... Fields>
[[nodiscard]] ColumnSet differing(const std::tuple<Fields...>& fields, const Row& a, const Row& b) {
    ColumnSet differ = 0;
    ColumnSet bit = 1;
    const auto compare = [&](const auto& field) {
        if (std::invoke(field, a) != std::invoke(field, b)) differ |= bit;
        bit <<= 1;
    };
    std::apply([&](const auto&... field) { (compare(field), ...); }, fields);
    return differ;
}

/// Binds those fields of the row that are in the set.
template <typename Row, typename... Fields>
void bind_fields(Query& query, const std::tuple<Fields...>& fields, const Row& row,
                 ColumnSet wanted) {
    ColumnSet bit = 1;
    const auto bind = [&](const auto& field) {
        if ((wanted & bit) != 0) query.bind(std::invoke(field, row));
        bit <<= 1;
    };
    std::apply([&](const auto&... field) { (bind(field), ...); }, fields);
}

/// Columns `seq` to `enqueued_at`.
void bind_frozen(Query& query, const engine::JobRow& row);
/// The columns of `job_update`.
void bind_changing(Query& query, const engine::JobRow& row);
[[nodiscard]] engine::JobRow take_job(Query& query);

void bind_record(Query& query, const engine::RecordRow& row);
[[nodiscard]] engine::RecordRow take_record(Query& query);

[[nodiscard]] engine::LockRow take_lock(Query& query);
[[nodiscard]] engine::AttemptRow take_attempt(Query& query);
[[nodiscard]] engine::EventRow take_event(Query& query);
[[nodiscard]] engine::WorkerRow take_worker(Query& query);

}  // namespace sekali::sqlite
