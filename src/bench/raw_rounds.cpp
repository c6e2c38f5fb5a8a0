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

}  // namespace

Timing enqueue_raw(RawStore& store, std::span<const JobDraft> jobs, std::int64_t first_seq,
                   std::size_t batch, double at_most_seconds) {
    return in_batches(
        jobs, first_seq, batch, at_most_seconds,
        [&](std::span<const JobDraft> part, std::int64_t seq) { store.enqueue(part, seq); });
}

Timing drain_raw(RawStore& store, std::span<const JobDraft> jobs, std::int64_t first_seq,
                 std::size_t batch, double at_most_seconds) {
    return in_batches(jobs, first_seq, batch, at_most_seconds,
                      [&](std::span<const JobDraft> part, std::int64_t seq) {
                          store.claim(part, seq);
                          store.begin_runs(part, seq);
                          store.settle(part, seq);
                      });
}

}  // namespace sekali::bench
