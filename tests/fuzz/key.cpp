// Keys, names, counts, and the texts that are made of arbitrary bytes.

#include "sekali/key.hpp"

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/fingerprint.hpp"
#include "base/ids.hpp"
#include "base/json_check.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "fuzz/fuzz_input.hpp"

namespace {

using namespace sekali::base;

bool is_plain(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        const Utf8Step step = decode_utf8(bytes, i);
        if (!step.valid || step.code_point < 0x20) return false;
        i += step.length;
    }
    return true;
}

void check_refusals(std::string_view bytes) {
    const auto key = check_key("key", bytes);
    SEKALI_ASSERT(!key.ok() || (is_plain(bytes) && bytes.size() <= kMaxKeyBytes), "keys are plain");
    const auto name = check_name("kind", bytes);
    SEKALI_ASSERT(!name.ok() || check_key("key", bytes).ok(), "a name could be a key");
    for (const auto* result : {&key, &name}) {
        if (!result->ok()) SEKALI_ASSERT(is_plain(result->error().message), "errors are plain");
    }
    const auto count = parse_count("count", bytes, 1, 1000);
    SEKALI_ASSERT(!count.ok() || (*count >= 1 && *count <= 1000), "counts are in range");
    if (!count.ok()) SEKALI_ASSERT(is_plain(count.error().message), "errors are plain");
    (void)is_uuid(bytes);
    (void)check_fingerprint_rule(bytes);
}

void check_texts(std::string_view bytes) {
    SEKALI_ASSERT(is_plain(printable(bytes)), "printable text has no control character");
    for (const std::size_t max : {std::size_t{0}, std::size_t{25}, std::size_t{60}}) {
        const std::string stored = make_storable(std::string(bytes), max);
        SEKALI_ASSERT(stored.size() <= max, "a stored text fits");
        SEKALI_ASSERT(make_storable(stored, max) == stored, "a stored text is storable");
    }
    std::string line;
    JsonWriter(line).value(bytes);
    SEKALI_ASSERT(check_json(line, line.size(), 0).ok(), "any bytes give valid JSON");
}

void check_parts(std::string_view bytes) {
    const std::string_view head = bytes.substr(0, bytes.size() / 2);
    const std::string_view tail = bytes.substr(bytes.size() / 2);
    const std::string joined = sekali::key(head, tail);
    SEKALI_ASSERT(joined != sekali::key(bytes), "two parts are not one");
    SEKALI_ASSERT(joined.find(':') == joined.rfind(':'), "one separator between two parts");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes = sekali::testing::fuzz_text(data, size);
    check_refusals(bytes);
    check_texts(bytes);
    check_parts(bytes);
    return 0;
}
