#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sekali::process {

/// The descriptor on which an exec handler may write control lines; children see it in
/// `SEKALI_CONTROL_FD`.
inline constexpr int kControlFd = 3;

/// Longest control line in bytes. The text of a longer `cancel` is cut there; any other longer line
/// is a `BadLine`.
inline constexpr std::size_t kControlLineLimit = 1024;

struct Snooze {
    std::chrono::milliseconds delay{};
    bool operator==(const Snooze&) const = default;
};
struct RetryIn {
    std::chrono::milliseconds delay{};
    bool operator==(const RetryIn&) const = default;
};
struct CancelJob {
    std::string reason;
    bool operator==(const CancelJob&) const = default;
};
struct Progress {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    bool operator==(const Progress&) const = default;
};
/// A line that is none of the four, as valid UTF-8 and cut to the line limit.
struct BadLine {
    std::string text;
    bool operator==(const BadLine&) const = default;
};
using ControlLine = std::variant<Snooze, RetryIn, CancelJob, Progress, BadLine>;

/// Reads one line without its newline: `snooze D`, `retry-in D`, `cancel TEXT`, `progress N/M`,
/// where D is a positive duration with a unit (`250ms 30s 5m 2h 1d`) and N is at most M. Never
/// fails: what cannot be read is a `BadLine`.
[[nodiscard]] ControlLine parse_control_line(std::string_view line);

/// Cuts a stream of bytes into control lines. Holds at most one line, whatever it is fed.
class ControlParser {
 public:
    using Sink = std::function<void(ControlLine)>;

    /// Takes the next bytes and hands over every line that they complete. Blank lines are skipped.
    void feed(std::string_view bytes, const Sink& sink);
    /// Hands over a last line that has no newline.
    void finish(const Sink& sink);

 private:
    std::string line_;
};

/// What a child's control lines amount to. Bounded, whatever the child wrote.
struct ControlReport {
    static constexpr std::size_t kBadLinesKept = 8;

    /// The last `snooze`, `retry-in` or `cancel`; the last one rules.
    std::optional<std::variant<Snooze, RetryIn, CancelJob>> directive;
    std::optional<Progress> progress;    ///< The last one.
    std::vector<std::string> bad_lines;  ///< The first few lines that could not be read.
    std::uint64_t bad_line_count = 0;

    void add(ControlLine line);
};

}  // namespace sekali::process
