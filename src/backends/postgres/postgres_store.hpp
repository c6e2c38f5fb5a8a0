#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/postgres/known_rows.hpp"
#include "backends/postgres/options.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::postgres {

class ChangeSignal;
class Connection;
class Lane;
class Units;
struct Statements;

/// A store in one schema of a PostgreSQL database. Thread-safe; a child that is forked must not use
/// it.
class PostgresStore final : public engine::Executor {
 public:
    /// Connects and looks at the schema, which is created or upgraded first where the options say
    /// so. Blocks up to the connect deadline.
    static Result<std::unique_ptr<PostgresStore>> open(PostgresOptions options);
    /// Runs what is still queued, without waiting for a server that is away.
    ~PostgresStore() override;
    PostgresStore(const PostgresStore&) = delete;
    PostgresStore& operator=(const PostgresStore&) = delete;

    /// Blocks while too much is queued.
    void submit(std::vector<engine::Task> tasks) override;
    [[nodiscard]] bool is_far() const override { return true; }
    [[nodiscard]] Result<void> read(const std::function<void(engine::Tables&)>& work) override;
    void wait_for_change(engine::Millis at_most) override;

    struct Opening;  ///< Only `open` can make one.
    PostgresStore(const Opening&, PostgresOptions options, std::unique_ptr<Connection> first);

 private:
    void announce(Units& units);
    void read_on(Connection& connection, const std::function<void(engine::Tables&)>& work);

    const PostgresOptions options_;
    const std::string channel_;
    std::atomic<bool> closing_{false};
    std::unique_ptr<Statements> sql_;
    std::unique_ptr<ChangeSignal> signal_;
    std::mutex readers_mutex_;
    std::vector<std::unique_ptr<Connection>> readers_;
    KnownRows known_;
    // Leases must not lapse behind other work, so what renews them has a lane of its own.
    std::unique_ptr<Lane> urgent_;
    std::unique_ptr<Lane> in_order_;
    std::unique_ptr<Lane> others_;
};

}  // namespace sekali::postgres
