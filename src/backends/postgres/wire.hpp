#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <libpq-fe.h>

#include "engine/model.hpp"

// Values in PostgreSQL's binary formats, which carry bytes as they are and numbers without text.
namespace sekali::postgres {

/// The types that sekali's statements use; the values are the server's fixed ids (pg_type.dat).
enum class PgType : Oid {
    kBool = 16,
    kBytea = 17,
    kInt8 = 20,
    kInt2 = 21,
    kText = 25,
    kXid = 28,
    kFloat8 = 701,
};
[[nodiscard]] std::string_view name_of(PgType type);
[[nodiscard]] PgType array_of(PgType element);

/// The number of a transaction; as `xmin` of a row the version of that row. 0 is none.
enum class Xid : std::uint32_t {};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// How a C++ type is stored. Text that nobody has checked is bytes: a column of text refuses NUL
/// and what is no UTF-8.
template <typename T>
[[nodiscard]] constexpr PgType type_for() {
    if constexpr (kIsOptional<T>) {
        return type_for<typename T::value_type>();
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
        return PgType::kText;
    } else if constexpr (std::is_same_v<T, bool>) {
        return PgType::kBool;
    } else if constexpr (std::is_same_v<T, Xid>) {
        return PgType::kXid;
    } else if constexpr (std::is_enum_v<T>) {
        return PgType::kInt2;
    } else if constexpr (std::is_floating_point_v<T>) {
        return PgType::kFloat8;
    } else {
        return PgType::kInt8;
    }
}

/// Appends values, each behind its length, as they stand in arrays.
class Encoder {
 public:
    template <typename T>
    void put(const T& value) {
        if constexpr (kIsOptional<T>) {
            value ? put(*value) : put_null();
        } else if constexpr (std::convertible_to<const T&, std::string_view>) {
            put_bytes(value);
        } else if constexpr (std::is_same_v<T, bool>) {
            put_number(static_cast<std::uint64_t>(value), 1);
        } else if constexpr (std::is_same_v<T, Xid>) {
            put_number(static_cast<std::uint64_t>(value), 4);
        } else if constexpr (std::is_enum_v<T>) {
            put_number(static_cast<std::uint64_t>(value), 2);
        } else if constexpr (std::is_floating_point_v<T>) {
            put_float(value);
        } else if constexpr (std::is_same_v<T, engine::StoreTime>) {
            put(value.time_since_epoch());
        } else if constexpr (std::is_same_v<T, engine::Millis>) {
            put(value.count());
        } else {
            static_assert(std::is_integral_v<T>);
            put_number(static_cast<std::uint64_t>(value), 8);
        }
    }
    void put_null();
    void put_bytes(std::string_view bytes);
    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
    void put_number(std::uint64_t value, int width);
    void put_float(double value);

    std::string bytes_;
};

/// One column of many rows, to be sent as an array and unnested by the server.
class ArrayEncoder {
 public:
    explicit ArrayEncoder(PgType element) : element_(element) {}
    [[nodiscard]] Encoder& next() {
        ++count_;
        return values_;
    }
    [[nodiscard]] PgType element() const { return element_; }
    [[nodiscard]] std::string finish() const;

 private:
    PgType element_;
    std::uint32_t count_ = 0;
    Encoder values_;
};

/// The arguments of one statement.
class Parameters {
 public:
    template <typename T>
    Parameters& add(const T& value) {
        if constexpr (kIsOptional<T>) {
            if (!value) return add_value(std::nullopt, type_for<T>());
            return add(*value);
        } else {
            Encoder encoder;
            encoder.put(value);
            constexpr std::size_t kLengthBytes = 4;
            return add_value(encoder.take().substr(kLengthBytes), type_for<T>());
        }
    }
    Parameters& add_bytea(std::string_view bytes) {
        return add_value(std::string(bytes), PgType::kBytea);
    }
    Parameters& add_array(const ArrayEncoder& array) {
        return add_value(array.finish(), array_of(array.element()));
    }
    template <typename T>
    Parameters& add_list(const std::vector<T>& values) {
        ArrayEncoder array(type_for<T>());
        for (const T& value : values)
            array.next().put(value);
        return add_array(array);
    }
    Parameters& add_value(std::optional<std::string> bytes, PgType type) {
        values_.push_back(std::move(bytes));
        types_.push_back(static_cast<Oid>(type));
        return *this;
    }

    [[nodiscard]] const std::vector<Oid>& types() const { return types_; }
    [[nodiscard]] const std::vector<std::optional<std::string>>& values() const { return values_; }

 private:
    std::vector<std::optional<std::string>> values_;
    std::vector<Oid> types_;
};

template <typename... Values>
[[nodiscard]] Parameters parameters(const Values&... values) {
    Parameters made;
    (made.add(values), ...);
    return made;
}

/// Parameters in the form in which libpq takes them. Must not outlive them.
class Arguments {
 public:
    explicit Arguments(const Parameters& given) : types_(given.types()) {
        for (std::size_t i = 0; i < given.values().size(); ++i) {
            const auto& value = given.values()[i];
            values_.push_back(value ? value->c_str() : nullptr);
            lengths_.push_back(value ? static_cast<int>(value->size()) : 0);
            // What the server is to give a type to is sent as text.
            formats_.push_back(types_[i] == 0 ? 0 : 1);
        }
    }
    [[nodiscard]] int count() const { return static_cast<int>(values_.size()); }
    [[nodiscard]] const Oid* types() const { return types_.data(); }
    [[nodiscard]] const char* const* values() const { return values_.data(); }
    [[nodiscard]] const int* lengths() const { return lengths_.data(); }
    [[nodiscard]] const int* formats() const { return formats_.data(); }

 private:
    const std::vector<Oid>& types_;
    std::vector<const char*> values_;
    std::vector<int> lengths_;
    std::vector<int> formats_;
};

/// Reads the columns of one row of a binary result, one after the other.
class Cursor {
 public:
    Cursor(const PGresult* result, int row) : result_(result), row_(row) {}

    template <typename T>
    [[nodiscard]] T take() {
        if constexpr (kIsOptional<T>) {
            if (is_null()) {
                ++column_;
                return std::nullopt;
            }
            return take<typename T::value_type>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            return std::string(take_bytes());
        } else if constexpr (std::is_same_v<T, bool>) {
            return take_number() != 0;
        } else if constexpr (std::is_floating_point_v<T>) {
            return take_float();
        } else if constexpr (std::is_same_v<T, engine::StoreTime>) {
            return T{engine::Millis{take_number()}};
        } else {
            return static_cast<T>(take_number());
        }
    }
    template <typename T>
    void take_into(T& value) {
        value = take<T>();
    }
    [[nodiscard]] bool is_null() const { return PQgetisnull(result_, row_, column_) != 0; }
    void skip() { ++column_; }

 private:
    [[nodiscard]] std::string_view take_bytes();
    [[nodiscard]] std::int64_t take_number();
    [[nodiscard]] double take_float();

    const PGresult* result_;
    int row_;
    int column_ = 0;
};

}  // namespace sekali::postgres
