#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/model.hpp"

namespace sekali::memory {

/// Rows that are only added and at last pruned, found by idempotency key in the order of arrival.
template <typename Row>
class History {
 public:
    using Id = std::uint64_t;

    void add(Id id, Row row) {
        by_key_[{row.ns, row.kind, row.key}].insert(id);
        rows_.emplace(id, std::move(row));
    }
    Row remove(Id id) {
        auto node = rows_.extract(id);
        const Row& row = node.mapped();
        const auto of_key = by_key_.find({row.ns, row.kind, row.key});
        of_key->second.erase(id);
        if (of_key->second.empty()) by_key_.erase(of_key);
        return std::move(node.mapped());
    }
    [[nodiscard]] std::vector<Row> of_key(const engine::RecordKey& key) const {
        std::vector<Row> found;
        const auto ids = by_key_.find(key);
        if (ids == by_key_.end()) return found;
        for (const Id id : ids->second)
            found.push_back(rows_.at(id));
        return found;
    }
    [[nodiscard]] const std::map<Id, Row>& rows() const { return rows_; }

 private:
    std::map<Id, Row> rows_;
    std::map<engine::RecordKey, std::set<Id>> by_key_;
};

}  // namespace sekali::memory
