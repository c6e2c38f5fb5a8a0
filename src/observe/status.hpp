#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "engine/tables.hpp"

namespace sekali::observe {

struct QueueStatus {
    std::string name;
    bool paused = false;
    std::uint64_t scheduled = 0;
    std::uint64_t ready = 0;
    std::uint64_t waiting = 0;
    std::uint64_t running = 0;
    std::uint64_t held = 0;
    std::optional<engine::StoreTime> oldest_ready_at;
    std::uint64_t live_workers = 0;
};

/// The numbers of a namespace at one moment.
struct Status {
    engine::StoreTime now{};
    std::vector<QueueStatus> queues;
    std::uint64_t workers = 0;  ///< Live ones.
    std::uint64_t held = 0;
    std::uint64_t dead = 0;

    [[nodiscard]] std::uint64_t ready() const;
    /// How long the oldest ready job has been ready; zero when there is none.
    [[nodiscard]] engine::Millis oldest_age() const;
    /// Queues that have jobs to run and no live worker.
    [[nodiscard]] std::vector<std::string> unserved() const;
};

[[nodiscard]] std::vector<QueueStatus> read_queues(engine::Tables& tables, std::string_view ns);
/// Counts no more dead jobs than `dead_limit`.
[[nodiscard]] Status read_status(engine::Tables& tables, std::string_view ns,
                                 std::uint64_t dead_limit);

void write_queue(base::JsonWriter& json, const QueueStatus& queue, engine::StoreTime now);
void write_status(base::JsonWriter& json, const Status& status, std::string_view ns);

/// What `check` allows; what is not set is not checked.
struct CheckLimits {
    std::optional<engine::Millis> max_age;
    std::optional<std::uint64_t> max_ready;
    std::optional<std::uint64_t> max_held;
    std::optional<std::uint64_t> max_dead;
    std::optional<std::uint64_t> max_unserved;  ///< Queues with jobs and no live worker.
    std::optional<std::uint64_t> min_workers;
};

struct CheckResult {
    std::string check;  ///< Named like its flag.
    std::string unit;   ///< Of value and limit.
    std::uint64_t value = 0;
    std::uint64_t limit = 0;
    bool ok = false;
};

[[nodiscard]] std::vector<CheckResult> check_status(const Status& status,
                                                    const CheckLimits& limits);

}  // namespace sekali::observe
