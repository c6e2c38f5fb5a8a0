#include "backends/postgres/wire.hpp"

#include <bit>

namespace sekali::postgres {
namespace {

void append_big_endian(std::string& bytes, std::uint64_t value, int width) {
    for (int shift = (width - 1) * 8; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(value >> shift & 0xFFU));
}

std::uint64_t read_big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char byte : bytes)
        value = value << 8U | static_cast<unsigned char>(byte);
    return value;
}

}  // namespace

std::string_view name_of(PgType type) {
    switch (type) {
        case PgType::kBool:
            return "boolean";
        case PgType::kBytea:
            return "bytea";
        case PgType::kInt8:
            return "bigint";
        case PgType::kInt2:
            return "smallint";
        case PgType::kText:
            return "text";
        case PgType::kXid:
            return "xid";
        case PgType::kFloat8:
            return "float8";
    }
    return "text";
}

PgType array_of(PgType element) {
    switch (element) {
        case PgType::kBool:
            return PgType{1000};
        case PgType::kBytea:
            return PgType{1001};
        case PgType::kInt8:
            return PgType{1016};
        case PgType::kInt2:
            return PgType{1005};
        case PgType::kText:
            return PgType{1009};
        case PgType::kXid:
            return PgType{1011};
        case PgType::kFloat8:
            return PgType{1022};
    }
    return PgType{1009};
}

void Encoder::put_null() {
    append_big_endian(bytes_, 0xFFFFFFFFU, 4);
}

void Encoder::put_bytes(std::string_view bytes) {
    append_big_endian(bytes_, bytes.size(), 4);
    bytes_ += bytes;
}

void Encoder::put_number(std::uint64_t value, int width) {
    append_big_endian(bytes_, static_cast<std::uint64_t>(width), 4);
    append_big_endian(bytes_, value, width);
}

void Encoder::put_float(double value) {
    put_number(std::bit_cast<std::uint64_t>(value), 8);
}

/// The layout of array_send: dimensions, whether nulls may occur, element type, then length and
/// lower bound of the one dimension, then the values.
std::string ArrayEncoder::finish() const {
    std::string bytes;
    bytes.reserve(values_.bytes().size() + 20);
    append_big_endian(bytes, count_ == 0 ? 0 : 1, 4);
    append_big_endian(bytes, 1, 4);
    append_big_endian(bytes, static_cast<std::uint64_t>(element_), 4);
    if (count_ == 0) return bytes;
    append_big_endian(bytes, count_, 4);
    append_big_endian(bytes, 1, 4);
    return bytes += values_.bytes();
}

std::string_view Cursor::take_bytes() {
    const int column = column_++;
    return {PQgetvalue(result_, row_, column),
            static_cast<std::size_t>(PQgetlength(result_, row_, column))};
}

std::int64_t Cursor::take_number() {
    const std::string_view bytes = take_bytes();
    const std::uint64_t value = read_big_endian(bytes);
    switch (bytes.size()) {
        case 0:
        case 1:
        case 8:
            return static_cast<std::int64_t>(value);
        case 2:
            return static_cast<std::int16_t>(value);
        default:
            return static_cast<std::int32_t>(value);
    }
}

double Cursor::take_float() {
    return std::bit_cast<double>(read_big_endian(take_bytes()));
}

}  // namespace sekali::postgres
