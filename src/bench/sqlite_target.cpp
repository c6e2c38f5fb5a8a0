#include "bench/sqlite_target.hpp"

#include <sqlite3.h>

#include <chrono>
#include <utility>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/sqlite_store.hpp"
#include "bench/environment.hpp"
#include "bench/raw_database.hpp"

namespace sekali::bench {
namespace {

using sqlite::Connection;
using sqlite::Synchronous;

constexpr std::chrono::milliseconds kBusyDeadline{10'000};
constexpr const char* kEffectsTable =
    "CREATE TABLE bench_effects("
    "  number INTEGER PRIMARY KEY, job_id TEXT NOT NULL, cents INTEGER NOT NULL) STRICT";

}  // namespace

SqliteSubject::SqliteSubject(Scratch& scratch, Synchronous synchronous)
    : scratch_(scratch), synchronous_(synchronous), path_(scratch.new_database()) {
    sqlite::SqliteOptions options;
    options.path = path_;
    options.synchronous = synchronous;
    static_cast<void>(sqlite::SqliteStore::open(options).value());
    Connection(path_, Connection::Mode::kReadWrite, kBusyDeadline).execute(kEffectsTable);
}

SqliteSubject::~SqliteSubject() {
    scratch_.drop(path_);
}

std::string SqliteSubject::url() const {
    return "sqlite:" + path_ + (synchronous_ == Synchronous::kNormal ? "?synchronous=normal" : "");
}

std::string SqliteSubject::effect_sql() const {
    return "INSERT INTO bench_effects(job_id, cents) VALUES($1, $2)";
}

std::unique_ptr<RawStore> SqliteSubject::raw(const Level& level) {
    return std::make_unique<RawDatabase>(path_, synchronous_, level);
}

std::function<bool()> SqliteSubject::running() {
    auto reader = std::make_shared<Connection>(path_, Connection::Mode::kReadOnly, kBusyDeadline);
    return [reader] {
        return reader->query_integer(
                   "SELECT EXISTS(SELECT 1 FROM sekali_jobs INDEXED BY sekali_jobs_active "
                   "WHERE state IN (3, 4) AND state = 3)") != 0;
    };
}

Environment SqliteTarget::look_around() {
    Environment found = look_at_machine();
    look_at_disk(scratch_.folder(), found);
    found.backend = "sqlite";
    found.version = sqlite3_libversion();
    found.synchronous = synchronous_ == Synchronous::kFull ? "full" : "normal";
    return found;
}

std::unique_ptr<Subject> SqliteTarget::new_subject() {
    return std::make_unique<SqliteSubject>(scratch_, synchronous_);
}

}  // namespace sekali::bench
