#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/sqlite/options.hpp"
#include "engine/run_history.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// What a database, its file and its history say about whether it is safe to work with.
struct Diagnosis {
    std::int64_t schema = 0;
    std::string damage;  ///< What the check of its pages found; empty: nothing.
    std::uint64_t log_bytes = 0;
    std::uint64_t database_bytes = 0;
    std::uint64_t free_bytes = 0;  ///< That this user may still write on the file system.
    std::string file_system;       ///< Empty: one that is fit; else the name of what it is.
    bool in_memory = false;        ///< The file system does not outlive a restart of the host.
    bool readable_by_others = false;
    engine::Millis clock_ahead{};  ///< Of the store's clock, to the wall clock.
    engine::RunHistory history;    ///< Of the namespace.
};

/// Looks at a database that exists. Every page of it is read and checked where it has no more than
/// `whole_up_to` bytes. Writes nothing. Blocks.
[[nodiscard]] Result<Diagnosis> diagnose(const SqliteOptions& options, std::string_view ns,
                                         std::uint64_t whole_up_to);

}  // namespace sekali::sqlite
