#include "engine/run_history.hpp"

#include <algorithm>
#include <map>

namespace sekali::engine {

RunHistory measure(const std::vector<RecordedRun>& runs) {
    RunHistory history{.times = {}, .runs = runs.size()};
    std::map<std::string, std::vector<Millis>> times;
    for (const RecordedRun& run : runs) {
        if (run.outcome == "lapsed") ++history.lapses;
        if (run.outcome == "succeeded" || run.outcome == "failed") {
            times[run.kind].push_back(run.took);
        }
    }
    for (auto& [kind, list] : times) {
        std::sort(list.begin(), list.end());
        history.times.push_back(
            {kind, list.size(), list[(list.size() * 99 - 1) / 100], list.back()});
    }
    return history;
}

}  // namespace sekali::engine
