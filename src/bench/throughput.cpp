#include "bench/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "bench/clock.hpp"
#include "bench/figures.hpp"
#include "bench/raw_rounds.hpp"
#include "bench/sekali_rounds.hpp"

namespace sekali::bench {
namespace {

constexpr std::array<std::size_t, 5> kConcurrencies{16, 64, 256, 512, 1024};
constexpr std::size_t kTuningShare = 2;
constexpr std::size_t kRounds = 3;
/// Small batches cost a sync for a few jobs; some are enough to know their rate.
constexpr std::array<std::size_t, 2> kSmallBatches{1, 10};
constexpr double kSmallBatchSeconds = 0.3;
constexpr std::array<std::size_t, 2> kLargeBatches{100, 1000};
constexpr double kLargeBatchSeconds = 4;
/// What one drain may take at the rate that was found; a slow machine gets fewer jobs.
constexpr double kDrainSeconds = 2;
constexpr std::size_t kLeastJobs = 1000;
/// No further round is begun that would end later.
constexpr double kAllSeconds = 65;

struct Samples {
    std::vector<double> sekali;
    std::map<std::size_t, std::vector<double>> raw;
    std::vector<double> sekali_cpu;
    std::map<std::size_t, std::vector<double>> raw_cpu;

    void add_sekali(const Timing& timing) {
        sekali.push_back(timing.per_s());
        sekali_cpu.push_back(timing.cpu_us());
    }
    void add_raw(std::size_t batch, const Timing& timing) {
        raw[batch].push_back(timing.per_s());
        raw_cpu[batch].push_back(timing.cpu_us());
    }
    [[nodiscard]] Comparison comparison() const {
        Comparison found{median(sekali), {}};
        for (const auto& [batch, rates] : raw)
            found.raw_by_batch.push_back({batch, median(rates)});
        return found;
    }
};

class Throughput {
 public:
    explicit Throughput(Steps& steps) : steps_(steps), jobs_(steps.options().jobs) {}

    void tune();
    void run();
    void report(BenchResult& result) const;

 private:
    void round(std::size_t place);
    void raw_round(std::size_t place, std::size_t batch, double at_most_seconds);
    void sekali_round(std::size_t place);
    [[nodiscard]] double tune(const Level& level, std::size_t& concurrency);
    /// Only what is enqueued without further keys is compared: the others differ by level.
    [[nodiscard]] static bool enqueues_plainly(const Level& level) { return !level.unique_key; }

    Steps& steps_;
    std::size_t jobs_;
    Samples enqueue_;
    std::array<Samples, kLevels.size()> drain_;
    std::array<std::size_t, kLevels.size()> concurrency_{};
    std::size_t rounds_ = 0;
};

/// Returns the rate of the best concurrency.
double Throughput::tune(const Level& level, std::size_t& concurrency) {
    double best = 0;
    for (const std::size_t tried : kConcurrencies) {
        steps_.next(fmt::format("tuning {}: concurrency {}", level.name, tried));
        const auto subject = steps_.target().new_subject();
        const auto jobs = make_jobs(level, 0, std::max(jobs_ / kTuningShare, kLeastJobs));
        static_cast<void>(enqueue_sekali(subject->url(), jobs));
        const Timing timing = drain_sekali(*subject, level, jobs.size(), tried);
        if (timing.per_s() <= best) continue;
        best = timing.per_s();
        concurrency = tried;
    }
    return best;
}

void Throughput::tune() {
    std::size_t usual = kConcurrencies.front();
    std::size_t of_commits = usual;
    const double rate = tune(kDefaultLevel, usual);
    static_cast<void>(tune(kCommitLevel, of_commits));
    for (std::size_t i = 0; i < kLevels.size(); ++i)
        concurrency_[i] = kLevels[i].commit ? of_commits : usual;
    jobs_ = std::min(jobs_, std::max(kLeastJobs, static_cast<std::size_t>(rate * kDrainSeconds)));
}

void Throughput::raw_round(std::size_t place, std::size_t batch, double at_most_seconds) {
    const Level& level = kLevels[place];
    steps_.check();
    const auto subject = steps_.target().new_subject();
    const auto jobs = make_jobs(level, 0, jobs_);
    const auto store = subject->raw(level);
    const Timing in = enqueue_raw(*store, jobs, 1, batch, at_most_seconds);
    if (enqueues_plainly(level)) enqueue_.add_raw(batch, in);
    const std::span done = std::span(jobs).first(in.jobs);
    drain_[place].add_raw(batch, drain_raw(*store, done, 1, batch, at_most_seconds));
}

void Throughput::sekali_round(std::size_t place) {
    const Level& level = kLevels[place];
    steps_.check();
    const auto subject = steps_.target().new_subject();
    const auto jobs = make_jobs(level, 0, jobs_);
    const Timing in = enqueue_sekali(subject->url(), jobs);
    if (enqueues_plainly(level)) enqueue_.add_sekali(in);
    drain_[place].add_sekali(drain_sekali(*subject, level, jobs.size(), concurrency_[place]));
}

void Throughput::round(std::size_t place) {
    steps_.next(fmt::format("round {} of {}: {} ({})", rounds_ + 1, kRounds, kLevels[place].name,
                            kLevels[place].adds));
    raw_round(place, kLargeBatches.front(), kLargeBatchSeconds);
    sekali_round(place);
    raw_round(place, kLargeBatches.back(), kLargeBatchSeconds);
    if (rounds_ > 0) return;
    for (const std::size_t batch : kSmallBatches)
        raw_round(place, batch, kSmallBatchSeconds);
}

void Throughput::run() {
    const Stopwatch watch;
    double longest = 0;
    while (rounds_ < kRounds && watch.seconds() + longest < kAllSeconds) {
        const Stopwatch round_watch;
        for (std::size_t place = 0; place < kLevels.size(); ++place)
            round(place);
        longest = round_watch.seconds();
        ++rounds_;
    }
}

void Throughput::report(BenchResult& result) const {
    result.environment.jobs = jobs_;
    result.enqueue = enqueue_.comparison();
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
        LevelFigures& level = result.levels[i];
        level.rate = drain_[i].comparison();
        level.sekali_cpu_us = median(drain_[i].sekali_cpu);
        level.raw_cpu_us = median(drain_[i].raw_cpu.at(level.rate.raw().batch));
        level.concurrency = concurrency_[i];
        level.rounds = rounds_;
    }
}

}  // namespace

void measure_throughput(Steps& steps, BenchResult& result) {
    Throughput throughput(steps);
    throughput.tune();
    throughput.run();
    throughput.report(result);
}

}  // namespace sekali::bench
