#include "backends/sqlite/known_rows.hpp"

#include "backends/sqlite/rows.hpp"

namespace sekali::sqlite {
namespace {

/// What is under way in one process is rarely more; then reading again is cheap beside it.
constexpr std::size_t kMostRows = 4096;

template <typename Rows, typename Key, typename Row>
void put_into(Rows& rows, const Key& key, const Row& row) {
    if (const auto known = rows.find(key); known != rows.end()) {
        known->second = row;
        return;
    }
    if (rows.size() >= kMostRows) rows.clear();
    rows.emplace(key, row);
}

}  // namespace

const engine::JobRow* KnownRows::job(std::string_view id) const {
    const auto known = jobs_.find(id);
    return known == jobs_.end() ? nullptr : &known->second;
}

void KnownRows::put(const engine::JobRow& row) {
    put_into(jobs_, row.job.id, row);
}

void KnownRows::change(const engine::JobRow& row) {
    const auto known = jobs_.find(row.job.id);
    if (known == jobs_.end()) return;
    const auto assign = [&](const auto& field) { known->second.*field = row.*field; };
    std::apply([&](const auto&... field) { (assign(field), ...); }, kJobChangingFields);
}

void KnownRows::forget_job(std::string_view id) {
    if (const auto known = jobs_.find(id); known != jobs_.end()) jobs_.erase(known);
}

const engine::RecordRow* KnownRows::record(const engine::RecordKey& key) const {
    const auto known = records_.find(key);
    return known == records_.end() ? nullptr : &known->second;
}

void KnownRows::put(const engine::RecordRow& row) {
    put_into(records_, row.id, row);
}

void KnownRows::clear() {
    jobs_.clear();
    records_.clear();
}

}  // namespace sekali::sqlite
