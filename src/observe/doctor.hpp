#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "engine/run_history.hpp"

namespace sekali::observe {

enum class Severity : std::uint8_t {
    kOk,
    kWarning,  ///< Works, and will hurt one day.
    kUnsafe,   ///< A promise does not hold.
};

/// What one look of `doctor` came to.
struct Finding {
    std::string check;   ///< `synchronous`, `timeout payment.charge`, …
    std::string detail;  ///< What is set and what was measured.
    Severity severity = Severity::kOk;
    std::string advice{};  ///< What to change; empty where nothing is wrong.

    void object(Severity how_much, std::string what_to_change) {
        severity = how_much;
        advice = std::move(what_to_change);
    }
};

/// How long runs of a kind are allowed to take, against what they took.
[[nodiscard]] Finding judge_timeout(const engine::RunTimes& measured,
                                    std::chrono::milliseconds timeout);

/// Leases that lapsed while their processes lived, among the runs that history holds.
[[nodiscard]] Finding judge_leases(const engine::RunHistory& history,
                                   std::chrono::milliseconds lease,
                                   std::chrono::milliseconds lock_ttl);

/// How far the store's clock is from the wall clock of this host; positive: ahead.
[[nodiscard]] Finding judge_clock(std::chrono::milliseconds ahead);

[[nodiscard]] bool is_safe(const std::vector<Finding>& findings);
void write_findings(base::JsonWriter& json, const std::vector<Finding>& findings);
/// For a terminal, with a newline behind each line.
[[nodiscard]] std::string render_findings(const std::vector<Finding>& findings);

}  // namespace sekali::observe
