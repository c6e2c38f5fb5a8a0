// The check of payloads against an independent parser, and what relies on a checked payload.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/fingerprint.hpp"
#include "base/json_check.hpp"
#include "base/json_slice.hpp"
#include "base/limits.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/json_oracle.hpp"

namespace {

using sekali::testing::OracleVerdict;

void check_against_oracle(std::string_view text, bool accepted) {
    const OracleVerdict verdict =
        sekali::testing::ask_json_oracle(text, sekali::base::kMaxJsonDepth);
    if (verdict == OracleVerdict::kNoOpinion) return;
    SEKALI_ASSERT(accepted == (verdict == OracleVerdict::kAccepted), "two parsers disagree");
}

void check_pointers(std::string_view text) {
    const auto whole = sekali::base::find_pointer(text, "");
    SEKALI_ASSERT(whole.has_value(), "a checked text has a value");
    const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
    if (!value.is_structured()) return;
    const nlohmann::json flat = value.flatten();
    for (const auto& [pointer, leaf] : flat.items()) {
        const auto slice = sekali::base::find_pointer(text, pointer);
        SEKALI_ASSERT(slice.has_value(), "every pointer finds its value");
        const nlohmann::json found = nlohmann::json::parse(*slice, nullptr, false);
        SEKALI_ASSERT(found == value.at(nlohmann::json::json_pointer(pointer)), "the same value");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = sekali::testing::fuzz_text(data, size);
    const bool accepted = sekali::base::check_json(text, size, sekali::base::kMaxJsonDepth).ok();
    check_against_oracle(text, accepted);
    const auto print = sekali::base::fingerprint(text, "fields:/a,/b/0");
    SEKALI_ASSERT(print.ok() == accepted, "a fingerprint exists exactly for checked texts");
    // Cost is quadratic in the fields here, so only small texts are walked.
    constexpr std::size_t kSmall = 4096;
    if (accepted && size <= kSmall) check_pointers(text);
    if (!accepted) (void)sekali::base::find_pointer(text, "/a/0");
    return 0;
}
