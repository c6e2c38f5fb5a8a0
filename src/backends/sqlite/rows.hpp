#pragma once

#include "backends/sqlite/query.hpp"
#include "engine/model.hpp"

// How rows lie in the columns that sql.cpp lists.
namespace sekali::sqlite {

/// Columns `seq` to `enqueued_at`.
void bind_frozen(Query& query, const engine::JobRow& row);
/// The changing columns on which the indexes of live jobs depend.
void bind_placed(Query& query, const engine::JobRow& row);
/// The other changing columns.
void bind_moving(Query& query, const engine::JobRow& row);
[[nodiscard]] engine::JobRow take_job(Query& query);

/// Whether and until when a record is kept: null while it must not be pruned.
[[nodiscard]] std::optional<engine::StoreTime> expiry_of(const engine::RecordRow& row);
void bind_record(Query& query, const engine::RecordRow& row);
[[nodiscard]] engine::RecordRow take_record(Query& query);

[[nodiscard]] engine::LockRow take_lock(Query& query);
[[nodiscard]] engine::AttemptRow take_attempt(Query& query);
[[nodiscard]] engine::EventRow take_event(Query& query);
[[nodiscard]] engine::WorkerRow take_worker(Query& query);

}  // namespace sekali::sqlite
