#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::base {

/// A field of an object: its decoded name, and exactly the bytes of its value.
struct JsonField {
    std::string name;
    std::string_view slice;  ///< Points into the text that was read.
};

/// The top-level fields, in order, of a text that must be one JSON object. The whole text is
/// checked as by `check_json`, with one more level of nesting, so that a value may be as deep as a
/// payload. The caller bounds its size.
[[nodiscard]] Result<std::vector<JsonField>> read_object(std::string_view text);

/// The decoded text of a slice that must be a JSON string.
[[nodiscard]] Result<std::string> decode_json_string(std::string_view slice);

/// Exactly the bytes of the value at a JSON pointer (RFC 6901) of a text that `check_json`
/// accepted; nothing when there is none, or the pointer is malformed.
[[nodiscard]] std::optional<std::string_view> find_pointer(std::string_view json,
                                                           std::string_view pointer);

/// Whether `pointer` is empty, or begins with `/` and has `~` only in `~0` and `~1`.
[[nodiscard]] bool is_json_pointer(std::string_view pointer);

}  // namespace sekali::base
