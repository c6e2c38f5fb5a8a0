#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "process/exec_control.hpp"
#include "process/guard.hpp"
#include "process/guard_wire.hpp"
#include "process/unique_fd.hpp"

namespace sekali::process {

/// The worker's ends of a child's four pipes, and what came out of them. Never blocks and holds no
/// more than the caps allow, whatever the child writes.
class ChildPipes {
 public:
    enum class Stream : std::uint8_t { kStdin, kStdout, kStderr, kControl };
    static constexpr std::size_t kStreams = 4;

    ChildPipes(std::string stdin_bytes, std::size_t stdout_cap, std::size_t stderr_tail_cap);

    /// Makes the pipes, writes as much of stdin as they take, and puts the child's ends into the
    /// first places of `child_ends`. False, with errno set, when descriptors are short.
    [[nodiscard]] bool open(SpawnFds& child_ends);

    /// The worker's end; -1 once it is closed.
    [[nodiscard]] int fd(Stream stream) const { return end(stream).get(); }

    /// Moves what can be moved at once; closes the end when there is nothing more to come or to
    /// send. Gives the progress when it has changed.
    [[nodiscard]] std::optional<Progress> handle(Stream stream);

    /// Reads what the child left in its pipes, closes them and hands everything over. A process
    /// that still holds and fills them delays nothing.
    [[nodiscard]] ChildOutput finish();

 private:
    [[nodiscard]] const UniqueFd& end(Stream stream) const {
        return ends_[static_cast<std::size_t>(stream)];
    }
    [[nodiscard]] UniqueFd& end(Stream stream) { return ends_[static_cast<std::size_t>(stream)]; }
    void write_stdin();
    /// Bytes read, at most `limit`; none at the end of the stream or while it is empty.
    std::size_t read_once(Stream stream, std::size_t limit);
    void take(Stream stream, std::string_view bytes);

    std::array<UniqueFd, kStreams> ends_;
    std::string stdin_bytes_;
    std::size_t stdin_written_ = 0;
    std::size_t stdout_cap_;
    std::size_t stderr_tail_cap_;
    ControlParser control_;
    ChildOutput output_;
};

}  // namespace sekali::process
