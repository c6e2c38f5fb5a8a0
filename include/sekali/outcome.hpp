#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sekali/codec.hpp"

namespace sekali {

/// How a handler ended; made by `success`, `fail`, `retry`, `snooze`, `cancel` or
/// `Context::commit`. A plain value.
class [[nodiscard]] Outcome {
 public:
    enum class Kind : std::uint8_t {
        kSuccess,
        kCommitted,  ///< Success that `Context::commit` has already made durable.
        kRetry,
        kFail,
        kSnooze,
        kCancel,
    };

    Outcome(Kind kind, std::string text, std::optional<std::chrono::milliseconds> delay = {})
        : kind_(kind), text_(std::move(text)), delay_(delay) {}

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// Of a success its result as JSON text; else the reason in words.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// Of a snooze, or of a retry that names its own.
    [[nodiscard]] std::optional<std::chrono::milliseconds> delay() const noexcept { return delay_; }

 private:
    Kind kind_;
    std::string text_;
    std::optional<std::chrono::milliseconds> delay_;
};

/// The job is done; its result is `null`.
inline Outcome success() {
    return {Outcome::Kind::kSuccess, "null"};
}

/// The job is done and `result` is stored for its duplicates. Throws `Failure` where the value has
/// no JSON form. More than 64 KiB of JSON are cut and marked; it stays a success.
template <typename T>
Outcome success(const T& result) {
    return {Outcome::Kind::kSuccess, encode(result).value()};
}

/// The job cannot succeed by being tried again: it is dead-lettered.
inline Outcome fail(std::string why) {
    return {Outcome::Kind::kFail, std::move(why)};
}

/// Nothing was applied, try again: after `after`, or as the kind's retry policy says. Counts an
/// attempt.
inline Outcome retry(std::string why, std::optional<std::chrono::milliseconds> after = {}) {
    return {Outcome::Kind::kRetry, std::move(why), after};
}

/// Run again in `delay`; neither an attempt nor a failure. Says that nothing was applied.
inline Outcome snooze(std::chrono::milliseconds delay) {
    return {Outcome::Kind::kSnooze, std::string(), delay};
}

/// The job is no longer wanted: it ends as `cancelled`.
inline Outcome cancel(std::string why) {
    return {Outcome::Kind::kCancel, std::move(why)};
}

/// Thrown by a handler, the same as `return fail(why)`.
class PermanentError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

/// Thrown by a handler, the same as `return retry(why, after)`: nothing was applied. Any other
/// exception is a failed attempt of which nobody knows what it applied.
class RetryableError : public std::runtime_error {
 public:
    explicit RetryableError(const std::string& why,
                            std::optional<std::chrono::milliseconds> after = {})
        : std::runtime_error(why), after_(after) {}
    [[nodiscard]] std::optional<std::chrono::milliseconds> after() const noexcept { return after_; }

 private:
    std::optional<std::chrono::milliseconds> after_;
};

}  // namespace sekali
