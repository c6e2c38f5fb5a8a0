#include "client/step_key.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "base/sha256.hpp"
#include "sekali/key.hpp"

namespace sekali::client {
namespace {

/// Longest prefix that is passed on readably: the common limit of outside keys is 255 bytes.
constexpr std::size_t kReadableLimit = 160;

}  // namespace

std::string header_safe(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > ' ' && byte < 0x7F) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", byte);
        }
    }
    return out;
}

std::string step_key_prefix(const engine::RecordKey& record) {
    std::string readable = header_safe(sekali::key(record.ns, record.kind, record.key));
    if (readable.size() <= kReadableLimit) return readable + ":";
    // No namespace begins with `~`, so that the two forms never meet.
    return "~" + base::sha256_hex(readable) + ":";
}

std::string step_key(const engine::RecordKey& record, std::string_view step) {
    return step_key_prefix(record) + header_safe(sekali::key(step));
}

}  // namespace sekali::client
