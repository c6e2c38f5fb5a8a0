#include "backends/sqlite/store_time.hpp"

#include <algorithm>

namespace sekali::sqlite {
namespace {

using engine::Millis;
using engine::StoreTime;

constexpr std::string_view kBootId = "boot_id";
constexpr std::string_view kOffset = "clock_offset";
constexpr std::string_view kBound = "clock_bound";
/// The bound is written once in this time, so a boot right after another starts at most so far
/// ahead.
constexpr Millis kBoundStep = std::chrono::seconds{10};

template <typename T>
std::optional<T> meta(Statements& statements, std::string_view name) {
    Query query(statements, Sql::kMeta, name);
    if (!query.next()) return std::nullopt;
    return query.take<T>();
}

}  // namespace

StoreTime StoreTimer::now() const {
    return StoreTime{Millis{hooks_.boot_ms()} + offset_};
}

bool StoreTimer::load(Statements& statements) {
    bound_ = meta<StoreTime>(statements, kBound).value_or(StoreTime{});
    const auto boot = meta<std::string>(statements, kBootId);
    const auto offset = meta<Millis>(statements, kOffset);
    if (boot && offset && *boot == hooks_.boot_id()) {
        offset_ = *offset;
        return true;
    }
    const StoreTime start = std::max(StoreTime{Millis{hooks_.wall_ms()}}, bound_);
    offset_ = start.time_since_epoch() - Millis{hooks_.boot_ms()};
    return false;
}

void StoreTimer::fix(Statements& statements) {
    if (load(statements)) return;
    for (const std::string_view lapse :
         {"UPDATE sekali_jobs SET lease_until = 0 WHERE state = 3",
          "UPDATE sekali_records SET lease_until = 0 WHERE state IN (0, 3)",
          "UPDATE sekali_locks SET lease_until = 0, reserved_until = 0",
          "UPDATE sekali_workers SET lease_until = 0"}) {
        const StatementPtr statement = statements.connection().prepare(lapse);
        Query(statements.connection(), statement.get()).run();
    }
    Query(statements, Sql::kPutMeta, kBootId, hooks_.boot_id()).run();
    Query(statements, Sql::kPutMeta, kOffset, offset_).run();
    keep_bound(statements, now());
}

void StoreTimer::keep_bound(Statements& statements, StoreTime now) {
    if (now < bound_) return;
    bound_ = now + kBoundStep;
    Query(statements, Sql::kRaiseMeta, kBound, bound_).run();
}

}  // namespace sekali::sqlite
