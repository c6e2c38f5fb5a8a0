#include "backends/sqlite/tables.hpp"

#include <utility>

namespace sekali::sqlite {

SqliteTables::SqliteTables(Connection& connection, const LivenessFile* liveness, UserAccess access)
    : connection_(connection),
      statements_(connection),
      job_updates_(connection, job_update()),
      record_updates_(connection, record_update()),
      liveness_(liveness),
      user_sql_(connection, access == UserAccess::kGuarded) {}

void SqliteTables::start(engine::StoreTime now) {
    begin_at(now);
    rolled_back();
}

void SqliteTables::go_on(engine::StoreTime now) {
    begin_at(now);
    Query query(statements_, Sql::kDataVersion);
    const std::int64_t version = query.next() ? query.take<std::int64_t>() : 0;
    if (version != std::exchange(data_version_, version)) rolled_back();
    // Who waited may have gone.
    if (somebody_waits_.value_or(true)) somebody_waits_.reset();
}

void SqliteTables::begin_at(engine::StoreTime now) {
    now_ = now;
    made_news_ = false;
    fates_.clear();
    forget_learned();
}

void SqliteTables::rolled_back() {
    known_.clear();
    somebody_waits_.reset();
    forget_learned();
}

void SqliteTables::forget_learned() {
    not_finished_.clear();
    last_seq_.reset();
    epoch_floor_.reset();
    fence_floor_.reset();
}

}  // namespace sekali::sqlite
