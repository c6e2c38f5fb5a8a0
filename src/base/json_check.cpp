#include "base/json_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "base/json_scan.hpp"
#include "base/limits.hpp"

namespace sekali::base {

Result<void> check_json(std::string_view text, std::size_t max_bytes, std::size_t max_depth) {
    if (text.size() > max_bytes) {
        return usage_error(
            fmt::format("{} bytes of JSON (allowed: up to {})", text.size(), max_bytes));
    }
    if (text.starts_with("\xEF\xBB\xBF")) {
        return usage_error("not valid JSON at byte 0: it begins with a byte order mark",
                           "save it as UTF-8 without BOM");
    }
    JsonScanner scanner(text, std::min(max_depth, kMaxJsonDepth));
    if (!scanner.value() || !scanner.end()) return scanner.error();
    return {};
}

}  // namespace sekali::base
