#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/sql.hpp"
#include "engine/model.hpp"

namespace sekali::sqlite {

/// The prepared statements of one connection, each made when it is first used.
class Statements {
 public:
    explicit Statements(Connection& connection) : connection_(connection) {}
    [[nodiscard]] sqlite3_stmt* use(Sql which);
    [[nodiscard]] Connection& connection() const { return connection_; }

 private:
    Connection& connection_;
    std::array<StatementPtr, kSqlCount> prepared_;
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// One use of a prepared statement. Text arguments are bound without a copy: they must live until
/// the query has run.
class Query {
 public:
    Query(Connection& connection, sqlite3_stmt* statement)
        : connection_(connection), statement_(statement) {}
    Query(Statements& statements, Sql which)
        : Query(statements.connection(), statements.use(which)) {}
    template <typename... Arguments>
    Query(Statements& statements, Sql which, const Arguments&... arguments)
        : Query(statements, which) {
        (bind(arguments), ...);
    }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    ~Query() { sqlite3_reset(statement_); }

    /// Binds the next placeholder.
    template <typename T>
    Query& bind(const T& value) {
        put(++bound_, value);
        return *this;
    }
    void bind_blob(std::string_view bytes);
    void bind_null() { put_null(++bound_); }
    /// Passes placeholders that the statement does not have.
    void skip(int placeholders) { bound_ += placeholders; }

    /// Goes to the next row; false behind the last.
    bool next();
    /// Runs to the end; returns how many rows it changed.
    std::size_t run();

    /// Reads the next column of the present row.
    template <typename T>
    [[nodiscard]] T take() {
        return read<T>(read_++);
    }
    template <typename T>
    void take_into(T& value) {
        value = take<T>();
    }
    [[nodiscard]] bool is_null() const {
        return sqlite3_column_type(statement_, read_) == SQLITE_NULL;
    }

 private:
    template <typename T>
    void put(int place, const T& value) {
        if constexpr (std::convertible_to<const T&, std::string_view>) {
            put_text(place, value);
        } else if constexpr (kIsOptional<T>) {
            value ? put(place, *value) : put_null(place);
        } else if constexpr (std::is_floating_point_v<T>) {
            put_number(place, value);
        } else if constexpr (std::is_same_v<T, engine::StoreTime>) {
            put_integer(place, value.time_since_epoch().count());
        } else if constexpr (std::is_same_v<T, engine::Millis>) {
            put_integer(place, value.count());
        } else {
            static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
            put_integer(place, static_cast<std::int64_t>(value));
        }
    }
    void put_text(int place, std::string_view text);
    void put_integer(int place, std::int64_t value);
    void put_number(int place, double value);
    void put_null(int place);

    template <typename T>
    [[nodiscard]] T read(int column) const {
        if constexpr (kIsOptional<T>) {
            if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
            return read<typename T::value_type>(column);
        } else if constexpr (std::is_same_v<T, std::string>) {
            return read_text(column);
        } else if constexpr (std::is_floating_point_v<T>) {
            return sqlite3_column_double(statement_, column);
        } else if constexpr (std::is_same_v<T, bool>) {
            return sqlite3_column_int64(statement_, column) != 0;
        } else if constexpr (std::is_same_v<T, engine::StoreTime>) {
            return T{engine::Millis{sqlite3_column_int64(statement_, column)}};
        } else {
            return static_cast<T>(sqlite3_column_int64(statement_, column));
        }
    }
    [[nodiscard]] std::string read_text(int column) const;

    Connection& connection_;
    sqlite3_stmt* statement_;
    int bound_ = 0;
    int read_ = 0;
};

}  // namespace sekali::sqlite
