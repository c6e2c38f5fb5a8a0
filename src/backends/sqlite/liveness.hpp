#pragma once

#include <cstdint>
#include <string>

#include "backends/sqlite/fd.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// While it lives, the process that holds it is seen to be alive, and as soon as every process that
/// has the descriptor is gone its death is proven. Move-only.
///
/// The descriptor is close-on-exec: a guard that is forked keeps it, so that a worker counts as
/// dead only when its guard has ended the worker's children too.
class LivenessHandle {
 public:
    LivenessHandle() = default;
    explicit LivenessHandle(Fd fd) : fd_(std::move(fd)) {}
    [[nodiscard]] int descriptor() const { return fd_.get(); }

 private:
    Fd fd_;
};

/// The file beside the database of which every worker keeps one byte locked.
///
/// Locks of open file descriptions belong to no pid, so a pid that is given out again proves
/// nothing wrong, and they end with the last process that has the descriptor. The file carries a
/// name of its own inside: where it was deleted and made again, nothing is said about owners of
/// the former one. Thread-safe.
class LivenessFile {
 public:
    /// A missing file is made unless `read_only`; then every fate is unknown.
    static Result<LivenessFile> open(std::string path, bool read_only);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] engine::OwnerFate fate(const std::string& file, std::int64_t place) const;
    /// Locks a byte of its own choice and tells which.
    [[nodiscard]] Result<LivenessHandle> hold(std::int64_t& place) const;

 private:
    std::string path_;
    std::string name_;  ///< Empty: there is no file.
    Fd probe_;
};

}  // namespace sekali::sqlite
