#include "sekali/codec.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <system_error>

#include "base/errors.hpp"
#include "base/json_check.hpp"
#include "base/json_scan.hpp"
#include "base/json_slice.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace sekali::internal {
namespace {

std::string describe(const JsonPlace* place) {
    if (place == nullptr) return "";
    std::string path = describe(place->parent);
    if (place->index) return path + "[" + std::to_string(*place->index) + "]";
    if (!path.empty()) path += '.';
    return path.append(place->field);
}

[[noreturn]] void refuse(const JsonPlace* place, std::string_view what) {
    std::string message =
        place == nullptr ? "the JSON value" : "field " + base::quoted(describe(place));
    message.append(" ").append(what);
    throw Failure(base::usage_error(std::move(message)));
}

std::string describe_type(std::string_view json) {
    switch (json.front()) {
        case '{':
            return "an object";
        case '[':
            return "an array";
        case '"':
            return "text";
        case 't':
        case 'f':
            return "a boolean";
        case 'n':
            return "null";
        default:
            return "the number " + base::cut_text(std::string(json), 32);
    }
}

[[noreturn]] void refuse_type(JsonValue value, std::string_view wanted) {
    refuse(value.place, "must be " + std::string(wanted) + ", not " + describe_type(value.text));
}

template <typename Number>
Number parse_number(JsonValue value, std::string_view wanted) {
    Number number{};
    const char* const end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, number);
    if (error != std::errc{} || stop != end) refuse_type(value, wanted);
    return number;
}

template <typename Number>
void append_number(std::string& out, Number number) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kSpace);
    return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

void write_text(std::string& out, std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const base::Utf8Step step = base::decode_utf8(text, i);
        if (!step.valid) {
            throw Failure(
                base::usage_error("text that is not UTF-8 has no JSON form: " + base::quoted(text),
                                  "encode bytes as base64 or hexadecimal digits first"));
        }
        i += step.length;
    }
    base::JsonWriter(out).value(text);
}

void write_integer(std::string& out, std::int64_t number) {
    append_number(out, number);
}
void write_unsigned(std::string& out, std::uint64_t number) {
    append_number(out, number);
}

void write_number(std::string& out, double number) {
    if (!std::isfinite(number)) {
        throw Failure(base::usage_error("a number that is not finite has no JSON form"));
    }
    append_number(out, number);
}

void write_custom(std::string& out, const void* value, std::string (*encode)(const void*)) {
    std::string json;
    try {
        json = encode(value);
    } catch (const Failure&) {
        throw;
    } catch (const std::exception& error) {
        throw Failure(base::usage_error(std::string("a value cannot be encoded: ") + error.what()));
    }
    base::check_json(json, json.size(), base::kMaxJsonDepth).value();
    out += trimmed(json);
}

bool is_null(JsonValue value) {
    return value.text == "null";
}

std::string read_text(JsonValue value) {
    if (value.text.front() != '"') refuse_type(value, "text");
    return base::decode_json_string(value.text).value();
}

bool read_boolean(JsonValue value) {
    if (value.text == "true") return true;
    if (value.text == "false") return false;
    refuse_type(value, "a boolean");
}

std::int64_t read_integer(JsonValue value, std::int64_t min, std::int64_t max) {
    const std::string wanted =
        "an integer from " + std::to_string(min) + " to " + std::to_string(max);
    const auto number = parse_number<std::int64_t>(value, wanted);
    if (number < min || number > max) refuse_type(value, wanted);
    return number;
}

std::uint64_t read_unsigned(JsonValue value, std::uint64_t max) {
    const std::string wanted = "an integer from 0 to " + std::to_string(max);
    const auto number = parse_number<std::uint64_t>(value, wanted);
    if (number > max) refuse_type(value, wanted);
    return number;
}

double read_number(JsonValue value) {
    return parse_number<double>(value, "a number");
}

void read_array(JsonValue value, void* context, void (*on_element)(void*, JsonValue)) {
    if (value.text.front() != '[') refuse_type(value, "an array");
    base::JsonScanner scanner(value.text, base::kMaxJsonDepth);
    JsonPlace place{.parent = value.place, .index = 0};
    const bool sound = scanner.array([&](std::string_view slice) {
        on_element(context, {.text = slice, .place = &place});
        ++*place.index;
    });
    if (!sound) throw Failure(scanner.error());
}

void read_fields(JsonValue value, void* context,
                 void (*on_field)(void*, std::string&& name, JsonValue)) {
    if (value.text.front() != '{') refuse_type(value, "an object");
    base::JsonScanner scanner(value.text, base::kMaxJsonDepth);
    const bool sound = scanner.object([&](std::string_view raw_name, std::string_view slice) {
        const std::string_view with_quotes(raw_name.data() - 1, raw_name.size() + 2);
        std::string name = base::decode_json_string(with_quotes).value();
        const std::string shown = name;
        const JsonPlace place{.parent = value.place, .field = shown};
        on_field(context, std::move(name), {.text = slice, .place = &place});
    });
    if (!sound) throw Failure(scanner.error());
}

void read_custom(JsonValue value, void* context, void (*decode)(void*, std::string_view)) {
    try {
        decode(context, value.text);
    } catch (const std::exception& error) {
        refuse(value.place, std::string("cannot be decoded: ") + error.what());
    }
}

void write_described(std::string& out, std::span<const ErasedField> fields, const void* object) {
    out += '{';
    for (const ErasedField& field : fields) {
        if (&field != fields.data()) out += ',';
        write_text(out, field.name);
        out += ':';
        field.write(out, object);
    }
    out += '}';
}

void read_described(JsonValue value, std::span<const ErasedField> fields, void* object) {
    struct Reading {
        std::span<const ErasedField> fields;
        void* object;
        std::vector<bool> seen;
    } reading{fields, object, std::vector<bool>(fields.size())};
    read_fields(value, &reading, [](void* context, std::string&& name, JsonValue member) {
        auto& to = *static_cast<Reading*>(context);
        for (std::size_t i = 0; i < to.fields.size(); ++i) {
            if (to.fields[i].name != name) continue;
            to.fields[i].read(to.object, member);
            to.seen[i] = true;
            return;
        }
        refuse(member.place, "is unknown");
    });
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (reading.seen[i] || !fields[i].required) continue;
        const JsonPlace place{.parent = value.place, .field = fields[i].name};
        refuse(&place, "is missing");
    }
}

void read_document(std::string_view json, void* out, void (*read)(void* out, JsonValue value)) {
    base::check_json(json, json.size(), base::kMaxJsonDepth).value();
    read(out, {.text = trimmed(json)});
}

}  // namespace sekali::internal
