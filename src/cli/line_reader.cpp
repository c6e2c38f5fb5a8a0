#include "cli/line_reader.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sekali/result.hpp"

namespace sekali::cli {

bool LineReader::fill() {
    constexpr std::size_t kReadBytes = 256 * 1024;
    if (ended_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t had = buffer_.size();
    buffer_.resize(had + kReadBytes);
    ssize_t got = -1;
    do {
        got = ::read(fd_, buffer_.data() + had, kReadBytes);
    } while (got < 0 && errno == EINTR);
    buffer_.resize(had + static_cast<std::size_t>(got < 0 ? 0 : got));
    if (got < 0) {
        throw Failure({.code = ErrorCode::kRefused,
                       .message = fmt::format("the input cannot be read: {}", std::strerror(errno)),
                       .hint = ""});
    }
    ended_ = got == 0;
    return !ended_;
}

LineReader::Next LineReader::next() {
    bool too_long = false;
    std::size_t searched = begin_;
    while (true) {
        const std::size_t newline = buffer_.find('\n', searched);
        const std::size_t end = newline == std::string::npos ? buffer_.size() : newline;
        too_long = too_long || end - begin_ > limit_;
        if (newline != std::string::npos) {
            line_ = std::string_view(buffer_).substr(begin_, newline - begin_);
            begin_ = newline + 1;
            return too_long ? Next::kTooLong : Next::kLine;
        }
        if (too_long) begin_ = buffer_.size();
        const std::size_t kept = buffer_.size() - begin_;
        if (!fill()) break;
        searched = kept;
    }
    line_ = std::string_view(buffer_).substr(begin_);
    begin_ = buffer_.size();
    if (too_long) return Next::kTooLong;
    return line_.empty() ? Next::kEnd : Next::kLine;
}

bool LineReader::would_wait() const {
    if (ended_ || buffer_.find('\n', begin_) != std::string::npos) return false;
    pollfd wanted{fd_, POLLIN, 0};
    return poll(&wanted, 1, 0) == 0;
}

}  // namespace sekali::cli
