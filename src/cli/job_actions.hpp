#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/context.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {

/// The jobs that the filter flags name; `state` is meant where no flag names one.
[[nodiscard]] engine::JobFilter job_filter(const CommandContext& context,
                                           std::optional<engine::JobState> state = std::nullopt);

/// Prints one page of jobs: `job list`, `dead list`, `held list`.
int list_command(CommandContext& context, std::optional<engine::JobState> state = std::nullopt);

/// What to do with each of some jobs.
struct JobAction {
    std::string_view verb;  ///< `cancel`
    std::string_view done;  ///< `cancelled`
    /// Jobs of this state only, when filters choose; nothing: live jobs that are not held.
    std::optional<engine::JobState> state;
    bool destructive = false;       ///< Asks first, whatever chooses the jobs.
    bool bulk_destructive = false;  ///< Asks first when filters choose.
    bool tells_state = false;       ///< What the job has become is part of the answer.
    std::function<engine::AdminReply(engine::Tables&, std::string_view id, std::string_view who)>
        apply;
};

/// Cancels the jobs of one queue that have not begun: `queue purge`.
int purge_queue(CommandContext& context, const std::string& queue);

/// Does it to the jobs that the positionals or the filter flags name, never to all of them.
int job_action_command(CommandContext& context, const JobAction& action);

}  // namespace sekali::cli
