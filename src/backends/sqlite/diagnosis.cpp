#include "backends/sqlite/diagnosis.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

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

/// Enough for a p99 of every kind that matters, and quick to read.
constexpr std::size_t kNewestRuns = 10'000;

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

void look_at_runs(Diagnosis& found, Connection& connection, std::string_view ns) {
    std::map<std::string, std::vector<Millis>> times;
    const StatementPtr statement = connection.prepare(kRuns);
    Query query(connection, statement.get());
    query.bind(ns).bind(kNewestRuns);
    while (query.next()) {
        const auto kind = query.take<std::string>();
        const auto outcome = query.take<std::string>();
        const auto took = query.take<Millis>();
        ++found.runs;
        if (outcome == "lapsed") ++found.lapses;
        // What ended without its own word says nothing about how long it would have taken.
        if (outcome == "succeeded" || outcome == "failed") times[kind].push_back(took);
    }
    for (auto& [kind, list] : times) {
        std::sort(list.begin(), list.end());
        found.run_times.push_back(
            {kind, list.size(), list[(list.size() * 99 - 1) / 100], list.back()});
    }
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
    look_at_runs(found, connection, ns);
    if (found.database_bytes <= whole_up_to) {
        const std::string told = connection.query_text("PRAGMA quick_check(1)");
        if (told != "ok") found.damage = told;
    }
    return found;
} catch (const Failure& failure) {
    return failure.error();
}

}  // namespace sekali::sqlite
