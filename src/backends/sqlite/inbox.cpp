#include "backends/sqlite/inbox.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.hpp"

namespace sekali::sqlite {

using engine::Task;

void Inbox::push(Task task, std::uint64_t ticket) {
    std::deque<Entry>& queue = task.urgent ? urgent_ : queued_;
    queue.push_back(Entry{std::move(task), base::steady_now(), ticket});
}

std::vector<Task> Inbox::add(std::vector<Task> tasks, Clock::time_point deadline,
                             bool has_priority) {
    std::vector<Task> refused;
    {
        std::unique_lock guard(mutex_);
        for (Task& task : tasks) {
            const auto has_room = [&] { return closed_ || size() < limit_; };
            if (!task.urgent && !has_priority && !has_room()) {
                filled_.notify_one();
                drained_.wait_until(guard, deadline, has_room);
            }
            const bool fits = task.urgent || has_priority || size() < limit_;
            if (closed_ || !fits) {
                refused.push_back(std::move(task));
            } else {
                push(std::move(task), 0);
            }
        }
    }
    filled_.notify_one();
    return refused;
}

std::uint64_t Inbox::add_one(Task task) {
    std::uint64_t ticket = 0;
    {
        const std::lock_guard guard(mutex_);
        ticket = ++last_ticket_;
        push(std::move(task), ticket);
    }
    filled_.notify_one();
    return ticket;
}

bool Inbox::withdraw(std::uint64_t ticket) {
    const std::lock_guard guard(mutex_);
    const auto is_it = [&](const Entry& entry) { return entry.ticket == ticket; };
    return std::erase_if(urgent_, is_it) + std::erase_if(queued_, is_it) != 0;
}

bool Inbox::wait() {
    std::unique_lock guard(mutex_);
    filled_.wait(guard, [&] { return closed_ || size() != 0; });
    return size() != 0;
}

bool Inbox::wait_for(Clock::duration patience) {
    std::unique_lock guard(mutex_);
    filled_.wait_for(guard, patience, [&] { return closed_ || size() != 0; });
    return size() != 0;
}

std::vector<Inbox::Entry> Inbox::take(std::size_t at_most) {
    std::vector<Entry> taken;
    {
        const std::lock_guard guard(mutex_);
        taken.reserve(std::min(at_most, size()));
        for (std::deque<Entry>* from : {&urgent_, &queued_}) {
            while (!from->empty() && taken.size() < at_most) {
                taken.push_back(std::move(from->front()));
                from->pop_front();
            }
        }
    }
    drained_.notify_all();
    return taken;
}

std::vector<Inbox::Entry> Inbox::take_older(Clock::time_point since) {
    std::vector<Entry> taken;
    {
        const std::lock_guard guard(mutex_);
        for (std::deque<Entry>* from : {&urgent_, &queued_}) {
            while (!from->empty() && from->front().since <= since) {
                taken.push_back(std::move(from->front()));
                from->pop_front();
            }
        }
    }
    drained_.notify_all();
    return taken;
}

void Inbox::put_back(std::vector<Entry> entries) {
    const std::lock_guard guard(mutex_);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        (entry->task.urgent ? urgent_ : queued_).push_front(std::move(*entry));
    }
}

void Inbox::close() {
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
    }
    filled_.notify_all();
    drained_.notify_all();
}

}  // namespace sekali::sqlite
