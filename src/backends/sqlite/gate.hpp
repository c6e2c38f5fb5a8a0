#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "backends/sqlite/fd.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// The turn to write: held by one process at a time around each write transaction and each
/// checkpoint.
///
/// It makes processes take turns, which SQLite's busy handler does not, and it keeps every commit
/// of sekali apart from every checkpoint of sekali, because of the race that SQLite had
/// before 3.51.3 (https://www.sqlite.org/wal.html#walresetbug).
///
/// Two bytes of a file are locked by open file description, so a turn ends with its process. Who
/// waits holds the first byte, which is the place at the head of the line, and sleeps until the
/// file is touched. The head only makes the line fair: whoever finds it taken for long passes it
/// by, because its process may be stopped. Not thread-safe.
class Gate {
 public:
    static Result<Gate> open(const std::string& path);

    /// False when the deadline passed.
    [[nodiscard]] Result<bool> enter(std::chrono::steady_clock::time_point deadline);
    void leave();
    [[nodiscard]] const std::string& path() const { return path_; }
    /// The byte whose lock is the turn.
    static constexpr std::int64_t kTurn = 1;

 private:
    Gate(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
    [[nodiscard]] Result<bool> try_enter();
    void watch();
    void wait_for_touch(std::chrono::steady_clock::duration at_most);
    void forget_touches();
    void touch();

    std::string path_;
    Fd file_;
    Fd touches_;  ///< inotify, opened when somebody first was in the way; may be missing.
    bool at_head_ = false;
    bool passes_head_ = false;  ///< Somebody kept it for too long and has it still.
};

}  // namespace sekali::sqlite
