// Slicing a line of a bulk file, against an independent parser.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/json_check.hpp"
#include "base/json_slice.hpp"
#include "base/limits.hpp"
#include "fuzz/fuzz_input.hpp"

namespace {

using namespace sekali::base;

void check_field(std::string_view line, const JsonField& field, const nlohmann::json& value) {
    SEKALI_ASSERT(field.slice.data() >= line.data() &&
                      field.slice.data() + field.slice.size() <= line.data() + line.size(),
                  "a slice lies in its line");
    SEKALI_ASSERT(check_json(field.slice, field.slice.size(), kMaxJsonDepth).ok(),
                  "a slice is a payload");
    const auto text = decode_json_string(field.slice);
    SEKALI_ASSERT(text.ok() == (field.slice.front() == '"'), "exactly strings decode");
    if (value.is_discarded()) return;
    SEKALI_ASSERT(value.contains(field.name), "the name is decoded");
    if (text.ok()) SEKALI_ASSERT(value[field.name] == *text, "the string is decoded");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view line = sekali::testing::fuzz_text(data, size);
    (void)decode_json_string(line);
    const auto fields = read_object(line);
    if (!fields.ok()) {
        const bool object = line.find_first_not_of(" \t\r\n") == line.find('{');
        SEKALI_ASSERT(!object || !check_json(line, size, kMaxJsonDepth).ok(),
                      "a checked object can be sliced");
        return 0;
    }
    // A number beyond a double stops the other parser; then only what needs no oracle is checked.
    const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
    SEKALI_ASSERT(value.is_discarded() || value.size() == fields->size(), "all fields are there");
    for (const JsonField& field : *fields)
        check_field(line, field, value);
    return 0;
}
