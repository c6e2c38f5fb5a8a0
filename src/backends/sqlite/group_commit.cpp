#include "backends/sqlite/group_commit.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "backends/sqlite/errors.hpp"
#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

using engine::Task;

/// Work in one transaction, after which it commits: others wait for their turn meanwhile. On a slow
/// disk it is more, so that no more than about a fifth of the time goes to the disk.
constexpr std::chrono::milliseconds kLeastWorkAtOnce{10};
constexpr std::chrono::milliseconds kMostWorkAtOnce{25};
constexpr int kWorkForCommit = 4;
/// Those who were answered after the last commit are likely to ask for more at once: to wait for a
/// part of what a commit takes is cheaper than another commit.
constexpr int kLinger = 4;
constexpr int kCommitWeight = 4;  ///< Of what was known before a commit, to 1 of that.
/// Tasks that may fail in one group before all that is left of it runs one by one.
constexpr std::size_t kSetAside = 8;

std::optional<Error> failure_of(const auto& action) {
    try {
        action();
        return std::nullopt;
    } catch (const Failure& failure) {
        return failure.error();
    } catch (const std::exception& thrown) {
        return Error{.code = ErrorCode::kInternal, .message = thrown.what()};
    } catch (...) {
        return Error{.code = ErrorCode::kInternal, .message = "a task threw something unknown"};
    }
}

}  // namespace

std::vector<std::optional<Result<void>>> GroupCommit::run(std::vector<Task>& tasks,
                                                          const AddMore& add_more) {
    made_news_ = false;
    std::vector<std::optional<Result<void>>> answers(tasks.size());
    std::vector<std::size_t> together(tasks.size());
    std::iota(together.begin(), together.end(), std::size_t{0});
    std::vector<std::size_t> alone;
    while (!together.empty()) {
        Attempt tried = attempt(tasks, together, add_more);
        answers.resize(tasks.size());
        if (tried.end == Attempt::End::kCommitted) {
            for (std::size_t i = 0; i < tried.ran; ++i)
                answers[together[i]] = Result<void>{};
            break;
        }
        if (tried.end == Attempt::End::kNoTransaction || together.size() == 1) {
            for (const std::size_t i : together)
                answers[i] = Result<void>(*tried.error);
            break;
        }
        if (tried.end == Attempt::End::kTaskFailed && alone.size() < kSetAside) {
            const auto culprit = together.begin() + static_cast<std::ptrdiff_t>(tried.ran) - 1;
            alone.push_back(*culprit);
            together.erase(culprit);
        } else {
            alone.insert(alone.end(), together.begin(), together.end());
            together.clear();
        }
    }
    for (const std::size_t i : alone) {
        std::vector<std::size_t> only{i};
        Attempt tried = attempt(tasks, only, [](Duration) {});
        answers[i] = tried.error ? Result<void>(*std::move(tried.error)) : Result<void>{};
    }
    return answers;
}

GroupCommit::Attempt GroupCommit::attempt(const std::vector<Task>& tasks,
                                          std::vector<std::size_t>& chosen,
                                          const AddMore& add_more) {
    Attempt tried{Attempt::End::kNoTransaction, 0, begin()};
    if (tried.error) return tried;
    const auto until = base::steady_now() + std::clamp<Duration>(kWorkForCommit * commit_time_,
                                                                 kLeastWorkAtOnce, kMostWorkAtOnce);
    do {
        tried.error = work(tasks[chosen[tried.ran++]]);
        if (tried.error) {
            roll_back();
            tried.end = Attempt::End::kTaskFailed;
            return tried;
        }
        const auto now = base::steady_now();
        if (now >= until) break;
        if (tried.ran == chosen.size()) {
            const std::size_t known = tasks.size();
            const bool expects_more = tried.ran < last_group_;
            add_more(expects_more ? std::min(commit_time_ / kLinger, until - now) : Duration{});
            for (std::size_t i = known; i < tasks.size(); ++i)
                chosen.push_back(i);
        }
    } while (tried.ran < chosen.size());
    const bool news = tables_.made_news();
    last_group_ = tried.ran;
    tried.error = commit();
    tried.end = tried.error ? Attempt::End::kCommitFailed : Attempt::End::kCommitted;
    if (tried.error) {
        roll_back();
    } else {
        made_news_ = made_news_ || news;
    }
    return tried;
}

std::optional<Error> GroupCommit::begin() {
    auto error = failure_of([&] {
        Query(tables_.statements(), Sql::kBegin).run();
        tables_.go_on(timer_.now());
        timer_.keep_bound(tables_.statements(), tables_.now());
    });
    if (error) roll_back();
    return error;
}

std::optional<Error> GroupCommit::work(const Task& task) {
    return failure_of([&] {
        task.work(tables_);
        if (!connection_.in_transaction()) {
            throw Failure(refused("the transaction ended before its task did", {}));
        }
    });
}

std::optional<Error> GroupCommit::commit() {
    const auto begun = base::steady_now();
    auto error = failure_of([&] { Query(tables_.statements(), Sql::kCommit).run(); });
    const Duration took = base::steady_now() - begun;
    commit_time_ = (kCommitWeight * commit_time_ + took) / (kCommitWeight + 1);
    // Where the disk failed, the end of the log may have reached it all the same.
    if (error && error->backend_code.starts_with("SQLITE_IOERR")) error->applied = Applied::kMaybe;
    return error;
}

void GroupCommit::roll_back() {
    connection_.roll_back();
    tables_.rolled_back();
    timer_.forget_bound();
}

}  // namespace sekali::sqlite
