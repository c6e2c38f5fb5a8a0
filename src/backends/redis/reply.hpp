#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sekali::redis {

/// One reply of RESP 2. A plain value.
struct Reply {
    enum class Type : std::uint8_t { kNil, kInteger, kString, kStatus, kError, kArray };

    Type type = Type::kNil;
    std::int64_t integer = 0;
    std::string text{};  ///< Of a string, status or error.
    std::vector<Reply> items{};

    bool operator==(const Reply&) const = default;
    [[nodiscard]] bool is(Type wanted) const { return type == wanted; }
    [[nodiscard]] bool is_error() const { return type == Type::kError; }
};

}  // namespace sekali::redis
