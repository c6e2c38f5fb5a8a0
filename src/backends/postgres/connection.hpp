#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

#include "backends/postgres/errors.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/wire.hpp"

namespace sekali::postgres {

struct FreeResult {
    void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, FreeResult>;

/// A statement of sekali's. Its name is what it is prepared under; without one it is not.
struct Sql {
    std::string name;
    std::string text;
    std::string doing;  ///< Completes "could not …".
    bool answers_in_text = false;
    bool is_of_user = false;  ///< Of these a connection keeps some prepared, not all.
};

struct Command {
    const Sql* sql = nullptr;
    Parameters parameters{};
};

/// Where commands of a transaction are run. Belongs to one thread at a time.
class Channel {
 public:
    virtual ~Channel() = default;
    /// Runs all commands, in one round trip where it can, and returns a result for each. The first
    /// that fails ends it: those behind it are not run, and its failure is thrown.
    virtual std::vector<ResultPtr> run(std::span<const Command> commands) = 0;
    /// Runs a command that answers nothing ahead of the next ones, in their round trip.
    virtual void run_with_next(Command command) { run_one(command); }
    [[nodiscard]] virtual PGconn* handle() const = 0;

    ResultPtr run_one(const Command& command) {
        return std::move(run(std::span(&command, 1)).front());
    }
};

/// One connection of sekali's own, non-blocking with deadlines. Belongs to one thread at a time.
class Connection final : public Channel {
 public:
    using Clock = std::chrono::steady_clock;

    /// Throws `SqlFailure`.
    [[nodiscard]] static std::unique_ptr<Connection> open(const PostgresOptions& options);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() override;

    /// Where the server does not answer in time the connection is closed.
    std::vector<ResultPtr> run(std::span<const Command> commands) override;
    /// Runs statements without arguments, several in one text.
    void run_script(const std::string& text, std::string_view doing);

    /// Whether a pooler in transaction mode stands between: nothing that is set, prepared or
    /// listened for outlives a transaction there, and commands go one by one.
    [[nodiscard]] bool is_pooled() const { return is_pooled_; }
    /// For a pooled connection, behind each BEGIN: what else is set once for the session.
    [[nodiscard]] const Sql& local_settings() const { return local_settings_; }

    [[nodiscard]] bool is_usable() const;
    [[nodiscard]] bool in_transaction() const;
    /// Undoes an open transaction; a connection that cannot even do that is closed.
    void roll_back() noexcept;
    [[nodiscard]] PGconn* handle() const override { return connection_.get(); }

    struct Opening;  ///< Only `open` can make one.
    Connection(const Opening& opening, const PostgresOptions& options);

 private:
    struct Finish {
        void operator()(PGconn* connection) const { PQfinish(connection); }
    };
    struct Expected;

    void send(const Command& command, std::vector<Expected>& expected);
    /// Asks the server who it is, which a pooler does not know.
    void find_pooler();
    std::vector<ResultPtr> run_one_by_one(std::span<const Command> commands);
    void wait(bool for_writing, Clock::time_point deadline);
    [[nodiscard]] ResultPtr next_result(Clock::time_point deadline);
    [[noreturn]] void lose(std::string_view why);

    std::unique_ptr<PGconn, Finish> connection_;
    engine::Millis statement_deadline_;
    Sql local_settings_;
    bool is_pooled_ = false;
    std::unordered_set<std::string> prepared_;
    std::size_t prepared_of_users_ = 0;
};

/// Polls a connection until libpq has what it waits for. False: the deadline passed.
[[nodiscard]] bool wait_for_socket(int socket, bool for_writing,
                                   std::chrono::steady_clock::time_point deadline);

}  // namespace sekali::postgres
