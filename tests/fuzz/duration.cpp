// Durations and times, read and written back.

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/durations.hpp"
#include "fuzz/fuzz_input.hpp"

namespace {

using namespace sekali::base;

void check_duration(std::string_view text) {
    const auto positive = parse_duration("d", text, DurationRule::kPositive);
    const auto any = parse_duration("d", text, DurationRule::kZeroAllowed);
    SEKALI_ASSERT(!positive.ok() || any.ok(), "the looser rule accepts what the stricter does");
    if (!any.ok()) return;
    SEKALI_ASSERT(any->count() >= 0 && *any <= kMaxDuration, "durations are in range");
    SEKALI_ASSERT(positive.ok() == (any->count() > 0), "only zero parts the rules");
    const std::string shown = format_duration(*any);
    const auto again = parse_duration("d", shown, DurationRule::kZeroAllowed);
    SEKALI_ASSERT(again.ok() && *again == *any, "a duration comes back");
}

void check_instant(std::string_view text) {
    const auto instant = parse_instant("t", text);
    if (!instant.ok()) return;
    const std::string shown = format_instant(*instant);
    const auto again = parse_instant("t", shown);
    SEKALI_ASSERT(again.ok(), "a time that is shown can be read");
    SEKALI_ASSERT(format_instant(*again) == shown, "a time comes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = sekali::testing::fuzz_text(data, size);
    check_duration(text);
    check_instant(text);
    return 0;
}
