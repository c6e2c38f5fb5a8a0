#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "sekali/result.hpp"

namespace sekali {

/// Bytes for a column of bytes, as opposed to text. A plain value.
struct Blob {
    std::string bytes;
    bool operator==(const Blob&) const = default;
};

/// What SQL carries in either direction: null, integer, floating point, text or bytes. A plain
/// value.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

namespace engine {
class Tables;
}

// What a backend implements so that `Transaction` works on it. Not for users.
namespace internal {

/// The rows of one query, read one after the other. Must not outlive its session.
class SqlCursor {
 public:
    virtual ~SqlCursor() = default;
    /// Goes to the next row, at first to the first one; false behind the last. Throws `Failure`.
    virtual bool next() = 0;
    /// The columns of the present row; valid until the next call of `next`.
    [[nodiscard]] virtual std::span<const SqlValue> row() const = 0;
};

/// One open transaction of a store, as SQL. Placeholders are `$1`, `$2`, … on every backend: `$2`
/// is the second argument wherever and how often it stands. Belongs to the thread that runs the
/// transaction. Every call throws `Failure` when the store refuses.
class SqlSession {
 public:
    virtual ~SqlSession() = default;
    /// Runs one statement to its end; returns how many rows it changed.
    virtual std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) = 0;
    [[nodiscard]] virtual std::unique_ptr<SqlCursor> query(std::string_view sql,
                                                           std::span<const SqlValue> arguments) = 0;
    /// The protocol's rows in the same transaction, for enqueues.
    [[nodiscard]] virtual engine::Tables& tables() = 0;
};

[[noreturn]] inline void throw_sql_usage(std::string message) {
    Error error;
    error.code = ErrorCode::kUsage;
    error.message = std::move(message);
    throw Failure(std::move(error));
}

[[noreturn]] inline void throw_sql_column(std::size_t column, std::string_view wanted,
                                          const SqlValue& found) {
    static constexpr std::array<std::string_view, 5> kNames{"null", "an integer", "a number",
                                                            "text", "bytes"};
    throw_sql_usage("column " + std::to_string(column) + " of a query holds " +
                    std::string(kNames.at(found.index())) + " where " + std::string(wanted) +
                    " was asked for");
}

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {
    using value_type = T;
};

template <typename T>
concept TextLike = std::convertible_to<const T&, std::string_view>;

template <typename T>
SqlValue to_sql(const T& value) {
    if constexpr (std::is_same_v<T, SqlValue>) {
        return value;
    } else if constexpr (std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, std::nullopt_t>) {
        return std::monostate{};
    } else if constexpr (IsOptional<T>::value) {
        return value ? to_sql(*value) : SqlValue{};
    } else if constexpr (std::is_same_v<T, Blob>) {
        return value;
    } else if constexpr (std::is_integral_v<T>) {
        if (!std::in_range<std::int64_t>(
                static_cast<std::conditional_t<std::is_same_v<T, bool>, int, T>>(value))) {
            throw_sql_usage("an SQL argument is larger than SQL's 64-bit integers");
        }
        return static_cast<std::int64_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<double>(value);
    } else {
        static_assert(TextLike<T>,
                      "an SQL argument is a number, text, Blob or an optional of these");
        return std::string(std::string_view(value));
    }
}

template <typename T>
T from_sql(const SqlValue& value, std::size_t column) {
    if constexpr (std::is_same_v<T, SqlValue>) {
        return value;
    } else if constexpr (IsOptional<T>::value) {
        if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
        return from_sql<typename IsOptional<T>::value_type>(value, column);
    } else if constexpr (std::is_same_v<T, bool>) {
        const auto number = from_sql<std::int64_t>(value, column);
        if (number != 0 && number != 1) throw_sql_column(column, "a boolean", value);
        return number == 1;
    } else if constexpr (std::is_integral_v<T>) {
        const auto* number = std::get_if<std::int64_t>(&value);
        if (number == nullptr || !std::in_range<T>(*number)) {
            throw_sql_column(column, "an integer of that size", value);
        }
        return static_cast<T>(*number);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<T>(*number);
        if (const auto* number = std::get_if<double>(&value)) return static_cast<T>(*number);
        throw_sql_column(column, "a number", value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (const auto* text = std::get_if<std::string>(&value)) return *text;
        throw_sql_column(column, "text", value);
    } else {
        static_assert(
            std::is_same_v<T, Blob>,
            "an SQL column is read as a number, std::string, Blob or an optional of these");
        if (const auto* blob = std::get_if<Blob>(&value)) return *blob;
        throw_sql_column(column, "bytes", value);
    }
}

}  // namespace internal
}  // namespace sekali
