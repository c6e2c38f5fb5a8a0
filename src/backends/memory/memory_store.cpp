#include "backends/memory/memory_store.hpp"

#include <chrono>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "base/clock.hpp"

namespace sekali::memory {
namespace {

using engine::Millis;
using engine::StoreTime;
using engine::Tables;
using engine::Task;

/// Where the stepped clock stands at first: any fixed time far from zero, so that a time that was
/// never set stands out.
constexpr Millis kSteppedStart = std::chrono::hours{24 * 365 * 30};
/// How many tasks share one transaction at most, so that the first answer does not wait for ever.
constexpr std::size_t kGroupLimit = 512;

Millis steady_now() {
    return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch());
}

Millis wall_now() {
    return Millis{base::wall_ms()};
}

std::optional<Error> failure_of(const std::function<void(Tables&)>& work, Tables& tables) {
    try {
        work(tables);
        return std::nullopt;
    } catch (const Failure& failure) {
        return failure.error();
    } catch (const std::exception& thrown) {
        return Error{.code = ErrorCode::kInternal, .message = thrown.what()};
    }
}

}  // namespace

MemoryStore::MemoryStore(Mode mode)
    : mode_(mode), offset_(mode == Mode::kStepped ? kSteppedStart : wall_now() - steady_now()) {
    if (mode_ == Mode::kThreaded) thread_ = std::thread([this] { run_until_stopped(); });
}

MemoryStore::~MemoryStore() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    submitted_.notify_all();
    if (thread_.joinable()) thread_.join();
    run_all();
}

void MemoryStore::submit(std::vector<Task> tasks) {
    {
        const std::lock_guard guard(mutex_);
        for (Task& task : tasks)
            (task.urgent ? urgent_ : queued_).push_back(std::move(task));
    }
    submitted_.notify_one();
}

Result<void> MemoryStore::read(const std::function<void(Tables&)>& work) {
    const std::lock_guard guard(mutex_);
    tables_.set_now(read_clock());
    std::optional<Error> error = failure_of(work, tables_);
    tables_.undo().roll_back_to(0);
    if (error) return *std::move(error);
    return {};
}

void MemoryStore::wait_for_change(Millis at_most) {
    if (mode_ == Mode::kStepped) return;
    std::unique_lock guard(mutex_);
    // What changed between a caller's look and its call must not be slept through, so a wait starts
    // from where the last one of the same thread ended.
    std::uint64_t& seen = seen_changes_[std::this_thread::get_id()];
    changed_.wait_for(guard, at_most, [&] { return changes_ != seen || stopping_; });
    seen = changes_;
}

bool MemoryStore::step() {
    std::vector<Task> group = take_group();
    if (group.empty()) return false;
    for (Answer& answer : run_group(std::move(group)))
        answer.done(std::move(answer.result));
    return true;
}

void MemoryStore::run_all() {
    while (step()) {
    }
}

std::vector<Task> MemoryStore::take_group() {
    const std::lock_guard guard(mutex_);
    std::vector<Task> group;
    for (std::deque<Task>* from : {&urgent_, &queued_}) {
        while (!from->empty() && group.size() < kGroupLimit) {
            group.push_back(std::move(from->front()));
            from->pop_front();
        }
    }
    return group;
}

std::vector<MemoryStore::Answer> MemoryStore::run_group(std::vector<Task> group) {
    std::vector<Answer> answers;
    answers.reserve(group.size());
    {
        const std::lock_guard guard(mutex_);
        tables_.set_now(read_clock());
        bool all_well = true;
        for (const Task& task : group) {
            all_well = !failure_of(task.work, tables_);
            if (!all_well) break;
        }
        if (all_well) {
            tables_.undo().forget();
        } else {
            tables_.undo().roll_back_to(0);
        }
        for (Task& task : group) {
            Result<void> result = all_well ? Result<void>{} : run_alone(task);
            answers.push_back({std::move(task.done), std::move(result)});
        }
        ++changes_;
    }
    changed_.notify_all();
    return answers;
}

Result<void> MemoryStore::run_alone(const Task& task) {
    std::optional<Error> error = failure_of(task.work, tables_);
    if (error) {
        tables_.undo().roll_back_to(0);
        return *std::move(error);
    }
    tables_.undo().forget();
    return {};
}

void MemoryStore::run_until_stopped() {
    for (;;) {
        {
            std::unique_lock guard(mutex_);
            submitted_.wait(guard,
                            [&] { return stopping_ || !urgent_.empty() || !queued_.empty(); });
            if (stopping_) return;
        }
        step();
    }
}

StoreTime MemoryStore::read_clock() const {
    return StoreTime{offset_ + (mode_ == Mode::kThreaded ? steady_now() : Millis{0})};
}

StoreTime MemoryStore::now() const {
    const std::lock_guard guard(mutex_);
    return read_clock();
}

void MemoryStore::set_now(StoreTime now) {
    const std::lock_guard guard(mutex_);
    offset_ += now - read_clock();
}

void MemoryStore::advance(Millis by) {
    const std::lock_guard guard(mutex_);
    offset_ += by;
}

void MemoryStore::set_fate(const std::string& worker, engine::OwnerFate fate) {
    const std::lock_guard guard(mutex_);
    tables_.set_fate(worker, fate);
}

}  // namespace sekali::memory
