#include "process/exec_control.hpp"

#include <charconv>
#include <utility>

#include "base/durations.hpp"
#include "process/text.hpp"

namespace sekali::process {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// A number that begins the text and takes its digits off it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::optional<std::chrono::milliseconds> parse_delay(std::string_view text) {
    const auto delay = base::parse_duration("delay", text, base::DurationRule::kPositive);
    return delay.ok() ? std::optional(*delay) : std::nullopt;
}

std::optional<Progress> parse_progress(std::string_view text) {
    const auto done = take_number(text);
    if (!done || !text.starts_with('/')) return std::nullopt;
    text.remove_prefix(1);
    const auto total = take_number(text);
    if (!total || !text.empty() || *done > *total) return std::nullopt;
    return Progress{.done = *done, .total = *total};
}

BadLine bad_line(std::string_view line) {
    return {.text = valid_utf8(line.substr(0, kControlLineLimit))};
}

}  // namespace

ControlLine parse_control_line(std::string_view line) {
    const bool too_long = line.size() > kControlLineLimit;
    const std::string_view text = trim(line.substr(0, kControlLineLimit));
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    const std::string_view rest = trim(text.substr(word.size()));
    if (word == "cancel") return CancelJob{.reason = valid_utf8(rest)};
    if (too_long) return bad_line(line);
    if (word == "snooze") {
        if (const auto delay = parse_delay(rest)) return Snooze{.delay = *delay};
    } else if (word == "retry-in") {
        if (const auto delay = parse_delay(rest)) return RetryIn{.delay = *delay};
    } else if (word == "progress") {
        if (const auto progress = parse_progress(rest)) return *progress;
    }
    return bad_line(line);
}

void ControlParser::feed(std::string_view bytes, const Sink& sink) {
    while (!bytes.empty()) {
        const std::size_t newline = bytes.find('\n');
        const std::string_view part = bytes.substr(0, newline);
        // One byte above the limit is kept, so that a line that is too long is seen to be so.
        const std::size_t room = kControlLineLimit + 1 - line_.size();
        line_ += part.substr(0, room);
        if (newline == std::string_view::npos) return;
        finish(sink);
        bytes.remove_prefix(newline + 1);
    }
}

void ControlParser::finish(const Sink& sink) {
    const std::string line = std::exchange(line_, {});
    if (!trim(line).empty()) sink(parse_control_line(line));
}

void ControlReport::add(ControlLine line) {
    if (auto* progress_line = std::get_if<Progress>(&line)) {
        progress = *progress_line;
    } else if (auto* bad = std::get_if<BadLine>(&line)) {
        ++bad_line_count;
        if (bad_lines.size() < kBadLinesKept) bad_lines.push_back(std::move(bad->text));
    } else if (auto* snooze = std::get_if<Snooze>(&line)) {
        directive = *snooze;
    } else if (auto* retry = std::get_if<RetryIn>(&line)) {
        directive = *retry;
    } else if (auto* cancel = std::get_if<CancelJob>(&line)) {
        directive = std::move(*cancel);
    }
}

}  // namespace sekali::process
