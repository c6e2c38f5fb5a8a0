#include "bench/sekali_rounds.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/clock.hpp"
#include "bench/quiet_worker.hpp"
#include "sekali/client.hpp"

namespace sekali {

/// A draft with keys of its own; those without go in as `RawJob`.
template <>
struct JobTraits<bench::JobDraft> {
    static constexpr std::string_view kind() { return bench::kKind; }
    static EnqueueOptions options(const bench::JobDraft& job) {
        const auto given = [](const std::string& key) {
            return key.empty() ? std::optional<std::string>() : key;
        };
        return {.key = given(job.key),
                .lock = given(job.lock_key),
                .unique = given(job.unique_key),
                .queue = std::string(bench::kQueue)};
    }
};

template <>
struct Codec<bench::JobDraft> {
    static std::string encode(const bench::JobDraft& job) { return job.payload; }
    static bench::JobDraft decode(std::string_view json) {
        bench::JobDraft job;
        job.payload = json;
        return job;
    }
};

}  // namespace sekali

namespace sekali::bench {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{200};

std::vector<RawJob> raw_jobs(std::span<const JobDraft> jobs) {
    std::vector<RawJob> raw;
    raw.reserve(jobs.size());
    for (const JobDraft& job : jobs)
        raw.push_back({std::string(kKind), job.payload});
    return raw;
}

bool has_keys(const JobDraft& job) {
    return !job.key.empty() || !job.lock_key.empty() || !job.unique_key.empty();
}

/// Tells when the last handler has started, or the worker has ended without it.
class Countdown {
 public:
    explicit Countdown(std::size_t left) : left_(left) {}

    void count() {
        const std::lock_guard guard(mutex_);
        if (left_ > 0 && --left_ == 0) over_.notify_all();
    }
    void end() {
        const std::lock_guard guard(mutex_);
        ended_ = true;
        over_.notify_all();
    }
    void wait() {
        std::unique_lock guard(mutex_);
        over_.wait(guard, [this] { return left_ == 0 || ended_; });
    }
    [[nodiscard]] bool ended() {
        const std::lock_guard guard(mutex_);
        return ended_;
    }

 private:
    std::mutex mutex_;
    std::condition_variable over_;
    std::size_t left_;
    bool ended_ = false;
};

/// Waits until no job is running any more, as another connection sees it.
void wait_for_last_commit(const std::function<bool()>& running, Countdown& countdown) {
    while (!countdown.ended() && running())
        std::this_thread::sleep_for(kBetweenLooks);
}

}  // namespace

Timing enqueue_sekali(const std::string& url, std::span<const JobDraft> jobs) {
    Client client = Client::open(url).value();
    const bool keyed = !jobs.empty() && has_keys(jobs.front());
    const std::vector<RawJob> raw = keyed ? std::vector<RawJob>{} : raw_jobs(jobs);
    const double cpu_before = cpu_seconds();
    const Stopwatch watch;
    const auto answers = keyed
                             ? client.enqueue_many(jobs)
                             : client.enqueue_many(std::span(raw), {.queue = std::string(kQueue)});
    Timing timing{jobs.size(), watch.seconds(), cpu_seconds() - cpu_before};
    for (const auto& answer : answers)
        static_cast<void>(answer.value());
    return timing;
}

Timing drain_sekali(Subject& subject, const Level& level, std::size_t count,
                    std::size_t concurrency) {
    Countdown countdown(count);
    const auto handler = [&countdown, &level, sql = subject.effect_sql()](Context& ctx) {
        countdown.count();
        if (!level.commit) return success();
        return ctx.commit([&](Transaction& tx) { tx.execute(sql, ctx.job().id, kEffectCents); });
    };
    HandlerOptions options;
    if (!level.record) options.record = Record::kNone;
    const std::function<bool()> running = subject.running();
    QuietWorker worker(subject.url(), concurrency, true, handler, options);
    const double cpu_before = cpu_seconds();
    const Stopwatch watch;
    std::jthread runner([&] {
        worker.run();
        countdown.end();
    });
    countdown.wait();
    wait_for_last_commit(running, countdown);
    return {count, watch.seconds(), cpu_seconds() - cpu_before};
}

}  // namespace sekali::bench
