#include "backends/postgres/postgres_store.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "backends/postgres/change_signal.hpp"
#include "backends/postgres/lane.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/sql.hpp"

namespace sekali::postgres {
namespace {

using engine::Task;

constexpr std::size_t kIdleReaders = 4;

}  // namespace

struct PostgresStore::Opening {};

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(PostgresOptions options) {
    try {
        auto connection = Connection::open(options);
        if (options.migrate) migrate(*connection, options.schema);
        require_version(*connection, options.schema);
        return std::make_unique<PostgresStore>(Opening{}, std::move(options),
                                               std::move(connection));
    } catch (const Failure& failure) {
        return failure.error();
    }
}

PostgresStore::PostgresStore(const Opening& /*opening*/, PostgresOptions options,
                             std::unique_ptr<Connection> first)
    : options_(std::move(options)),
      channel_("sekali_" + options_.schema),
      sql_(std::make_unique<Statements>(options_.schema)),
      signal_(std::make_unique<ChangeSignal>(options_, channel_)) {
    readers_.push_back(std::move(first));
    if (options_.read_only) return;
    const auto announce_news = [this](Units& units) { announce(units); };
    const auto new_lane = [&](std::size_t connections) {
        return std::make_unique<Lane>(options_, *sql_, known_, closing_, announce_news,
                                      connections);
    };
    urgent_ = new_lane(1);
    in_order_ = new_lane(1);
    others_ = new_lane(options_.connections);
}

PostgresStore::~PostgresStore() {
    closing_ = true;
    others_.reset();
    in_order_.reset();
    urgent_.reset();
}

void PostgresStore::submit(std::vector<Task> tasks) {
    if (others_ == nullptr) {
        for (const Task& task : tasks) {
            if (task.done) {
                task.done(Error{.code = ErrorCode::kRefused,
                                .message = "postgres: the store was opened to be read only"});
            }
        }
        return;
    }
    std::vector<Task> urgent;
    std::vector<Task> in_order;
    std::vector<Task> others;
    for (Task& task : tasks)
        (task.urgent ? urgent : task.in_order ? in_order : others).push_back(std::move(task));
    if (!urgent.empty()) urgent_->submit(std::move(urgent));
    if (!in_order.empty()) in_order_->submit(std::move(in_order));
    if (!others.empty()) others_->submit(std::move(others));
}

/// In a transaction of its own, after the commit: a notifying commit is serial with all others. The
/// first is sent at once, those that follow at short intervals on a connection of their own.
void PostgresStore::announce(Units& units) {
    signal_->announce();
    if (signal_->publishes_later()) return;
    units.notify(channel_);
}

void PostgresStore::read_on(Connection& connection,
                            const std::function<void(engine::Tables&)>& work) {
    connection.run_one({&sql_->begin_read, {}});
    if (connection.is_pooled()) connection.run_one({&connection.local_settings(), {}});
    PostgresTables tables(*sql_, options_);
    tables.start(connection, PostgresTables::Mode::kReadOnly);
    tables.load({});
    work(tables);
    connection.run_one({&sql_->commit, {}});
}

Result<void> PostgresStore::read(const std::function<void(engine::Tables&)>& work) {
    std::unique_ptr<Connection> connection;
    {
        const std::lock_guard guard(readers_mutex_);
        if (!readers_.empty()) {
            connection = std::move(readers_.back());
            readers_.pop_back();
        }
    }
    std::optional<Error> error;
    for (int tries = 0; tries < 2; ++tries) {
        error.reset();
        try {
            if (connection == nullptr || !connection->is_usable()) {
                connection = Connection::open(options_);
            }
            read_on(*connection, work);
        } catch (const SqlFailure& failure) {
            error = failure.error();
            // A connection that was idle may have been closed by the server long ago.
            if (failure.trouble() == Trouble::kLost) continue;
        } catch (const Failure& failure) {
            error = failure.error();
        } catch (const std::exception& thrown) {
            error = Error{.code = ErrorCode::kInternal, .message = thrown.what()};
        }
        break;
    }
    if (connection != nullptr) {
        connection->roll_back();
        const std::lock_guard guard(readers_mutex_);
        if (connection->is_usable() && readers_.size() < kIdleReaders) {
            readers_.push_back(std::move(connection));
        }
    }
    if (error) return *std::move(error);
    return {};
}

void PostgresStore::wait_for_change(engine::Millis at_most) {
    signal_->wait(at_most);
}

}  // namespace sekali::postgres
