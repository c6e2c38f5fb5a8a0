#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/tables.hpp"
#include "observe/explain.hpp"

namespace sekali::observe {

/// One start of the handler.
struct Run {
    engine::AttemptRow row;
    bool open = false;  ///< It has not ended, as far as anybody knows.
};

/// What the store holds about one key, read in one transaction.
struct Facts {
    engine::RecordKey subject;
    std::optional<engine::RecordRow> record;
    std::vector<JobView> jobs;             ///< Oldest first.
    std::vector<Run> runs;                 ///< Oldest first.
    std::vector<engine::EventRow> events;  ///< Oldest first.
};

[[nodiscard]] Facts read_facts(engine::Tables& tables, const engine::RecordKey& subject,
                               Surroundings& surroundings);
[[nodiscard]] std::vector<TimelineEntry> timeline_of(const Facts& facts);

/// Whether the run ended without an answer, so that what it did is not known.
[[nodiscard]] bool ended_unknown(const Run& run);

[[nodiscard]] std::string verdict_of(engine::Tables& tables, const Facts& facts,
                                     Surroundings& surroundings);
/// Why the job does not run now, and until when; for jobs that have not ended.
[[nodiscard]] std::string waiting_text(engine::Tables& tables, const JobView& job,
                                       Surroundings& surroundings);

[[nodiscard]] std::vector<Cause> causes_of(engine::Tables& tables, const Facts& facts);

}  // namespace sekali::observe
