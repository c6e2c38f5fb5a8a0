#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sekali::observe {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view text);

enum class LogFormat : std::uint8_t { kJson, kText };

/// What a line of the log is about; empty text and absent numbers are `null`.
struct LogFields {
    std::string_view job_id{};
    std::string_view kind{};
    std::string_view queue{};
    std::string_view key{};
    std::string_view lock_key{};
    std::string_view lock_token{};
    std::optional<std::uint64_t> attempt{};
    std::optional<std::uint64_t> epoch{};
    std::string_view worker{};
    std::optional<std::chrono::milliseconds> duration{};
    std::string_view result{};  ///< How it ended, in one word.
    std::string_view error_class{};
};

struct LogOptions {
    LogFormat format = LogFormat::kJson;
    LogLevel least = LogLevel::kInfo;
    /// Keys, lock keys and lock tokens as the first 16 hex digits of their SHA-256, for logs that
    /// must not hold what keys are made of.
    bool hash_keys = false;
    int fd = 2;
};

/// JSON where a program reads stderr, sentences where a person does.
[[nodiscard]] LogFormat log_format_for(int fd);

/// Writes a log, one `write` for each line, so that lines of several threads and processes do not
/// mix. Whatever bytes the fields hold, they never begin a new line and never reach a terminal
/// unescaped. Thread-safe. A line that cannot be written is dropped.
class LogWriter {
 public:
    explicit LogWriter(LogOptions options) : options_(options) {}

    void write(LogLevel level, std::string_view message, const LogFields& fields = {}) const;
    [[nodiscard]] bool wants(LogLevel level) const { return level >= options_.least; }

 private:
    LogOptions options_;
};

/// The line that `LogWriter` writes, with its newline, for a moment in milliseconds since 1970.
[[nodiscard]] std::string format_log_line(const LogOptions& options, std::int64_t unix_ms,
                                          LogLevel level, std::string_view message,
                                          const LogFields& fields);

}  // namespace sekali::observe
