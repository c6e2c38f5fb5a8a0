#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "engine/model.hpp"

namespace sekali::sqlite {

enum class Synchronous : std::uint8_t {
    kFull,    ///< An answer means that the disk has it.
    kNormal,  ///< The last commits before a power cut may be gone; `kill -9` loses nothing.
};

/// Where a store reads the time; tests put their own in.
struct ClockHooks {
    std::function<std::string()> boot_id = base::boot_id;
    std::function<std::int64_t()> boot_ms = base::boot_ms;
    std::function<std::int64_t()> wall_ms = base::wall_ms;
};

struct SqliteOptions {
    std::string path;
    Synchronous synchronous = Synchronous::kFull;
    bool create = true;
    bool read_only = false;
    /// SQLite's log is shared memory, and file locks often lie there: only for who knows better.
    bool allow_network_file_system = false;
    /// How long a lock of another program may delay a call.
    engine::Millis busy_deadline{std::chrono::seconds{10}};
    /// Tasks that may wait to be run; above it `submit` blocks, up to the busy deadline.
    std::size_t inbox_limit = 8192;
    /// The log is checkpointed when it has passed this size.
    std::int64_t log_limit_bytes = std::int64_t{16} << 20;
    /// Told about trouble that goes on without an error, e.g. a log that grows behind a reader.
    std::function<void(std::string_view)> warn;
    ClockHooks clock;
};

}  // namespace sekali::sqlite
