#include "backends/sqlite/sqlite_store.hpp"

#include <utility>

#include "backends/sqlite/change_signal.hpp"
#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/files.hpp"
#include "backends/sqlite/reader_pool.hpp"
#include "backends/sqlite/setup.hpp"
#include "backends/sqlite/writer.hpp"

namespace sekali::sqlite {
namespace {

using engine::Millis;
using engine::Task;

/// Liveness rows of processes that ended without a word, dropped with each new one.
constexpr std::size_t kSweepAtOnce = 100;

/// The releases that carry the repair of the log's reset race: 3.51.3, and 3.50.7 and 3.44.6, to
/// which it was ported back.
bool resets_log_safely(int version) {
    return version >= 3'051'003 || (version >= 3'050'007 && version < 3'051'000) ||
           (version >= 3'044'006 && version < 3'045'000);
}

Error read_only_error() {
    return refused("sqlite: the database was opened for reading only", {});
}

}  // namespace

struct SqliteStore::Opening {};

SqliteStore::SqliteStore(const Opening&, SqliteOptions options, std::string path,
                         LivenessFile liveness)
    : options_(std::move(options)),
      path_(std::move(path)),
      liveness_(std::move(liveness)),
      timer_(std::make_unique<StoreTimer>(options_.clock)) {}

SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(SqliteOptions options) {
    if (auto prepared = prepare_file(options); !prepared) return prepared.error();
    try {
        const auto mode =
            options.read_only ? Connection::Mode::kReadOnly : Connection::Mode::kReadWrite;
        auto connection = std::make_unique<Connection>(options.path, mode, options.busy_deadline);
        if (!options.read_only && sqlite3_db_readonly(connection->handle(), "main") == 1) {
            return refused("sqlite: " + options.path + " may not be written by this user",
                           "check the owner and mode of the file and its folder, or open it for "
                           "reading only");
        }
        // SQLite follows symbolic links, and what lies beside the file must lie beside its target.
        std::string path = sqlite3_db_filename(connection->handle(), "main");
        auto liveness = LivenessFile::open(path + "-alive", options.read_only).value();
        auto store = std::make_unique<SqliteStore>(Opening{}, std::move(options), std::move(path),
                                                   std::move(liveness));
        const std::string& beside = store->path_;
        const bool read_only = store->options_.read_only;
        store->signal_ = std::make_unique<ChangeSignal>(
            ChangeSignal::Paths{beside, beside + "-wal", beside + "-wake"}, read_only);
        store->readers_ = std::make_unique<ReaderPool>(beside, store->options_.busy_deadline,
                                                       store->liveness_, *store->timer_);
        if (read_only) {
            set_up_read_only(*connection, *store->timer_);
            return store;
        }
        Gate gate = Gate::open(beside + "-gate").value();
        set_up(*connection, gate, store->options_, *store->timer_);
        store->writer_ =
            std::make_unique<Writer>(store->options_, std::move(connection), std::move(gate),
                                     store->liveness_, *store->timer_, *store->signal_);
        return store;
    } catch (const Failure& failure) {
        return failure.error();
    }
}

void SqliteStore::submit(std::vector<Task> tasks) {
    if (writer_) return writer_->submit(std::move(tasks));
    for (const Task& task : tasks) {
        if (task.done) task.done(read_only_error());
    }
}

Result<void> SqliteStore::read(const std::function<void(engine::Tables&)>& work) {
    return readers_->read(work);
}

void SqliteStore::wait_for_change(Millis at_most) {
    signal_->wait(at_most);
}

Result<void> SqliteStore::write_sync(std::function<void(engine::Tables&)> work, Millis at_most) {
    if (!writer_) return read_only_error();
    return writer_->run(std::move(work), at_most);
}

Result<LivenessHandle> SqliteStore::hold_liveness(std::string_view worker_id) {
    if (!writer_) return read_only_error();
    // The byte is locked before the row can be read: a row whose byte is free means death.
    std::int64_t place = 0;
    auto handle = liveness_.hold(place);
    if (!handle) return handle;
    auto stored = writer_->run(
        [worker = std::string(worker_id), file = liveness_.name(), place](SqliteTables& tables) {
            tables.put_liveness(worker, file, place);
            tables.sweep_liveness(kSweepAtOnce);
        },
        options_.busy_deadline);
    if (!stored) return stored.error();
    return handle;
}

SqliteStats SqliteStore::stats() const {
    return {.log_bytes = writer_ ? writer_->log_bytes() : 0};
}

std::vector<std::string> SqliteStore::notices() const {
    std::vector<std::string> notices;
    if (!resets_log_safely(sqlite3_libversion_number())) {
        notices.push_back(
            std::string("SQLite ") + sqlite3_libversion() +
            " may damage a database when one connection empties the log while another "
            "commits (repaired in 3.51.3). sekali keeps its own processes apart; "
            "other programs that write this file should set PRAGMA "
            "wal_autocheckpoint=0.");
    }
    if (options_.synchronous == Synchronous::kNormal) {
        notices.push_back(
            "synchronous is NORMAL: a power cut may take back the last commits, and "
            "with them records of effects that happened outside.");
    }
    return notices;
}

}  // namespace sekali::sqlite
