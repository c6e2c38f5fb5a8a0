#include "backends/postgres/unit.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace sekali::postgres {
namespace {

using engine::Millis;
using engine::Task;
using Mode = PostgresTables::Mode;

/// Runs of one group that another transaction may spoil, before its tasks run one by one.
constexpr int kGroupConflicts = 3;
/// As many for a task that runs alone.
constexpr int kTaskConflicts = 40;
/// Times that a task may ask for what nobody foresaw; then it is given its rows one by one.
constexpr int kUnforeseen = 4;
/// Tasks that may fail in one group before all that is left of it runs one by one.
constexpr std::size_t kSetAside = 8;
constexpr unsigned kMostCaution = 63;
/// Effects that have a transaction of their own after a deadlock.
constexpr unsigned kLeastApart = 32;
constexpr unsigned kMostApart = 2048;
constexpr Millis kPauseAfterConflict{2};
constexpr Millis kPauseWithoutServer{100};

Error spoilt(const Error& last) {
    Error error = last;
    error.code = ErrorCode::kUnreachable;
    error.retryable = true;
    error.hint = "other transactions were in the way again and again; the same call may succeed";
    return error;
}

/// Others hold rows and wait for some of this transaction's, or keep theirs for long.
bool is_about_locks(const Error& error) {
    return error.backend_code == "40P01" || error.backend_code == "55P03";
}

/// A task relied on what was assumed and wrote nothing by which the server would have proven it.
SqlFailure unproven() {
    return {Trouble::kConflict,
            {.code = ErrorCode::kInternal, .message = "postgres: an assumption was not proven"}};
}

}  // namespace

/// The transaction of a unit: it begins with the first command, in the same round trip.
class Units::UnitChannel final : public Channel {
 public:
    UnitChannel(Connection& connection, const Statements& sql)
        : connection_(connection), sql_(sql) {}

    std::vector<ResultPtr> run(std::span<const Command> commands) override {
        if (!std::exchange(begun_, true)) begin();
        if (ahead_.empty()) return connection_.run(commands);
        std::vector<Command> all = std::exchange(ahead_, {});
        const auto count = static_cast<std::ptrdiff_t>(all.size());
        all.insert(all.end(), commands.begin(), commands.end());
        std::vector<ResultPtr> results = connection_.run(all);
        results.erase(results.begin(), results.begin() + count);
        return results;
    }
    void run_with_next(Command command) override { ahead_.push_back(std::move(command)); }
    void begin() {
        ahead_.insert(ahead_.begin(), {&sql_.begin, {}});
        if (connection_.is_pooled()) {
            ahead_.insert(ahead_.begin() + 1, {&connection_.local_settings(), {}});
        }
    }
    [[nodiscard]] PGconn* handle() const override { return connection_.handle(); }
    [[nodiscard]] bool begun() const { return begun_; }

 private:
    Connection& connection_;
    const Statements& sql_;
    std::vector<Command> ahead_;
    bool begun_ = false;
};

Units::Units(const PostgresOptions& options, const Statements& sql, KnownRows& known,
             const std::atomic<bool>& closing)
    : options_(options), sql_(sql), closing_(closing), tables_(sql, options, &known) {}

Units::~Units() = default;

Connection& Units::connection() {
    if (connection_ == nullptr || !connection_->is_usable()) {
        connection_.reset();
        last_token_.clear();
        connection_ = Connection::open(options_);
    }
    return *connection_;
}

bool Units::may_wait(Connection::Clock::time_point deadline) const {
    return !closing_ && base::steady_now() < deadline;
}

std::vector<Result<void>> Units::run(std::span<const Task> tasks) {
    made_news_ = false;
    Answers answers(tasks.size());
    Chosen together(tasks.size());
    std::iota(together.begin(), together.end(), std::size_t{0});
    Chosen alone;
    run_together(tasks, std::move(together), answers, alone);
    for (const std::size_t i : alone) {
        Chosen none;
        run_together(tasks, {i}, answers, none);
    }
    std::vector<Result<void>> given;
    given.reserve(tasks.size());
    for (auto& answer : answers)
        given.push_back(*std::move(answer));
    return given;
}

/// Runs until every chosen task is answered or put into `alone`.
void Units::run_together(std::span<const Task> tasks, Chosen chosen, Answers& answers,
                         Chosen& alone) {
    const auto deadline = base::steady_now() + options_.patience;
    const auto answer_all = [&](const Error& error) {
        for (const std::size_t i : chosen)
            answers[i] = Result<void>(error);
    };
    const auto split = [&] {
        alone.insert(alone.end(), chosen.begin(), chosen.end());
        chosen.clear();
    };
    int conflicts = 0;
    assumes_ = cautious_for_ == 0;
    if (!assumes_) --cautious_for_;
    keeps_apart_ = apart_for_ > 0;
    checks_effects_ = false;
    while (!chosen.empty()) {
        try {
            const auto culprit = attempt(tasks, chosen, answers, alone);
            if (!culprit || answers[*culprit]) return;
            std::erase(chosen, *culprit);
            alone.push_back(*culprit);
            if (alone.size() >= kSetAside) split();
        } catch (const SqlFailure& failure) {
            if (connection_ != nullptr) connection_->roll_back();
            Error error = failure.error();
            if (is_about_locks(error) && chosen.size() > 1) {
                note_deadlock();
                split();
            } else if (failure.trouble() == Trouble::kConflict && tables_.has_assumed() &&
                       !is_about_locks(error)) {
                note_refusal();
            } else if (failure.trouble() == Trouble::kConflict) {
                const bool is_one = chosen.size() == 1;
                const int limit = is_one ? kTaskConflicts : kGroupConflicts;
                checks_effects_ = is_one && tables_.has_effects() && conflicts >= kGroupConflicts;
                if (++conflicts < limit && base::steady_now() < deadline) {
                    std::this_thread::sleep_for(kPauseAfterConflict * std::min(conflicts, 10));
                    continue;
                }
                if (is_one) return answer_all(spoilt(error));
                split();
            } else if (failure.trouble() == Trouble::kOther) {
                if (chosen.size() > 1) {
                    split();
                } else if (!tables_.has_effects() || std::exchange(checks_effects_, true)) {
                    return answer_all(error);
                }
            } else {
                if (std::exchange(commit_was_sent_, false)) {
                    try {
                        if (landed(deadline)) {
                            for (const std::size_t i : chosen)
                                if (!answers[i]) answers[i] = Result<void>{};
                            return;
                        }
                    } catch (const SqlFailure&) {
                        error.applied = Applied::kMaybe;
                        return answer_all(error);
                    }
                }
                if (!may_wait(deadline)) return answer_all(error);
                std::this_thread::sleep_for(kPauseWithoutServer);
            }
        }
    }
}

std::optional<std::size_t> Units::attempt(std::span<const Task> tasks, Chosen& chosen,
                                          Answers& answers, Chosen& alone) {
    commit_was_sent_ = false;
    UnitChannel channel(connection(), sql_);
    tables_.start_unit(channel, chosen.size(), assumes_, keeps_apart_);
    if (checks_effects_) tables_.check_effects();
    for (const std::size_t i : chosen)
        answers[i].reset();
    int misses = 0;
    for (std::size_t at = 0; at < chosen.size();) {
        const Task& task = tasks[chosen[at]];
        std::optional<Error> error;
        tables_.begin_task();
        try {
            task.work(tables_);
        } catch (const Unforeseen&) {
            const bool goes_on = !tables_.wants_query() && ++misses <= kUnforeseen;
            tables_.undo_task();
            if (goes_on) {
                foresee_rest(tasks, std::span(chosen).subspan(at + 1));
                tables_.load(tables_.wanted());
            } else {
                if (!tables_.has_looked()) tables_.load({});
                tables_.set_mode(Mode::kDirect);
            }
            continue;
        } catch (const Apart&) {
            if (tables_.task_was_written()) {
                connection().roll_back();
                return chosen[at];
            }
            tables_.undo_task();
            apart_for_ -= std::min(apart_for_, 1U);
            alone.push_back(chosen[at]);
            chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(at));
            misses = 0;
            tables_.set_mode(Mode::kForesee);
            continue;
        } catch (const SqlFailure&) {
            throw;
        } catch (const Failure& failure) {
            error = failure.error();
        } catch (const std::exception& thrown) {
            error = Error{.code = ErrorCode::kInternal, .message = thrown.what()};
        }
        if (error) {
            if (tables_.task_was_written()) {
                connection().roll_back();
                if (chosen.size() == 1) answers[chosen[at]] = Result<void>(*std::move(error));
                return chosen[at];
            }
            tables_.undo_task();
            answers[chosen[at]] = Result<void>(*std::move(error));
        }
        misses = 0;
        tables_.keep_time();
        tables_.set_mode(Mode::kForesee);
        ++at;
    }
    if (tables_.has_unproven()) throw unproven();
    commit(channel);
    if (tables_.has_effects() && chosen.size() > 1) apartness_ /= 2;
    for (const std::size_t i : chosen)
        if (!answers[i]) answers[i] = Result<void>{};
    return std::nullopt;
}

/// Lets the tasks behind one that could not go on say what they need, so that it is loaded at once.
void Units::foresee_rest(std::span<const Task> tasks, std::span<const std::size_t> rest) {
    tables_.set_mode(Mode::kRehearse);
    for (const std::size_t i : rest) {
        tables_.begin_task();
        try {
            tasks[i].work(tables_);
        } catch (const Unforeseen&) {
        } catch (const Apart&) {
        } catch (const std::exception&) {
            // It runs again when it is its turn, and fails then if it must.
        }
        tables_.undo_task();
    }
    tables_.set_mode(Mode::kForesee);
}

void Units::commit(UnitChannel& channel) {
    if (!channel.begun() && !tables_.is_dirty()) return;
    tables_.plan_by_index();
    std::vector<Command> commands = tables_.take_changes();
    const bool has_written = !commands.empty() || tables_.has_written();
    if (has_written) {
        token_ = base::new_uuid7();
        commands.push_back({&sql_.put_token, parameters(token_, last_token_)});
        commit_was_sent_ = true;
    }
    commands.push_back({&sql_.commit, {}});
    const std::vector<ResultPtr> results = channel.run(commands);
    if (std::exchange(commit_was_sent_, false)) {
        last_token_ = token_;
        tables_.keep_known(Cursor(results[results.size() - 2].get(), 0).take<Xid>());
        if (assumes_ && tables_.has_assumed()) caution_ = 0;
    }
    made_news_ = made_news_ || tables_.made_news();
}

void Units::note_refusal() {
    assumes_ = false;
    caution_ = std::min(2 * caution_ + 1, kMostCaution);
    cautious_for_ = caution_;
}

void Units::note_deadlock() {
    apartness_ = std::clamp(4 * apartness_, kLeastApart, kMostApart);
    apart_for_ = apartness_;
}

bool Units::landed(Connection::Clock::time_point deadline) {
    for (;;) {
        try {
            const ResultPtr taken = connection().run_one({&sql_.take_token, parameters(token_)});
            const bool was_free = Cursor(taken.get(), 0).take<std::int64_t>() > 0;
            last_token_ = token_;
            if (!was_free) made_news_ = true;
            return !was_free;
        } catch (const SqlFailure&) {
            if (!may_wait(deadline)) throw;
        }
        std::this_thread::sleep_for(kPauseWithoutServer);
    }
}

void Units::notify(const std::string& channel) {
    try {
        connection().run_script("NOTIFY \"" + channel + "\"", "notify");
    } catch (const SqlFailure&) {
        if (connection_ != nullptr) connection_->roll_back();
    }
}

}  // namespace sekali::postgres
