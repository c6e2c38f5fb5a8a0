#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sekali::base {

/// Appends one JSON value to a string; commas are put by themselves.
///
/// The calls must nest as JSON does, which is not checked. Output is one line of valid UTF-8
/// whatever bytes come in: what is not UTF-8 becomes U+FFFD, and control characters are escaped.
class JsonWriter {
 public:
    explicit JsonWriter(std::string& out) : out_(out) {}

    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return close(']'); }

    /// Names the field whose value comes next.
    JsonWriter& field(std::string_view name);

    JsonWriter& value(std::string_view text);
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
    template <std::same_as<bool> T>
    JsonWriter& value(T flag) {
        return raw(flag ? "true" : "false");
    }
    template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>) JsonWriter& value(T number) {
        return raw(std::to_string(number));
    }
    JsonWriter& value(std::nullptr_t) { return raw("null"); }
    /// What is absent is `null`.
    template <typename T>
    JsonWriter& value(const std::optional<T>& maybe) {
        return maybe ? value(*maybe) : value(nullptr);
    }

    template <typename T>
    JsonWriter& field(std::string_view name, const T& field_value) {
        return field(name).value(field_value);
    }

    /// A value that is JSON already, byte for byte.
    JsonWriter& raw(std::string_view json);

 private:
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);
    void separate();
    void append_string(std::string_view text);

    std::string& out_;
    bool need_comma_ = false;
};

}  // namespace sekali::base
