#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sekali::sqlite {

/// One step of the schema, from `version - 1` to `version`. Never edited once released.
struct Migration {
    std::int64_t version;
    std::string_view sql;
};

[[nodiscard]] std::span<const Migration> migrations();
[[nodiscard]] std::int64_t newest_schema();

}  // namespace sekali::sqlite
