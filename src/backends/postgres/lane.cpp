#include "backends/postgres/lane.hpp"

#include <algorithm>
#include <utility>

namespace sekali::postgres {
namespace {

using engine::Task;

constexpr std::size_t kTasksAtOnce = 1024;
constexpr std::size_t kQueueLimit = 20'000;

}  // namespace

Lane::Lane(const PostgresOptions& options, const Statements& sql, KnownRows& known,
           const std::atomic<bool>& closing, std::function<void(Units&)> announce,
           std::size_t connections)
    : announce_(std::move(announce)) {
    for (std::size_t i = 0; i < connections; ++i)
        units_.push_back(std::make_unique<Units>(options, sql, known, closing));
    threads_.reserve(connections);
}

Lane::~Lane() {
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

bool Lane::is_own_thread() const {
    return std::any_of(threads_.begin(), threads_.end(), [](const std::thread& thread) {
        return thread.get_id() == std::this_thread::get_id();
    });
}

void Lane::submit(std::vector<Task> tasks) {
    std::unique_lock guard(mutex_);
    if (!is_own_thread()) {
        drained_.wait(guard, [&] { return closed_ || queued_.size() < kQueueLimit; });
    }
    for (Task& task : tasks)
        queued_.push_back(std::move(task));
    if (idle_ == 0 && threads_.size() < units_.size()) {
        threads_.emplace_back(
            [this, &units = *units_[threads_.size()]] { run_until_closed(units); });
    }
    guard.unlock();
    filled_.notify_one();
}

void Lane::run_until_closed(Units& units) {
    for (;;) {
        std::vector<Task> group;
        {
            std::unique_lock guard(mutex_);
            ++idle_;
            filled_.wait(guard, [&] { return closed_ || !queued_.empty(); });
            --idle_;
            if (queued_.empty()) return;
            while (!queued_.empty() && group.size() < kTasksAtOnce) {
                group.push_back(std::move(queued_.front()));
                queued_.pop_front();
            }
        }
        drained_.notify_all();
        std::vector<Result<void>> answers = units.run(group);
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (group[i].done) group[i].done(std::move(answers[i]));
        }
        if (units.made_news()) announce_(units);
    }
}

}  // namespace sekali::postgres
