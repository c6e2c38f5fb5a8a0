#pragma once

// Opt-in: the only header of sekali that includes another library's.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sekali/codec.hpp"

namespace sekali {

/// A `Codec` for types that nlohmann's `to_json` and `from_json` know:
///
///     template <> struct sekali::Codec<Money> : sekali::NlohmannCodec<Money> {};
///
/// What they throw becomes a `kUsage` error with the same text.
template <typename T>
struct NlohmannCodec {
    static std::string encode(const T& value) { return nlohmann::json(value).dump(); }
    static T decode(std::string_view json) { return nlohmann::json::parse(json).template get<T>(); }
};

/// JSON whose shape is not known. `nlohmann::json` sorts its fields, `ordered_json` keeps their
/// order.
template <>
struct Codec<nlohmann::json> : NlohmannCodec<nlohmann::json> {};
template <>
struct Codec<nlohmann::ordered_json> {
    static std::string encode(const nlohmann::ordered_json& value) { return value.dump(); }
    static nlohmann::ordered_json decode(std::string_view json) {
        return nlohmann::ordered_json::parse(json);
    }
};

}  // namespace sekali
