#include "base/fingerprint.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "base/errors.hpp"
#include "base/json_check.hpp"
#include "base/json_slice.hpp"
#include "base/limits.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace sekali::base {
namespace {

constexpr std::string_view kFieldsPrefix = "fields:";
constexpr std::size_t kMaxPointers = 32;

std::vector<std::string_view> split_pointers(std::string_view list) {
    std::vector<std::string_view> pointers;
    for (;;) {
        const std::size_t comma = list.find(',');
        pointers.push_back(list.substr(0, comma));
        if (comma == std::string_view::npos) return pointers;
        list.remove_prefix(comma + 1);
    }
}

std::string without_space(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (in_string && c == '\\') {
            out += c;
            out += json[++i];
            continue;
        }
        if (c == '"') in_string = !in_string;
        const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if (in_string || !space) out += c;
    }
    return out;
}

/// Every part is preceded by its length, so that no two lists of values give the same bytes.
void add_field(Sha256& hash, std::string_view pointer, std::optional<std::string_view> slice) {
    hash.update(fmt::format("{}:", pointer.size()));
    hash.update(pointer);
    if (!slice) {
        hash.update("-");
        return;
    }
    const std::string value = without_space(*slice);
    hash.update(fmt::format("+{}:", value.size()));
    hash.update(value);
}

}  // namespace

Result<void> check_fingerprint_rule(std::string_view rule) {
    const auto refuse = [&](std::string_view what) {
        return usage_error(fmt::format("fingerprint rule {}: {}", quoted(rule), what),
                           "write none, or fields: with JSON pointers, as fields:/order,/amount");
    };
    if (rule.empty() || rule == "none") return {};
    if (!rule.starts_with(kFieldsPrefix)) return refuse("unknown");
    const auto pointers = split_pointers(rule.substr(kFieldsPrefix.size()));
    if (pointers.size() > kMaxPointers) {
        return refuse(fmt::format("more than {} fields", kMaxPointers));
    }
    for (const std::string_view pointer : pointers) {
        if (pointer.empty() || !is_json_pointer(pointer)) {
            return refuse(fmt::format("{} is not a JSON pointer", quoted(pointer)));
        }
    }
    return {};
}

Result<std::string> fingerprint(std::string_view payload, std::string_view rule) {
    if (rule.empty()) return sha256_hex(payload);
    if (auto known = check_fingerprint_rule(rule); !known) return known.error();
    if (rule == "none") return std::string();
    // A broken payload must not pass for one whose fields are all missing.
    if (auto valid = check_json(payload, payload.size(), kMaxJsonDepth); !valid) {
        return valid.error();
    }
    Sha256 hash;
    for (const std::string_view pointer : split_pointers(rule.substr(kFieldsPrefix.size()))) {
        add_field(hash, pointer, find_pointer(payload, pointer));
    }
    return hash.finish_hex();
}

}  // namespace sekali::base
