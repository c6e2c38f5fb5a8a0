#include "backends/sqlite/writer.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/sqlite/gate_holder.hpp"
#include "base/clock.hpp"
#include "base/gathered_wakes.hpp"

namespace sekali::sqlite {
namespace {

using engine::Task;

constexpr std::size_t kGroupTasks = 1000;

Error busy_error(std::string message, Applied applied) {
    Error error;
    error.code = ErrorCode::kUnreachable;
    error.message = std::move(message);
    error.hint = "look for a stopped process that has the database open, or a slow disk";
    error.applied = applied;
    error.retryable = true;
    return error;
}

/// Where one caller waits for one answer.
class Reply {
 public:
    void give(Result<void> result) {
        const std::lock_guard guard(mutex_);
        result_ = std::move(result);
        given_.notify_all();
    }
    [[nodiscard]] std::optional<Result<void>> wait_until(
        std::chrono::steady_clock::time_point deadline) {
        std::unique_lock guard(mutex_);
        given_.wait_until(guard, deadline, [&] { return result_.has_value(); });
        return result_;
    }

 private:
    std::mutex mutex_;
    std::condition_variable given_;
    std::optional<Result<void>> result_;
};

}  // namespace

Writer::Writer(const SqliteOptions& options, std::unique_ptr<Connection> connection, Gate gate,
               const LivenessFile& liveness, StoreTimer& timer, ChangeSignal& signal)
    : busy_deadline_(options.busy_deadline),
      connection_(std::move(connection)),
      gate_(std::move(gate)),
      timer_(timer),
      signal_(signal),
      tables_(*connection_, &liveness, SqliteTables::UserAccess::kGuarded),
      commit_(tables_, *connection_, timer_),
      log_(*connection_, options.log_limit_bytes, options.warn),
      inbox_(options.inbox_limit),
      thread_([this] { run_until_closed(); }) {}

Writer::~Writer() {
    closing_ = true;
    inbox_.close();
    thread_.join();
}

void Writer::submit(std::vector<Task> tasks) {
    // What the writer's own thread adds while it answers cannot wait for that same thread.
    const bool from_answer = std::this_thread::get_id() == thread_.get_id();
    auto refused = inbox_.add(std::move(tasks), base::steady_now() + busy_deadline_, from_answer);
    for (const Task& task : refused)
        answer(task, busy_error("sqlite: too many tasks wait for the database", Applied::kNo));
}

Result<void> Writer::run(std::function<void(SqliteTables&)> work, engine::Millis at_most) {
    const auto reply = std::make_shared<Reply>();
    Task task;
    task.work = [this, work = std::move(work)](engine::Tables&) { work(tables_); };
    task.done = [reply](Result<void> result) { reply->give(std::move(result)); };
    const std::uint64_t ticket = inbox_.add_one(std::move(task));
    if (auto result = reply->wait_until(base::steady_now() + at_most)) return *result;
    if (inbox_.withdraw(ticket)) {
        return gate_kept(gate_.path(), "the database was busy for too long");
    }
    if (auto result = reply->wait_until({})) return *result;
    return busy_error("sqlite: the database took too long to commit", Applied::kMaybe);
}

void Writer::run_until_closed() {
    while (inbox_.wait()) {
        auto entered = gate_.enter(base::steady_now() + busy_deadline_);
        if (entered && *entered) {
            run_group();
        } else {
            refuse_overdue(entered ? gate_kept(gate_.path(), "another process kept the write gate")
                                   : entered.error());
        }
    }
}

void Writer::run_group() {
    std::vector<Inbox::Entry> entries;
    std::vector<Task> tasks;
    const auto take_more = [&](GroupCommit::Duration patience) {
        if (tasks.size() >= kGroupTasks || !inbox_.wait_for(patience)) return;
        for (Inbox::Entry& entry : inbox_.take(kGroupTasks - tasks.size())) {
            tasks.push_back(std::move(entry.task));
            entries.push_back(std::move(entry));
        }
    };
    take_more({});
    auto answers = commit_.run(tasks, take_more);
    log_.checkpoint_if_due();
    gate_.leave();
    if (commit_.made_news()) signal_.announce();

    std::vector<Inbox::Entry> left;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (answers[i]) continue;
        entries[i].task = std::move(tasks[i]);
        left.push_back(std::move(entries[i]));
    }
    inbox_.put_back(std::move(left));
    const base::GatheredWakes gathered;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (answers[i]) answer(tasks[i], *std::move(answers[i]));
    }
}

void Writer::refuse_overdue(const Error& why) {
    const auto since =
        closing_ ? Inbox::Clock::time_point::max() : base::steady_now() - busy_deadline_;
    for (Inbox::Entry& entry : inbox_.take_older(since))
        answer(entry.task, why);
}

void Writer::answer(const Task& task, Result<void> result) {
    if (task.done) task.done(std::move(result));
}

}  // namespace sekali::sqlite
