#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

#include <unistd.h>

#include "backends/sqlite/group_commit.hpp"
#include "backends/sqlite/log_keeper.hpp"
#include "backends/sqlite/setup.hpp"
#include "sekali/transaction.hpp"
#include "simulation/sim_disk.hpp"
#include "simulation/sim_store.hpp"

namespace sekali::sim {
namespace {

using engine::Task;

constexpr const char* kPath = "sekali.db";
/// Small, so that checkpoints are in the way of power cuts.
constexpr std::int64_t kLogLimit = std::int64_t{48} << 10;
constexpr std::int64_t kWallAtStart = 1'600'000'000'000;
constexpr std::size_t kGroupTasks = 64;

Error without_power() {
    return {.code = ErrorCode::kUnreachable,
            .message = "the power failed",
            .applied = Applied::kMaybe,
            .retryable = true};
}

sqlite::Gate open_gate() {
    const auto path =
        std::filesystem::temp_directory_path() / ("sekali-sim-gate-" + std::to_string(::getpid()));
    sqlite::Gate gate = sqlite::Gate::open(path.string()).value();
    std::filesystem::remove(path);
    return gate;
}

/// Everything that a start makes and a power cut ends.
struct Running {
    explicit Running(const sqlite::SqliteOptions& options, sqlite::Gate& gate)
        : connection(options.path, sqlite::Connection::Mode::kReadWrite, options.busy_deadline),
          timer(options.clock),
          tables(prepared(options, gate), nullptr, sqlite::SqliteTables::UserAccess::kGuarded),
          commit(tables, connection, timer),
          log(connection, options.log_limit_bytes, {}),
          remember(connection.prepare("INSERT INTO sim_done VALUES(?1)", true)) {}

    sqlite::Connection& prepared(const sqlite::SqliteOptions& options, sqlite::Gate& gate) {
        sqlite::set_up(connection, gate, options, timer);
        connection.execute("CREATE TABLE IF NOT EXISTS sim_done(number INTEGER PRIMARY KEY)");
        connection.execute("CREATE TABLE IF NOT EXISTS sim_effects(key TEXT)");
        return connection;
    }

    sqlite::Connection connection;
    sqlite::StoreTimer timer;
    sqlite::SqliteTables tables;
    sqlite::GroupCommit commit;
    sqlite::LogKeeper log;
    sqlite::StatementPtr remember;
};

class SqliteSimStore final : public SimStore {
 public:
    SqliteSimStore(Clock clock, std::uint64_t seed)
        : clock_(std::move(clock)), random_(seed), disk_(random_.bits()), gate_(open_gate()) {
        // Creates the file: a connection of the backend only opens one.
        sqlite3* made = nullptr;
        sqlite3_open(kPath, &made);
        sqlite3_close(made);
        start();
    }

    void submit(std::vector<Task> tasks) override {
        for (Task& task : tasks) {
            auto& queue = task.urgent ? urgent_ : queued_;
            queue.push_back({++last_number_, std::move(task)});
        }
    }

    Result<void> read(const std::function<void(engine::Tables&)>& work) override {
        try {
            running_->connection.execute("BEGIN");
            running_->tables.go_on(now());
            work(running_->tables);
            running_->connection.execute("COMMIT");
            return {};
        } catch (const Failure& failure) {
            running_->connection.roll_back();
            return failure.error();
        }
    }

    void run_all() override {
        while (!is_down() && !(urgent_.empty() && queued_.empty()))
            run_group();
    }

    StoreTime now() const override { return former_now_.value_or(running_->timer.now()); }

    void write_effect(Transaction& transaction, const std::string& key) override {
        transaction.execute("INSERT INTO sim_effects VALUES($1)", key);
    }

    std::vector<std::string> wrong_effects(const std::vector<std::string>& once) override {
        std::vector<std::string> wrong;
        for (const std::string& key : once) {
            const auto statement =
                running_->connection.prepare("SELECT count(*) FROM sim_effects WHERE key = ?1");
            sqlite3_bind_text(statement.get(), 1, key.data(), static_cast<int>(key.size()),
                              SQLITE_STATIC);
            sqlite3_step(statement.get());
            if (sqlite3_column_int64(statement.get(), 0) != 1) wrong.push_back(key);
        }
        return wrong;
    }

    void cut_power_after(std::size_t operations) override { disk_.fail_after(operations); }
    bool is_down() const override { return disk_.has_failed(); }

    std::vector<std::string> restart() override {
        const StoreTime at_the_cut = running_->tables.now();
        running_.reset();
        disk_.restart();
        ++boots_;
        booted_ = clock_();
        // Wall clocks are set by people, and by batteries.
        wall_ahead_ = random_.between(Millis{-3'600'000}, Millis{10'000});
        // The power may fail again while what was left is recovered.
        if (random_.chance(0.3)) disk_.fail_after(1 + random_.below(20));
        try {
            start();
        } catch (const Failure&) {
            running_.reset();
            disk_.restart();
            start();
        }
        disk_.fail_after(0);
        std::vector<std::string> wrong = look_at_disk();
        former_now_ = at_the_cut;
        answer_what_was_under_way();
        former_now_.reset();
        return wrong;
    }

 private:
    struct Numbered {
        std::int64_t number = 0;
        Task task;
    };

    void start() {
        sqlite::SqliteOptions options;
        options.path = kPath;
        options.log_limit_bytes = kLogLimit;
        options.clock.boot_id = [this] { return "boot " + std::to_string(boots_); };
        options.clock.boot_ms = [this] { return (clock_() - booted_).count(); };
        options.clock.wall_ms = [this] { return kWallAtStart + (clock_() + wall_ahead_).count(); };
        running_ = std::make_unique<Running>(options, gate_);
    }

    void run_group() {
        std::vector<Numbered> group;
        for (auto* from : {&urgent_, &queued_}) {
            while (!from->empty() && group.size() < kGroupTasks) {
                group.push_back(std::move(from->front()));
                from->pop_front();
            }
        }
        std::vector<Task> tasks;
        for (const Numbered& one : group)
            tasks.push_back({.work =
                                 [this, &one](engine::Tables& tables) {
                                     remember(one.number);
                                     one.task.work(tables);
                                 },
                             .done = {}});
        auto answers = running_->commit.run(tasks, [](auto) {});
        if (!is_down()) running_->log.checkpoint_if_due();
        if (is_down()) {
            under_way_ = std::move(group);
            return;
        }
        for (std::size_t i = group.size(); i-- > 0;) {
            if (!answers[i]) queued_.push_front(std::move(group[i]));
        }
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (!answers[i]) continue;
            if (answers[i]->ok()) durable_.push_back(group[i].number);
            group[i].task.done(*std::move(answers[i]));
        }
    }

    void remember(std::int64_t number) {
        sqlite3_stmt* statement = running_->remember.get();
        sqlite3_reset(statement);
        sqlite3_bind_int64(statement, 1, number);
        const bool done = sqlite3_step(statement) == SQLITE_DONE;
        sqlite3_reset(statement);
        if (!done) throw Failure(without_power());
    }

    [[nodiscard]] bool is_there(std::int64_t number) {
        return running_->connection.query_integer("SELECT count(*) FROM sim_done WHERE number = " +
                                                  std::to_string(number)) == 1;
    }

    std::vector<std::string> look_at_disk() {
        std::vector<std::string> wrong;
        const std::string check = running_->connection.query_text("PRAGMA integrity_check");
        if (check != "ok") wrong.push_back("the database is damaged: " + check);
        for (const std::int64_t number : std::exchange(durable_, {})) {
            if (!is_there(number)) wrong.push_back("an answered commit is gone");
        }
        return wrong;
    }

    /// Nobody who asked is alive, but the judge has to know what became of it.
    void answer_what_was_under_way() {
        for (Numbered& one : std::exchange(under_way_, {})) {
            const bool applied = is_there(one.number);
            one.task.done(applied ? Result<void>{} : Result<void>(without_power()));
        }
        running_->connection.execute("DELETE FROM sim_done");
    }

    Clock clock_;
    SimRandom random_;
    SimDisk disk_;
    sqlite::Gate gate_;
    std::unique_ptr<Running> running_;
    std::deque<Numbered> urgent_;
    std::deque<Numbered> queued_;
    std::vector<Numbered> under_way_;
    std::vector<std::int64_t> durable_;  ///< Answered since the last start.
    std::int64_t last_number_ = 0;
    std::size_t boots_ = 1;
    Millis booted_{};
    Millis wall_ahead_{};
    std::optional<StoreTime> former_now_;  ///< While what was done before a power cut is told.
};

}  // namespace

std::unique_ptr<SimStore> make_sqlite_store(SimStore::Clock clock, std::uint64_t seed) {
    return std::make_unique<SqliteSimStore>(std::move(clock), seed);
}

}  // namespace sekali::sim
