#include "backends/sqlite/diagnosis.hpp"

#include <cerrno>
#include <filesystem>
#include <vector>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/files.hpp"
#include "backends/sqlite/query.hpp"
#include "backends/sqlite/setup.hpp"

namespace sekali::sqlite {
namespace {

using engine::Millis;

std::uint64_t size_of(const std::string& path) {
    std::error_code failure;
    const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
    return failure ? 0 : bytes;
}

void look_at_files(Diagnosis& found, const std::string& path) {
    struct stat file {};
    struct statfs system {};
    struct statvfs space {};
    if (::stat(path.c_str(), &file) != 0 || ::statfs(path.c_str(), &system) != 0 ||
        ::statvfs(path.c_str(), &space) != 0) {
        throw Failure(system_error(errno, "look at", path));
    }
    const auto magic = static_cast<std::uint32_t>(system.f_type);
    found.file_system = network_file_system(magic).value_or("");
    found.in_memory = magic == TMPFS_MAGIC || magic == RAMFS_MAGIC;
    found.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
    found.readable_by_others = (file.st_mode & (S_IRGRP | S_IROTH)) != 0;
    found.database_bytes = size_of(path);
    found.log_bytes = size_of(path + "-wal");
}

/// Newest first, by the index of what ended last.
constexpr std::string_view kRuns =
    "SELECT kind, outcome, finished_at - started_at FROM sekali_attempts "
    "WHERE ns = ? AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT ?";

engine::RunHistory look_at_runs(Connection& connection, std::string_view ns) {
    std::vector<engine::RecordedRun> runs;
    const StatementPtr statement = connection.prepare(kRuns);
    Query query(connection, statement.get());
    query.bind(ns).bind(engine::kMeasuredRuns);
    while (query.next()) {
        engine::RecordedRun& run = runs.emplace_back();
        query.take_into(run.kind);
        query.take_into(run.outcome);
        query.take_into(run.took);
    }
    return engine::measure(runs);
}

}  // namespace

Result<Diagnosis> diagnose(const SqliteOptions& options, std::string_view ns,
                           std::uint64_t whole_up_to) try {
    Diagnosis found;
    look_at_files(found, options.path);
    Connection connection(options.path, Connection::Mode::kReadOnly, options.busy_deadline);
    StoreTimer timer(options.clock);
    set_up_read_only(connection, timer);
    found.schema = connection.query_integer("SELECT value FROM sekali_meta WHERE name = 'schema'");
    found.clock_ahead = timer.now().time_since_epoch() - Millis{options.clock.wall_ms()};
    found.history = look_at_runs(connection, ns);
    if (found.database_bytes <= whole_up_to) {
        const std::string told = connection.query_text("PRAGMA quick_check(1)");
        if (told != "ok") found.damage = told;
    }
    return found;
} catch (const Failure& failure) {
    return failure.error();
}

}  // namespace sekali::sqlite
