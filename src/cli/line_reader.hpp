#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sekali::cli {

/// Reads the lines of a descriptor with bounded memory, whatever their length. Does not own it.
class LineReader {
 public:
    enum class Next : std::uint8_t {
        kLine,
        kTooLong,  ///< The line has more bytes than the limit; it was read over.
        kEnd,
    };

    LineReader(int fd, std::size_t max_line_bytes) : fd_(fd), limit_(max_line_bytes) {}

    /// Goes to the next line; throws `Failure` (`kRefused`) when it cannot be read.
    Next next();
    /// The present line without its newline; valid until the next call of `next`.
    [[nodiscard]] std::string_view line() const { return line_; }
    /// Whether `next` would have to wait for whoever writes to the descriptor.
    [[nodiscard]] bool would_wait() const;

 private:
    /// False at the end of the input.
    bool fill();

    int fd_;
    std::size_t limit_;
    std::string buffer_;
    std::size_t begin_ = 0;
    std::string_view line_;
    bool ended_ = false;
};

}  // namespace sekali::cli
