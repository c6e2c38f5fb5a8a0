// A configuration file: read, and judged by the tables of the commands.

#include "cli/config.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "cli/app.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "fuzz/fuzz_input.hpp"
#include "sekali/result.hpp"

namespace {

using namespace sekali::cli;

std::vector<const OptionSpec*> settings() {
    std::vector<const OptionSpec*> known;
    for (const OptionSpec& option : global_options())
        known.push_back(&option);
    for (const CommandSpec* command : sekali_app().commands) {
        for (const OptionSpec& option : command->options) {
            if (option.origin != Origin::kCall) known.push_back(&option);
        }
    }
    return known;
}

void check_kept(const ConfigFile::Section& section) {
    for (const auto& [key, values] : section)
        SEKALI_ASSERT(!key.empty(), "an accepted key is a flag's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<const OptionSpec*> kKnown = settings();
    const std::string_view text = sekali::testing::fuzz_text(data, size);
    try {
        const ConfigFile config = parse_config("sekali.toml", text);
        check_config(config, kKnown);
        check_kept(config.settings);
        for (const auto& [kind, section] : config.kinds)
            check_kept(section);
    } catch (const sekali::Failure& failure) {
        SEKALI_ASSERT(failure.error().code == sekali::ErrorCode::kUsage,
                      "a refusal is about usage");
        SEKALI_ASSERT(failure.error().message.find('\n') == std::string::npos, "it is one line");
    }
    return 0;
}
