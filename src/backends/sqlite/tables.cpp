#include "backends/sqlite/tables.hpp"

namespace sekali::sqlite {

SqliteTables::SqliteTables(Connection& connection, const LivenessFile* liveness, UserAccess access)
    : connection_(connection),
      statements_(connection),
      liveness_(liveness),
      user_sql_(connection, access == UserAccess::kGuarded) {}

void SqliteTables::start(engine::StoreTime now) {
    now_ = now;
    made_news_ = false;
    fates_.clear();
    forget_learned();
}

void SqliteTables::forget_learned() {
    job_places_.clear();
    record_place_.reset();
    not_finished_.clear();
    last_seq_.reset();
    epoch_floor_.reset();
    fence_floor_.reset();
}

}  // namespace sekali::sqlite
