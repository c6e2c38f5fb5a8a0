#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace sekali {

/// What kind of operating failure happened; maps one to one to the exit status of the command.
enum class ErrorCode : std::uint8_t {
    kUsage,        ///< Bad input or configuration; names field, value and limit. Exit 2.
    kUnreachable,  ///< The backend did not answer, or not in time. Exit 3.
    kRefused,      ///< The backend answered and refused: read-only, full, no permission. Exit 3.
    kNotFound,     ///< No such job, key, queue or lock. Exit 4.
    kConflict,     ///< Busy, lost, key reused, held, or in another state. Exit 5.
    kCancelled,    ///< The caller asked to stop before it was done. Exit 1.
    kInternal,     ///< A fault in sekali itself; please report it. Exit 1.
};

/// Whether the refused or unanswered request may have taken effect all the same.
enum class Applied : std::uint8_t {
    kNo,     ///< Certainly not.
    kMaybe,  ///< The reply was lost: it may have been applied, or may still be.
};

/// An operating failure that a caller can act on. A plain value.
struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message{};  ///< What happened, and what it means; never holds a secret.
    std::string hint{};     ///< What to do about it; may be empty.
    Applied applied = Applied::kNo;
    bool retryable = false;      ///< Whether the same call may succeed later unchanged.
    std::string backend_code{};  ///< The backend's own code, e.g. `SQLITE_FULL`; may be empty.
};

/// Thrown by `Result::value()` and by calls that have no other way to report; carries the `Error`.
class Failure : public std::runtime_error {
 public:
    explicit Failure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
    Error error_;
};

/// Either a `T` or an `Error`. Not thread-safe, like any value.
///
/// It is sekali's own type and not `std::expected`, so that programs compiled as C++20 and as C++23
/// see the same one.
template <typename T>
class [[nodiscard]] Result {
 public:
    using value_type = T;
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }

    /// The value; throws `Failure` when there is none.
    T& value() & {
        require();
        return std::get<0>(state_);
    }
    const T& value() const& {
        require();
        return std::get<0>(state_);
    }
    T value() && {
        require();
        return std::get<0>(std::move(state_));
    }
    /// The value, of which the caller already knows that it is there.
    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }

    /// The error, of which the caller already knows that it is there.
    [[nodiscard]] const Error& error() const& { return *std::get_if<1>(&state_); }
    Error error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
    void require() const {
        if (const Error* error = std::get_if<1>(&state_)) throw Failure(*error);
    }
    std::variant<T, Error> state_;
};

/// Success without a value, or an `Error`.
template <>
class [[nodiscard]] Result<void> {
 public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    [[nodiscard]] bool ok() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return ok(); }
    void value() const {
        if (error_) throw Failure(*error_);
    }
    [[nodiscard]] const Error& error() const& { return *error_; }

 private:
    std::optional<Error> error_;
};

}  // namespace sekali
