#include "process/child_pipes.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace sekali::process {
namespace {

/// What a pipe holds on Linux, unless somebody enlarged it.
constexpr std::size_t kReadBytes = 64 * 1024;

bool would_block() {
    return errno == EAGAIN || errno == EINTR;
}

}  // namespace

ChildPipes::ChildPipes(std::string stdin_bytes, std::size_t stdout_cap, std::size_t stderr_tail_cap)
    : stdin_bytes_(std::move(stdin_bytes)),
      stdout_cap_(stdout_cap),
      stderr_tail_cap_(stderr_tail_cap) {}

bool ChildPipes::open(SpawnFds& child_ends) {
    for (std::size_t i = 0; i < kStreams; ++i) {
        int both[2];
        if (::pipe2(both, O_CLOEXEC) != 0) return false;
        const bool child_reads = i == static_cast<std::size_t>(Stream::kStdin);
        child_ends[i].reset(both[child_reads ? 0 : 1]);
        ends_[i].reset(both[child_reads ? 1 : 0]);
        if (::fcntl(ends_[i].get(), F_SETFL, O_NONBLOCK) != 0) return false;
    }
    // A payload that fits into the pipe needs no descriptor any more when the child starts.
    write_stdin();
    return true;
}

std::optional<Progress> ChildPipes::handle(Stream stream) {
    if (!end(stream).valid()) return std::nullopt;
    if (stream == Stream::kStdin) {
        write_stdin();
        return std::nullopt;
    }
    const std::optional<Progress> before = output_.control.progress;
    read_once(stream, kReadBytes);
    const std::optional<Progress>& after = output_.control.progress;
    return after == before ? std::nullopt : after;
}

void ChildPipes::write_stdin() {
    UniqueFd& pipe = end(Stream::kStdin);
    while (stdin_written_ < stdin_bytes_.size()) {
        const ssize_t count = ::write(pipe.get(), stdin_bytes_.data() + stdin_written_,
                                      stdin_bytes_.size() - stdin_written_);
        if (count < 0 && would_block()) return;
        // EPIPE: the child does not want to read it, which is its own affair.
        if (count < 0) break;
        stdin_written_ += static_cast<std::size_t>(count);
    }
    pipe.reset();
    stdin_bytes_ = {};
    stdin_written_ = 0;
}

std::size_t ChildPipes::read_once(Stream stream, std::size_t limit) {
    std::array<char, kReadBytes> buffer;
    const ssize_t count = ::read(end(stream).get(), buffer.data(), std::min(limit, buffer.size()));
    if (count < 0 && would_block()) return 0;
    if (count <= 0) {
        end(stream).reset();
        return 0;
    }
    const auto size = static_cast<std::size_t>(count);
    take(stream, {buffer.data(), size});
    return size;
}

void ChildPipes::take(Stream stream, std::string_view bytes) {
    if (stream == Stream::kStdout) {
        output_.stdout_total += bytes.size();
        const std::size_t room = stdout_cap_ - output_.stdout_bytes.size();
        output_.stdout_bytes += bytes.substr(0, room);
    } else if (stream == Stream::kStderr) {
        output_.stderr_total += bytes.size();
        std::string& tail = output_.stderr_tail;
        tail += bytes;
        if (tail.size() > stderr_tail_cap_) tail.erase(0, tail.size() - stderr_tail_cap_);
    } else {
        control_.feed(bytes, [this](ControlLine line) { output_.control.add(std::move(line)); });
    }
}

ChildOutput ChildPipes::finish() {
    for (const Stream stream : {Stream::kStdout, Stream::kStderr, Stream::kControl}) {
        int waiting = 0;
        if (!end(stream).valid()) continue;
        if (::ioctl(end(stream).get(), FIONREAD, &waiting) != 0) continue;
        for (auto left = static_cast<std::size_t>(waiting); left > 0;) {
            const std::size_t count = read_once(stream, left);
            if (count == 0) break;
            left -= count;
        }
    }
    control_.finish([this](ControlLine line) { output_.control.add(std::move(line)); });
    for (UniqueFd& pipe : ends_)
        pipe.reset();
    return std::move(output_);
}

}  // namespace sekali::process
