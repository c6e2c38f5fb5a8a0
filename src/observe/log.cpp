#include "observe/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace sekali::observe {
namespace {

constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warning", "error"};

std::string_view name_of(LogLevel level) {
    return kLevels.at(static_cast<std::size_t>(level));
}

/// Fields whose bytes a producer chose.
struct ShownKeys {
    std::string key;
    std::string lock_key;
    std::string lock_token;
};

std::string shown_key(std::string_view key, bool hashed) {
    constexpr std::size_t kShownDigits = 16;
    if (!hashed || key.empty()) return std::string(key);
    return base::sha256_hex(key).substr(0, kShownDigits);
}

ShownKeys shown_keys(const LogOptions& options, const LogFields& fields) {
    return {shown_key(fields.key, options.hash_keys), shown_key(fields.lock_key, options.hash_keys),
            shown_key(fields.lock_token, options.hash_keys)};
}

std::string json_line(const LogOptions& options, std::int64_t unix_ms, LogLevel level,
                      std::string_view message, const LogFields& fields) {
    const ShownKeys keys = shown_keys(options, fields);
    std::string line;
    base::JsonWriter json(line);
    const auto text = [&](std::string_view name, std::string_view value) {
        json.field(name);
        value.empty() ? json.value(nullptr) : json.value(value);
    };
    std::optional<std::int64_t> duration_ms;
    if (fields.duration) duration_ms = fields.duration->count();
    json.begin_object();
    json.field("time", base::format_instant(unix_ms)).field("level", name_of(level));
    json.field("msg", message);
    text("job_id", fields.job_id);
    text("kind", fields.kind);
    text("queue", fields.queue);
    text("key", keys.key);
    text("lock_key", keys.lock_key);
    text("lock_token", keys.lock_token);
    json.field("attempt", fields.attempt).field("epoch", fields.epoch);
    text("worker", fields.worker);
    json.field("duration_ms", duration_ms);
    text("result", fields.result);
    text("error_class", fields.error_class);
    json.end_object();
    return line + '\n';
}

std::string text_line(const LogOptions& options, std::int64_t unix_ms, LogLevel level,
                      std::string_view message, const LogFields& fields) {
    constexpr std::size_t kClockBegins = 11;  // behind `2026-11-30T`
    constexpr std::size_t kClockLength = 12;
    const ShownKeys keys = shown_keys(options, fields);
    std::string line = base::format_instant(unix_ms).substr(kClockBegins, kClockLength);
    if (level != LogLevel::kInfo) line += fmt::format("  {}:", name_of(level));
    line += "  " + base::printable(message);
    const auto text = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) line += fmt::format("  {}={}", name, base::printable(value));
    };
    text("kind", fields.kind);
    text("key", keys.key);
    text("lock", keys.lock_key);
    text("job", fields.job_id);
    if (fields.attempt) line += fmt::format("  attempt={}", *fields.attempt);
    if (fields.duration) line += fmt::format("  took={}", base::format_duration(*fields.duration));
    text("result", fields.result);
    text("error", fields.error_class);
    return line + '\n';
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) {
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
        if (kLevels[i] == text) return static_cast<LogLevel>(i);
    }
    return std::nullopt;
}

LogFormat log_format_for(int fd) {
    return isatty(fd) == 1 ? LogFormat::kText : LogFormat::kJson;
}

std::string format_log_line(const LogOptions& options, std::int64_t unix_ms, LogLevel level,
                            std::string_view message, const LogFields& fields) {
    return options.format == LogFormat::kJson ? json_line(options, unix_ms, level, message, fields)
                                              : text_line(options, unix_ms, level, message, fields);
}

void LogWriter::write(LogLevel level, std::string_view message, const LogFields& fields) const {
    if (!wants(level)) return;
    const std::string line = format_log_line(options_, base::wall_ms(), level, message, fields);
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t written = ::write(options_.fd, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return;
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace sekali::observe
