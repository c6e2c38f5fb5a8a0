#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/postgres/wire.hpp"
#include "engine/tables.hpp"

namespace sekali::postgres {

template <typename Row>
struct KnownRow {
    Row row;
    Xid version;
};

/// A reading of the server's clock may be old by its whole way when it comes; leases have a margin
/// for so much, and a slower one is not used.
inline constexpr engine::Millis kSlowestReading{20};

/// What the server's clock and floors were, and when that was asked for.
struct Reading {
    engine::StoreTime time{};
    std::uint64_t epoch_floor = 0;
    std::uint64_t fence_floor = 0;
    std::chrono::steady_clock::time_point asked{};
};

/// The rows of running jobs as this process has committed them last. Nothing is decided by them
/// alone: whoever uses one writes it under the condition that it still is of that version, or the
/// server refuses the whole transaction. Thread-safe.
class KnownRows {
 public:
    using LockName = std::pair<std::string, std::string>;

    /// Gives the row away: one unit at a time relies on it.
    [[nodiscard]] std::optional<KnownRow<engine::JobRow>> take_job(const std::string& id);
    [[nodiscard]] std::optional<KnownRow<engine::RecordRow>> take_record(
        const engine::RecordKey& key);
    [[nodiscard]] std::optional<KnownRow<engine::LockRow>> take_lock(const LockName& name);

    void put(engine::JobRow row, Xid version);
    void put(engine::RecordRow row, Xid version);
    void put(engine::LockRow row, Xid version);

    void put(const Reading& reading);
    /// The clock as it is now at the latest; nothing where the last look was long ago.
    [[nodiscard]] std::optional<Reading> reading() const;

 private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, KnownRow<engine::JobRow>> jobs_;
    std::map<engine::RecordKey, KnownRow<engine::RecordRow>> records_;
    std::map<LockName, KnownRow<engine::LockRow>> locks_;
    std::optional<Reading> reading_;
};

}  // namespace sekali::postgres
