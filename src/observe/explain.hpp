#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "engine/tables.hpp"
#include "observe/job_view.hpp"

namespace sekali::observe {

/// One thing that happened to a key.
struct TimelineEntry {
    engine::StoreTime at{};
    std::string event;  ///< `enqueued`, `start`, how a run ended, or an event's name.
    std::string job_id;
    std::optional<std::uint64_t> attempt;
    std::optional<std::uint64_t> epoch;
    std::string worker;
    std::string detail;
};

/// Why something happened more often than once.
struct Cause {
    std::string cause;
    std::vector<std::string> evidence;
    std::string advice;
};

struct Explanation {
    std::string key;
    std::string kind;
    std::string verdict;
    std::vector<JobView> jobs;
    std::vector<TimelineEntry> timeline;
    std::vector<Cause> causes;
};

/// The record that a person means by a key or a job's id. Throws `Failure`: `kNotFound` with the
/// nearest keys, `kUsage` where several kinds know the key and none is chosen.
[[nodiscard]] engine::RecordKey find_subject(engine::Tables& tables, std::string_view ns,
                                             std::string_view key_or_id,
                                             const std::optional<std::string>& kind);

/// All that the store knows about one key. Reads only.
[[nodiscard]] Explanation explain(engine::Tables& tables, const engine::RecordKey& subject);

void write_explanation(base::JsonWriter& json, const Explanation& explanation);
/// For a terminal, with a newline behind each line.
[[nodiscard]] std::string render_explanation(const Explanation& explanation);

}  // namespace sekali::observe
