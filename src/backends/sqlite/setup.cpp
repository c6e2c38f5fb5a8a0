#include "backends/sqlite/setup.hpp"

#include <string>
#include <thread>

#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/gate_holder.hpp"
#include "backends/sqlite/schema.hpp"
#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

constexpr std::chrono::milliseconds kModePause{2};

/// 0: not a database of sekali yet. The number lies in a table of our own, because the file's
/// `user_version` may be that of the user's own tables.
std::int64_t schema_of(Connection& connection) {
    const bool ours = connection.query_integer(
                          "SELECT count(*) FROM sqlite_master WHERE name = 'sekali_meta'") != 0;
    return ours ? connection.query_integer("SELECT value FROM sekali_meta WHERE name = 'schema'")
                : 0;
}

void refuse_newer(Connection& connection, std::int64_t found) {
    if (found <= newest_schema()) return;
    throw Failure(
        refused("sqlite:" + std::string(sqlite3_db_filename(connection.handle(), "main")) +
                    " has schema " + std::to_string(found) + ", this program knows schemas up to " +
                    std::to_string(newest_schema()),
                "use the newer sekali that upgraded it"));
}

bool is_current(Connection& connection, StoreTimer& timer) {
    connection.execute("BEGIN");
    const std::int64_t found = schema_of(connection);
    refuse_newer(connection, found);
    Statements statements(connection);
    const bool current = found == newest_schema() && timer.load(statements);
    connection.execute("COMMIT");
    return current;
}

void migrate(Connection& connection) {
    const std::int64_t found = schema_of(connection);
    refuse_newer(connection, found);
    for (const Migration& step : migrations()) {
        if (step.version <= found) continue;
        connection.execute(std::string(step.sql).c_str());
    }
    if (found == newest_schema()) return;
    connection.execute(("INSERT INTO sekali_meta(name, value) VALUES('schema', " +
                        std::to_string(newest_schema()) +
                        ") ON CONFLICT(name) DO UPDATE SET value = excluded.value")
                           .c_str());
}

/// SQLite does not call the busy handler when another connection is in the way of this switch.
void use_log(Connection& connection, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
        try {
            if (connection.query_text("PRAGMA journal_mode = WAL") == "wal") return;
            throw Failure(refused("sqlite: the file system does not carry SQLite's log (WAL)",
                                  "put the database on a local disk"));
        } catch (const Failure& failure) {
            const bool busy = failure.error().backend_code.starts_with("SQLITE_BUSY");
            if (!busy || base::steady_now() >= deadline) throw;
        }
        std::this_thread::sleep_for(kModePause);
    }
}

void configure(Connection& connection, const SqliteOptions& options) {
    connection.execute(options.synchronous == Synchronous::kFull ? "PRAGMA synchronous = FULL"
                                                                 : "PRAGMA synchronous = NORMAL");
    connection.execute("PRAGMA temp_store = MEMORY");
}

}  // namespace

void set_up(Connection& connection, Gate& gate, const SqliteOptions& options, StoreTimer& timer) {
    configure(connection, options);
    const bool has_log = connection.query_text("PRAGMA journal_mode") == "wal";
    if (has_log && is_current(connection, timer)) return;

    const auto deadline = base::steady_now() + options.busy_deadline;
    if (!gate.enter(deadline).value()) {
        throw Failure(gate_kept(gate.path(), options.path + " is busy: it could not be set up"));
    }
    try {
        use_log(connection, deadline);
        connection.execute("BEGIN IMMEDIATE");
        migrate(connection);
        Statements statements(connection);
        timer.fix(statements);
        connection.execute("COMMIT");
    } catch (...) {
        connection.roll_back();
        gate.leave();
        throw;
    }
    gate.leave();
}

void set_up_read_only(Connection& connection, StoreTimer& timer) {
    const std::int64_t found = schema_of(connection);
    refuse_newer(connection, found);
    if (found == 0) {
        // Somebody may be about to make it.
        Error error = refused("sqlite: the database has no schema yet", "run `sekali migrate`");
        error.code = ErrorCode::kNotFound;
        throw Failure(error);
    }
    if (found < newest_schema()) {
        throw Failure(refused("sqlite: the database has schema " + std::to_string(found) +
                                  ", this program reads schema " + std::to_string(newest_schema()),
                              "run `sekali migrate` on it first"));
    }
    Statements statements(connection);
    static_cast<void>(timer.load(statements));
}

}  // namespace sekali::sqlite
