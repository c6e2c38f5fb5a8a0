#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "backends/postgres/postgres_store.hpp"
#include "backends/rows/row_ports.hpp"
#include "engine/operations.hpp"
#include "postgres/test_server.hpp"
#include "sekali/transaction.hpp"

// Several processes' worth of stores on one schema at once, with locks, keys and slots in common,
// while somebody cuts their connections.
namespace sekali::postgres {
namespace {

using namespace std::chrono_literals;
using engine::Begin;
using engine::Delivery;
using engine::JobState;
using engine::Outcome;
using engine::QueueReply;
using engine::RunRef;
using engine::Settle;
using engine::Settled;
using engine::StoreReply;

constexpr int kLocks = 7;
constexpr auto kPatience = 120s;

/// Who is inside which lock, and what the fences were: the judge of mutual exclusion.
class LockWatch {
 public:
    void enter(const std::string& name, std::uint64_t fence) {
        const std::lock_guard guard(mutex_);
        Seen& seen = seen_[name];
        EXPECT_EQ(seen.inside, 0) << "two runs hold " << name;
        EXPECT_GT(fence, seen.fence) << "the fence of " << name << " did not grow";
        seen.fence = fence;
        ++seen.inside;
    }
    void leave(const std::string& name) {
        const std::lock_guard guard(mutex_);
        --seen_[name].inside;
    }

 private:
    struct Seen {
        int inside = 0;
        std::uint64_t fence = 0;
    };
    std::mutex mutex_;
    std::map<std::string, Seen> seen_;
};

struct Stage {
    TestSchema schema;
    std::unique_ptr<PostgresStore> first = PostgresStore::open(schema.options()).value();
    /// A user's table; in the same schema, so that it goes with it.
    std::string effects = "\"" + schema.name() + "\".effects";
    LockWatch locks;
    std::atomic<int> ended{0};
    std::atomic<int> conflicts{0};
};

/// One worker with a store of its own, in one thread.
class Actor {
 public:
    Actor(Stage& stage, int number)
        : stage_(stage),
          store_(PostgresStore::open(stage.schema.options()).value()),
          ports_(*store_),
          name_("w" + std::to_string(number)),
          random_(static_cast<unsigned>(number)) {}

    void enqueue(int jobs, int keys) {
        for (int i = 0; i < jobs; ++i) {
            engine::EnqueueRequest request;
            engine::Envelope& job = request.job;
            job.id = name_ + "-" + std::to_string(i);
            job.kind = "pay";
            job.key = "k" + std::to_string(random_() % static_cast<unsigned>(keys));
            if (i % 2 == 0) job.lock_key = "l" + std::to_string(random_() % kLocks);
            if (i % 5 == 0) job.unique_key = "u" + std::to_string(random_() % 20);
            job.fingerprint_rule = "none";
            engine::EnqueueReply reply;
            transact([&](engine::Tables& tables) { reply = engine::enqueue(tables, request); });
            if (reply.kind == engine::EnqueueReply::Kind::kDuplicate) ++refused_;
        }
    }
    [[nodiscard]] int refused() const { return refused_; }

    /// Works until nothing is left.
    void work(const std::atomic<int>& producers) {
        const auto deadline = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < deadline) {
            const bool last = producers == 0;
            const engine::Claimed claimed = claim();
            for (const Delivery& delivery : claimed.deliveries)
                runs_.push_back(begin_of(delivery));
            begin_all();
            settle_all();
            if (last && claimed.deliveries.empty() && claimed.drained) return;
        }
        ADD_FAILURE() << "the jobs do not come to an end";
    }

 private:
    struct Run {
        Begin begin;
        std::optional<engine::Started> started;
    };

    template <typename Reply, typename Port, typename Command>
    std::vector<Result<Reply>> send(std::vector<Command> commands) {
        std::vector<std::future<Result<Reply>>> answers;
        std::vector<typename Port::Call> calls;
        for (Command& command : commands) {
            auto promise = std::make_shared<std::promise<Result<Reply>>>();
            answers.push_back(promise->get_future());
            calls.push_back({std::move(command), [promise](Result<Reply> reply) {
                                 promise->set_value(std::move(reply));
                             }});
        }
        static_cast<Port&>(ports_).submit(std::move(calls));
        std::vector<Result<Reply>> replies;
        for (auto& answer : answers)
            replies.push_back(answer.get());
        return replies;
    }

    /// Repeats a call whose answer was lost, as every caller of an idempotent request may.
    void transact(const std::function<void(engine::Tables&)>& work) {
        for (;;) {
            std::promise<Result<void>> done;
            std::vector<engine::Task> tasks;
            tasks.push_back(
                {.work = work, .done = [&](Result<void> result) { done.set_value(result); }});
            store_->submit(std::move(tasks));
            const Result<void> result = done.get_future().get();
            if (result.ok()) return;
            ASSERT_TRUE(result.error().retryable) << result.error().message;
        }
    }

    engine::Claimed claim() {
        engine::Claim claim;
        claim.spec = {.ns = "default", .queues = {"default"}, .kinds = {"pay"}, .limit = 12};
        claim.worker = name_;
        claim.lease = 600s;
        claim.draining = true;
        for (;;) {
            auto replies =
                send<QueueReply, engine::QueuePort>(std::vector<engine::QueueCommand>{claim});
            if (replies[0].ok()) return std::get<engine::Claimed>(*replies[0]);
            ADD_FAILURE() << "a claim may be lost only with its jobs: "
                          << replies[0].error().message;
        }
    }

    Run begin_of(const Delivery& delivery) {
        Run run;
        run.begin.job = delivery.row.job;
        run.begin.run.job_id = delivery.row.job.id;
        run.begin.run.record = {"default", "pay", delivery.row.job.key};
        run.begin.run.worker = name_;
        run.begin.run.delivery = delivery.row.deliveries;
        run.begin.run.lock_key = delivery.row.job.lock_key;
        run.begin.lease = 600s;
        run.begin.lock_token = name_ + "/" + delivery.row.job.id;
        return run;
    }

    void begin_all() {
        std::vector<Run*> open;
        for (Run& run : runs_)
            open.push_back(&run);
        while (!open.empty()) {
            std::vector<engine::StoreCommand> commands;
            for (const Run* run : open)
                commands.emplace_back(run->begin);
            auto replies = send<StoreReply, engine::StorePort>(std::move(commands));
            std::vector<Run*> again;
            for (std::size_t i = 0; i < open.size(); ++i) {
                if (!replies[i].ok()) {
                    again.push_back(open[i]);
                    continue;
                }
                const auto& reply = std::get<engine::BeginReply>(*replies[i]);
                if (const auto* started = std::get_if<engine::Started>(&reply)) {
                    open[i]->started = *started;
                    const std::string& lock = open[i]->begin.job.lock_key;
                    if (!lock.empty()) stage_.locks.enter(lock, started->fence);
                } else if (std::holds_alternative<engine::Ended>(reply)) {
                    ++stage_.ended;
                }
            }
            open = again;
        }
        std::erase_if(runs_, [](const Run& run) { return !run.started; });
    }

    Settle settle_of(const Run& run) {
        Settle settle;
        settle.run = run.begin.run;
        settle.run.epoch = run.started->epoch;
        settle.run.fence = run.started->fence;
        settle.job = run.begin.job;
        settle.outcome.result = "by " + name_;
        if (random_() % 3 == 0) settle.outcome.kind = Outcome::Kind::kRetry;
        settle.outcome.nothing_applied = true;
        settle.outcome.delay = engine::Millis{1};
        settle.policy.retry.max_attempts = 1'000'000;
        if (settle.outcome.kind == Outcome::Kind::kSuccess) {
            settle.effects = [this, key = run.begin.job.key](Transaction& tx) -> Result<void> {
                tx.execute("insert into " + stage_.effects + "(key) values ($1)", key);
                return {};
            };
        }
        return settle;
    }

    void settle_all() {
        std::vector<Settle> open;
        for (const Run& run : runs_) {
            open.push_back(settle_of(run));
            if (!run.begin.job.lock_key.empty()) stage_.locks.leave(run.begin.job.lock_key);
        }
        runs_.clear();
        while (!open.empty()) {
            std::vector<engine::StoreCommand> commands(open.begin(), open.end());
            auto replies = send<StoreReply, engine::StorePort>(std::move(commands));
            std::vector<Settle> again;
            for (std::size_t i = 0; i < open.size(); ++i) {
                if (!replies[i].ok()) {
                    again.push_back(open[i]);
                    continue;
                }
                const auto& settled = std::get<Settled>(*replies[i]);
                EXPECT_EQ(settled.kind, Settled::Kind::kApplied) << settled.error;
                if (settled.state == JobState::kSucceeded) ++stage_.ended;
            }
            open = again;
        }
    }

    Stage& stage_;
    std::unique_ptr<PostgresStore> store_;
    rows::RowPorts ports_;
    std::string name_;
    std::mt19937 random_;
    std::vector<Run> runs_;
    int refused_ = 0;
};

class Torture : public ::testing::Test {
 protected:
    /// Plays it with so many producers and as many workers; `cut` is a statement that is run again
    /// and again beside them.
    void play(int actors, int jobs, int keys, const std::string& cut) {
        stage_.schema.execute("CREATE TABLE " + stage_.effects + "(key text primary key)");
        std::vector<std::unique_ptr<Actor>> cast;
        for (int i = 0; i < actors; ++i)
            cast.push_back(std::make_unique<Actor>(stage_, i));
        std::atomic<int> producers{actors};
        std::atomic<int> workers{actors};
        std::vector<std::jthread> threads;
        for (auto& actor : cast) {
            threads.emplace_back([&] {
                actor->enqueue(jobs, keys);
                --producers;
            });
        }
        for (int i = 0; i < actors; ++i) {
            threads.emplace_back([&, i] {
                Actor worker(stage_, 100 + i);
                worker.work(producers);
                --workers;
            });
        }
        const auto control = Connection::open(parse_url(test_server_url()));
        while (workers > 0 && !cut.empty())
            control->run_script(cut, "cut");
        threads.clear();
        judge(cast, actors * jobs);
    }

    void judge(const std::vector<std::unique_ptr<Actor>>& cast, int jobs) {
        int refused = 0;
        for (const auto& actor : cast)
            refused += actor->refused();
        std::map<std::string, int> successes;
        std::size_t final_jobs = 0;
        const auto read = stage_.first->read([&](engine::Tables& tables) {
            engine::JobFilter filter;
            filter.ns = "default";
            filter.limit = 1'000'000;
            for (const engine::JobRow& row : tables.list_jobs(filter).items) {
                EXPECT_TRUE(is_final(row.state)) << row.job.id;
                ++final_jobs;
                if (row.state == JobState::kSucceeded) ++successes[row.job.key];
            }
        });
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(final_jobs + static_cast<std::size_t>(refused), static_cast<std::size_t>(jobs));
        for (const auto& [key, count] : successes)
            EXPECT_EQ(count, 1) << key;
        const auto control = Connection::open(parse_url(test_server_url()));
        const Sql effects{"", "SELECT count(*) FROM " + stage_.effects, "count"};
        const ResultPtr count = control->run_one({&effects, {}});
        EXPECT_EQ(Cursor(count.get(), 0).take<std::size_t>(), successes.size());
    }

    Stage stage_;
};

TEST_F(Torture, ManyStoresAtOnceKeepEveryPromise) {
    play(4, 150, 60, "");
}

TEST_F(Torture, ConnectionsThatAreCutLoseAndDoubleNothing) {
    play(3, 100, 40,
         "SELECT pg_sleep(0.02), (SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
         " WHERE application_name = 'sekali " +
             stage_.schema.name() + "' ORDER BY random() LIMIT 1)");
}

}  // namespace
}  // namespace sekali::postgres
