#include "backends/postgres/lane.hpp"

#include <utility>

namespace sekali::postgres {
namespace {

using engine::Task;

constexpr std::size_t kTasksAtOnce = 256;
constexpr std::size_t kQueueLimit = 20'000;

}  // namespace

Lane::Lane(const PostgresOptions& options, const Statements& sql, const std::atomic<bool>& closing,
           std::function<void(Units&)> announce)
    : announce_(std::move(announce)),
      units_(options, sql, closing),
      thread_([this] { run_until_closed(); }) {}

Lane::~Lane() {
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
    }
    filled_.notify_all();
    thread_.join();
}

void Lane::submit(std::vector<Task> tasks) {
    std::unique_lock guard(mutex_);
    if (std::this_thread::get_id() != thread_.get_id()) {
        drained_.wait(guard, [&] { return closed_ || queued_.size() < kQueueLimit; });
    }
    for (Task& task : tasks)
        queued_.push_back(std::move(task));
    guard.unlock();
    filled_.notify_one();
}

void Lane::run_until_closed() {
    for (;;) {
        std::vector<Task> group;
        {
            std::unique_lock guard(mutex_);
            filled_.wait(guard, [&] { return closed_ || !queued_.empty(); });
            if (queued_.empty()) return;
            while (!queued_.empty() && group.size() < kTasksAtOnce) {
                group.push_back(std::move(queued_.front()));
                queued_.pop_front();
            }
        }
        drained_.notify_all();
        std::vector<Result<void>> answers = units_.run(group);
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (group[i].done) group[i].done(std::move(answers[i]));
        }
        if (units_.made_news()) announce_(units_);
    }
}

}  // namespace sekali::postgres
