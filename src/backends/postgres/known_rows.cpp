#include "backends/postgres/known_rows.hpp"

#include "base/clock.hpp"

namespace sekali::postgres {
namespace {

using engine::JobRow;
using engine::LockRow;
using engine::Millis;
using engine::RecordKey;
using engine::RecordRow;

/// More than any worker runs at a time. What others took over is never asked for again, so it is
/// forgotten with all that is known once there is so much.
constexpr std::size_t kMost = 20'000;
/// A process's own clock is good enough for so long.
constexpr Millis kReadingAge{1000};

template <typename Map, typename Key>
std::optional<typename Map::mapped_type> take_from(Map& rows, const Key& key) {
    const auto found = rows.find(key);
    if (found == rows.end()) return std::nullopt;
    std::optional<typename Map::mapped_type> taken(std::move(found->second));
    rows.erase(found);
    return taken;
}

template <typename Map, typename Key, typename Row>
void put_into(Map& rows, Key key, Row row, Xid version) {
    if (rows.size() >= kMost) rows.clear();
    rows.insert_or_assign(std::move(key), KnownRow<Row>{std::move(row), version});
}

}  // namespace

std::optional<KnownRow<JobRow>> KnownRows::take_job(const std::string& id) {
    const std::lock_guard guard(mutex_);
    return take_from(jobs_, id);
}

std::optional<KnownRow<RecordRow>> KnownRows::take_record(const RecordKey& key) {
    const std::lock_guard guard(mutex_);
    return take_from(records_, key);
}

std::optional<KnownRow<LockRow>> KnownRows::take_lock(const LockName& name) {
    const std::lock_guard guard(mutex_);
    return take_from(locks_, name);
}

void KnownRows::put(JobRow row, Xid version) {
    const std::lock_guard guard(mutex_);
    std::string id = row.job.id;
    put_into(jobs_, std::move(id), std::move(row), version);
}

void KnownRows::put(RecordRow row, Xid version) {
    const std::lock_guard guard(mutex_);
    RecordKey key = row.id;
    put_into(records_, std::move(key), std::move(row), version);
}

void KnownRows::put(LockRow row, Xid version) {
    const std::lock_guard guard(mutex_);
    LockName name{row.ns, row.name};
    put_into(locks_, std::move(name), std::move(row), version);
}

void KnownRows::put(const Reading& reading) {
    if (base::steady_now() - reading.asked > kSlowestReading) return;
    const std::lock_guard guard(mutex_);
    reading_ = reading;
}

std::optional<Reading> KnownRows::reading() const {
    const std::lock_guard guard(mutex_);
    if (!reading_) return std::nullopt;
    const auto age = base::steady_now() - reading_->asked;
    if (age > kReadingAge) return std::nullopt;
    Reading now = *reading_;
    now.time += std::chrono::ceil<Millis>(age);
    return now;
}

}  // namespace sekali::postgres
