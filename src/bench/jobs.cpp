#include "bench/jobs.hpp"

#include <fmt/format.h>

#include "base/ids.hpp"

namespace sekali::bench {

std::vector<JobDraft> make_jobs(const Level& level, std::uint64_t first, std::size_t count) {
    std::vector<JobDraft> jobs(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string order = fmt::format("order-{:08}", first + i);
        JobDraft& job = jobs[i];
        job.id = base::new_uuid7();
        job.payload = fmt::format(R"({{"order_id":"{}","cents":4200,"currency":"EUR"}})", order);
        if (level.unique_key) job.unique_key = "charge:" + order;
        if (level.lock_key) job.lock_key = order;
    }
    return jobs;
}

}  // namespace sekali::bench
