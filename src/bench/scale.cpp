#include "bench/scale.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <vector>

#include "base/errors.hpp"
#include "bench/figures.hpp"
#include "bench/preload.hpp"
#include "bench/raw_database.hpp"
#include "bench/raw_rounds.hpp"
#include "bench/sekali_rounds.hpp"
#include "bench/sqlite_target.hpp"

namespace sekali::bench {
namespace {

constexpr std::array<std::size_t, 4> kRows{1'000, 10'000, 100'000, 1'000'000};
constexpr std::size_t kJobs = 4000;
constexpr std::size_t kRounds = 3;
constexpr std::size_t kBatch = 1000;
constexpr double kAtMostSeconds = 60;
constexpr std::uintmax_t kSpaceBytes = std::uintmax_t{4} << 30;

class Scale {
 public:
    Scale(Steps& steps, Scratch& scratch, bool random_keys, std::size_t concurrency)
        : steps_(steps),
          random_keys_(random_keys),
          concurrency_(concurrency),
          subject_(scratch, steps.options().synchronous),
          preload_(subject_.path(), random_keys) {}
    ScalePoint measure(std::size_t rows);

 private:
    std::vector<JobDraft> fresh_jobs();
    double raw_us();
    double sekali_us();

    Steps& steps_;
    const bool random_keys_;
    const std::size_t concurrency_;
    SqliteSubject subject_;
    Preload preload_;
    std::uint64_t numbers_ = 0;
};

std::vector<JobDraft> Scale::fresh_jobs() {
    std::vector<JobDraft> jobs = make_jobs(kDefaultLevel, numbers_, kJobs);
    for (JobDraft& job : jobs)
        job.key = fresh_key(random_keys_, numbers_++);
    return jobs;
}

double us_per_job(const Timing& in, const Timing& out) {
    return 1e6 * (in.seconds / static_cast<double>(in.jobs) +
                  out.seconds / static_cast<double>(out.jobs));
}

double Scale::raw_us() {
    const auto jobs = fresh_jobs();
    RawDatabase database(subject_.path(), steps_.options().synchronous, kDefaultLevel);
    const std::int64_t first =
        database.connection().query_integer("SELECT coalesce(max(seq), 0) + 1 FROM sekali_jobs");
    const Timing in = enqueue_raw(database, jobs, first, kBatch, kAtMostSeconds);
    const std::span done = std::span(jobs).first(in.jobs);
    return us_per_job(in, drain_raw(database, done, first, kBatch, kAtMostSeconds));
}

double Scale::sekali_us() {
    const auto jobs = fresh_jobs();
    const Timing in = enqueue_sekali(subject_.url(), jobs);
    return us_per_job(in, drain_sekali(subject_, kDefaultLevel, jobs.size(), concurrency_));
}

ScalePoint Scale::measure(std::size_t rows) {
    const std::string_view keys = random_keys_ ? "random" : "ascending";
    steps_.next(fmt::format("filling in {} jobs and records, {} keys", rows, keys));
    preload_.grow_to(rows);
    steps_.next(fmt::format("one job beside {} jobs and records, {} keys", rows, keys));
    std::vector<double> raw;
    std::vector<double> sekali;
    for (std::size_t round = 0; round < kRounds; ++round) {
        steps_.check();
        raw.push_back(raw_us());
        preload_.forget_others();
        sekali.push_back(sekali_us());
        preload_.forget_others();
    }
    return {random_keys_, rows, median(sekali), median(raw)};
}

void check_space(const std::filesystem::path& folder) {
    if (std::filesystem::space(folder).available >= kSpaceBytes) return;
    throw Failure(
        base::usage_error(fmt::format("--scale needs {} GiB of free disk", kSpaceBytes >> 30),
                          "choose a folder with more space by --folder"));
}

}  // namespace

void measure_scale(Steps& steps, Scratch& scratch, BenchResult& result) {
    check_space(scratch.folder());
    for (const bool random_keys : {false, true}) {
        Scale scale(steps, scratch, random_keys, result.levels[3].concurrency);
        for (const std::size_t rows : kRows)
            result.scale.push_back(scale.measure(rows));
    }
}

}  // namespace sekali::bench
