#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sekali/result.hpp"

namespace sekali {

/// Specialise it to give a type its own JSON form, also as a member of described structs:
///
///     template <> struct sekali::Codec<Money> {
///         static std::string encode(const Money& money);        // one JSON value
///         static Money decode(std::string_view json);           // throws on what it cannot read
///     };
///
/// What `decode` throws becomes a `kUsage` error with the same text.
template <typename T>
struct Codec {};

/// One member of a described struct; made by `field`.
template <typename Owner, typename Member>
struct Field {
    std::string_view name;
    Member Owner::*member;
};

/// The described members of a struct, in the order of their JSON; made by `fields`.
template <typename Owner, typename... Members>
struct Fields {
    std::tuple<Field<Owner, Members>...> all;
};

/// Names a member in JSON. The name must outlive the program: a literal.
template <typename Owner, typename Member>
constexpr Field<Owner, Member> field(std::string_view name, Member Owner::*member) {
    return {name, member};
}

/// Describes a struct without members.
template <typename Owner>
constexpr Fields<Owner> fields() {
    return {};
}

/// Describes a struct, as its `static constexpr auto kFields`. A name that stands twice does not
/// compile.
template <typename Owner, typename... Members>
requires(sizeof...(Members) >
         0) constexpr Fields<Owner, Members...> fields(Field<Owner, Members>... described) {
    const std::array<std::string_view, sizeof...(Members)> names{described.name...};
    for (std::size_t i = 0; i < names.size(); ++i) {
        for (std::size_t j = i + 1; j < names.size(); ++j) {
            if (names[i] == names[j]) throw "two fields of one struct have the same name";
        }
    }
    return {std::tuple{described...}};
}

namespace internal {

template <typename T>
concept HasCodec = requires(const T& value, std::string_view json) {
    { Codec<T>::encode(value) } -> std::convertible_to<std::string>;
    { Codec<T>::decode(json) } -> std::convertible_to<T>;
};

template <typename T>
concept Described = requires {
    T::kFields.all;
};

template <typename T>
concept JsonInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                      !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                      !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <typename T>
struct IsJsonOptional : std::false_type {};
template <typename T>
struct IsJsonOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsJsonVector : std::false_type {};
template <typename T, typename A>
struct IsJsonVector<std::vector<T, A>> : std::true_type {};
template <typename T>
struct IsJsonMap : std::false_type {};
template <typename T, typename C, typename A>
struct IsJsonMap<std::map<std::string, T, C, A>> : std::true_type {};

/// Where a value stands in its text, for error messages; a chain on the stack.
struct JsonPlace {
    const JsonPlace* parent = nullptr;
    std::string_view field{};
    std::optional<std::size_t> index{};  ///< Of an array's element.
};

/// The exact bytes of one value inside a text, and where it stands. `text` has been checked.
struct JsonValue {
    std::string_view text;
    const JsonPlace* place = nullptr;
};

// Appending and reading of single values. All throw `Failure` (`kUsage`) that names the place.
void write_text(std::string& out, std::string_view text);
void write_integer(std::string& out, std::int64_t number);
void write_unsigned(std::string& out, std::uint64_t number);
void write_number(std::string& out, double number);
/// Appends what a user's codec makes, after a check that it is one JSON value, and turns what it
/// throws into an error.
void write_custom(std::string& out, const void* value, std::string (*encode)(const void* value));

[[nodiscard]] bool is_null(JsonValue value);
[[nodiscard]] std::string read_text(JsonValue value);
[[nodiscard]] bool read_boolean(JsonValue value);
[[nodiscard]] std::int64_t read_integer(JsonValue value, std::int64_t min, std::int64_t max);
[[nodiscard]] std::uint64_t read_unsigned(JsonValue value, std::uint64_t max);
[[nodiscard]] double read_number(JsonValue value);
/// Calls `on_element(context, element)` for each.
void read_array(JsonValue value, void* context, void (*on_element)(void*, JsonValue));
/// Calls `on_field(context, name, field)` for each; repeated names are refused.
void read_fields(JsonValue value, void* context,
                 void (*on_field)(void*, std::string&& name, JsonValue));
/// Runs a user's decoder and turns what it throws into an error that names the place.
void read_custom(JsonValue value, void* context, void (*decode)(void*, std::string_view));

/// One described member with its types erased.
struct ErasedField {
    std::string_view name;
    bool required = true;
    void (*write)(std::string& out, const void* object) = nullptr;
    void (*read)(void* object, JsonValue value) = nullptr;
};
void write_described(std::string& out, std::span<const ErasedField> fields, const void* object);
void read_described(JsonValue value, std::span<const ErasedField> fields, void* object);

/// Checks a whole text and reads it by `read`; the error of either.
void read_document(std::string_view json, void* out, void (*read)(void* out, JsonValue value));

template <typename T>
void write_json(std::string& out, const T& value);
template <typename T>
T read_json(JsonValue value);

template <typename T, std::size_t I>
ErasedField erase_field() {
    using Member =
        std::remove_cvref_t<decltype(std::declval<T&>().*(std::get<I>(T::kFields.all).member))>;
    return {.name = std::get<I>(T::kFields.all).name,
            .required = !IsJsonOptional<Member>::value,
            .write =
                [](std::string& out, const void* object) {
                    write_json(out,
                               static_cast<const T*>(object)->*std::get<I>(T::kFields.all).member);
                },
            .read =
                [](void* object, JsonValue value) {
                    static_cast<T*>(object)->*std::get<I>(T::kFields.all).member =
                        read_json<Member>(value);
                }};
}

template <Described T>
std::span<const ErasedField> erased_fields() {
    static const auto kErased = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<ErasedField, sizeof...(I)>{erase_field<T, I>()...};
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(T::kFields.all)>>{});
    return kErased;
}

template <typename Map>
void write_map(std::string& out, const Map& map) {
    char separator = '{';
    for (const auto& [name, element] : map) {
        out += separator;
        separator = ',';
        write_text(out, name);
        out += ':';
        write_json(out, element);
    }
    out += map.empty() ? "{}" : "}";
}

template <typename Vector>
void write_vector(std::string& out, const Vector& vector) {
    char separator = '[';
    for (const auto& element : vector) {
        out += separator;
        separator = ',';
        write_json<typename Vector::value_type>(out, element);
    }
    out += vector.empty() ? "[]" : "]";
}

template <typename T>
void write_json(std::string& out, const T& value) {
    if constexpr (HasCodec<T>) {
        write_custom(out, &value, [](const void* erased) -> std::string {
            return Codec<T>::encode(*static_cast<const T*>(erased));
        });
    } else if constexpr (Described<T>) {
        write_described(out, erased_fields<T>(), &value);
    } else if constexpr (std::same_as<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (JsonInteger<T> && std::is_signed_v<T>) {
        write_integer(out, value);
    } else if constexpr (JsonInteger<T>) {
        write_unsigned(out, value);
    } else if constexpr (std::floating_point<T>) {
        write_number(out, static_cast<double>(value));
    } else if constexpr (IsJsonOptional<T>::value) {
        if (value) {
            write_json(out, *value);
        } else {
            out += "null";
        }
    } else if constexpr (IsJsonVector<T>::value) {
        write_vector(out, value);
    } else if constexpr (IsJsonMap<T>::value) {
        write_map(out, value);
    } else {
        static_assert(std::convertible_to<const T&, std::string_view>,
                      "sekali: this type has no JSON form; describe it by kFields = "
                      "sekali::fields(…), or specialise sekali::Codec for it");
        write_text(out, value);
    }
}

template <typename Vector>
Vector read_vector(JsonValue value) {
    Vector vector;
    read_array(value, &vector, [](void* out, JsonValue element) {
        static_cast<Vector*>(out)->push_back(read_json<typename Vector::value_type>(element));
    });
    return vector;
}

template <typename Map>
Map read_map(JsonValue value) {
    Map map;
    read_fields(value, &map, [](void* out, std::string&& name, JsonValue field_value) {
        static_cast<Map*>(out)->emplace(std::move(name),
                                        read_json<typename Map::mapped_type>(field_value));
    });
    return map;
}

template <HasCodec T>
T read_by_codec(JsonValue value) {
    std::optional<T> decoded;
    read_custom(value, &decoded, [](void* out, std::string_view json) {
        *static_cast<std::optional<T>*>(out) = Codec<T>::decode(json);
    });
    return std::move(*decoded);
}

template <typename T>
T read_json(JsonValue value) {
    if constexpr (HasCodec<T>) {
        return read_by_codec<T>(value);
    } else if constexpr (Described<T>) {
        T object{};
        read_described(value, erased_fields<T>(), &object);
        return object;
    } else if constexpr (std::same_as<T, bool>) {
        return read_boolean(value);
    } else if constexpr (JsonInteger<T> && std::is_signed_v<T>) {
        return static_cast<T>(
            read_integer(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else if constexpr (JsonInteger<T>) {
        return static_cast<T>(read_unsigned(value, std::numeric_limits<T>::max()));
    } else if constexpr (std::floating_point<T>) {
        return static_cast<T>(read_number(value));
    } else if constexpr (IsJsonOptional<T>::value) {
        if (is_null(value)) return std::nullopt;
        return read_json<typename T::value_type>(value);
    } else if constexpr (IsJsonVector<T>::value) {
        return read_vector<T>(value);
    } else if constexpr (IsJsonMap<T>::value) {
        return read_map<T>(value);
    } else {
        static_assert(std::same_as<T, std::string>,
                      "sekali: this type cannot be read from JSON; describe it by kFields = "
                      "sekali::fields(…), or specialise sekali::Codec for it");
        return read_text(value);
    }
}

}  // namespace internal

/// The JSON of a value: described members in their declared order without white space, so that
/// equal values give equal bytes.
///
/// Strings, integers, bool, floating point numbers, `std::optional`, `std::vector`, maps keyed by
/// `std::string`, described structs and types with a `Codec`. Errors: `kUsage` for text that is not
/// UTF-8 and for numbers that are not finite. Thread-safe; does not block.
template <typename T>
[[nodiscard]] Result<std::string> encode(const T& value) {
    try {
        std::string out;
        internal::write_json(out, value);
        return out;
    } catch (const Failure& failure) {
        return failure.error();
    }
}

/// The value of a JSON text.
///
/// Unknown, repeated and missing fields are refused, and so is every value of another type; only an
/// `std::optional` member may be missing. Errors: `kUsage`, naming the place in the text.
/// Thread-safe; does not block.
template <typename T>
[[nodiscard]] Result<T> decode(std::string_view json) {
    try {
        std::optional<T> value;
        internal::read_document(json, &value, [](void* out, internal::JsonValue root) {
            *static_cast<std::optional<T>*>(out) = internal::read_json<T>(root);
        });
        return std::move(*value);
    } catch (const Failure& failure) {
        return failure.error();
    }
}

}  // namespace sekali
