#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/operations.hpp"

namespace sekali::conformance {

/// Looks at the rows of a namespace after each thing that happens and compares them with what it
/// has seen before. Fails the running property when a promise is broken.
class Witness {
 public:
    explicit Witness(std::string ns) : ns_(std::move(ns)) {}

    /// What a person or retention may have removed since the last look is not missed.
    void expect_removals() { may_vanish_ = true; }
    void look(engine::Tables& tables);

    /// Call with the record as it was before the begin: no second run under `hold` (G6).
    static void began(const std::optional<engine::RecordRow>& before, const engine::Begin& request,
                      const engine::BeginReply& reply);

 private:
    void look_at_job(const engine::JobRow& row) const;
    void look_at_record(const engine::RecordRow& row);
    void look_at_lock(const engine::LockRow& row);

    std::string ns_;
    bool may_vanish_ = false;
    std::map<std::string, engine::JobRow> jobs_;
    std::map<engine::RecordKey, engine::RecordRow> records_;
    std::map<engine::RecordKey, std::uint64_t> epochs_;
    std::map<std::string, std::uint64_t> fences_;
};

}  // namespace sekali::conformance
