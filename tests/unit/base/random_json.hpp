#pragma once

#include <gtest/gtest.h>
// RapidCheck's GoogleTest adapter needs gtest.h first.
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sekali::testing {

/// Valid UTF-8 rich in what JSON, terminals and shells treat specially.
inline rc::Gen<std::string> utf8_text() {
    const auto piece = rc::gen::element<std::string>(
        "a", "b", "0", " ", "\"", "\\", "/", "~", ":", "%", ",", "{", "}", "[", "]", "\n", "\t",
        "\x01", "\x7f", "é", "e\xCC\x81", "\xE2\x80\x8B", "\xE2\x80\xAE", "漢", "\xF0\x9F\x99\x82",
        "'", "$", "\\u0061");
    return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                        [](const auto& pieces) {
                            std::string text;
                            for (const std::string& one : pieces)
                                text += one;
                            return text;
                        });
}

inline nlohmann::json random_scalar() {
    switch (*rc::gen::inRange(0, 6)) {
        case 0:
            return nullptr;
        case 1:
            return *rc::gen::arbitrary<bool>();
        case 2:
            return *rc::gen::arbitrary<std::int64_t>();
        case 3:
            return *rc::gen::arbitrary<std::uint64_t>();
        case 4:
            return static_cast<double>(*rc::gen::arbitrary<std::int32_t>()) / 7;
        default:
            return *utf8_text();
    }
}

/// Must be called inside a property.
inline nlohmann::json random_json(int depth) {
    const int shape = depth == 0 ? 0 : *rc::gen::inRange(0, 3);
    if (shape == 0) return random_scalar();
    const int count = *rc::gen::inRange(0, 5);
    nlohmann::json value = shape == 1 ? nlohmann::json::array() : nlohmann::json::object();
    for (int i = 0; i < count; ++i) {
        if (shape == 1) {
            value.push_back(random_json(depth - 1));
        } else {
            value[*utf8_text()] = random_json(depth - 1);
        }
    }
    return value;
}

}  // namespace sekali::testing
