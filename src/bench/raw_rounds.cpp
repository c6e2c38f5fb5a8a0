#include "bench/raw_rounds.hpp"

#include <algorithm>

#include "bench/clock.hpp"

namespace sekali::bench {
namespace {

/// Runs `work` on one batch after the other.
template <typename Work>
Timing in_batches(std::span<const JobDraft> jobs, std::int64_t first_seq, std::size_t batch,
                  double at_most_seconds, Work work) {
    Timing timing;
    const double cpu_before = cpu_seconds();
    const Stopwatch watch;
    while (timing.jobs < jobs.size() && watch.seconds() < at_most_seconds) {
        const std::size_t size = std::min(batch, jobs.size() - timing.jobs);
        work(jobs.subspan(timing.jobs, size), first_seq + static_cast<std::int64_t>(timing.jobs));
        timing.jobs += size;
    }
    timing.seconds = watch.seconds();
    timing.cpu_seconds = cpu_seconds() - cpu_before;
    return timing;
}

/// One transaction that does `write` for each job.
template <typename Write>
void in_transaction(RawDatabase& database, std::span<const JobDraft> jobs, std::int64_t first_seq,
                    Write write) {
    database.begin();
    for (std::size_t i = 0; i < jobs.size(); ++i)
        write(jobs[i], first_seq + static_cast<std::int64_t>(i));
    database.commit();
}

}  // namespace

Timing enqueue_raw(RawDatabase& database, std::span<const JobDraft> jobs, std::int64_t first_seq,
                   std::size_t batch, double at_most_seconds) {
    return in_batches(jobs, first_seq, batch, at_most_seconds,
                      [&](std::span<const JobDraft> part, std::int64_t seq) {
                          in_transaction(database, part, seq,
                                         [&](const JobDraft& job, std::int64_t place) {
                                             database.enqueue(job, place);
                                         });
                      });
}

Timing drain_raw(RawDatabase& database, std::span<const JobDraft> jobs, std::int64_t first_seq,
                 std::size_t batch, double at_most_seconds) {
    return in_batches(
        jobs, first_seq, batch, at_most_seconds,
        [&](std::span<const JobDraft> part, std::int64_t seq) {
            in_transaction(database, part, seq,
                           [&](const JobDraft&, std::int64_t place) { database.claim(place); });
            in_transaction(database, part, seq, [&](const JobDraft& job, std::int64_t place) {
                database.begin_run(job, place);
            });
            in_transaction(database, part, seq, [&](const JobDraft& job, std::int64_t place) {
                database.settle(job, place);
            });
        });
}

}  // namespace sekali::bench
