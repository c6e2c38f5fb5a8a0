// Splitting commands: what is accepted can be quoted and split again.

#include "base/shell_words.hpp"

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "fuzz/fuzz_input.hpp"

namespace {

std::string single_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            out += c;
        }
    }
    return out + "'";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view command = sekali::testing::fuzz_text(data, size);
    const auto words = sekali::base::split_command(command);
    if (words.ok()) {
        std::string quoted;
        for (const std::string& word : *words)
            quoted += single_quoted(word) + " ";
        const auto again = sekali::base::split_command(quoted);
        SEKALI_ASSERT(again.ok() && *again == *words, "quoted words come back");
        return 0;
    }
    if (command.find('\0') != std::string_view::npos) return 0;
    const auto whole = sekali::base::split_command("sh -c " + single_quoted(command));
    SEKALI_ASSERT(whole.ok() && whole->size() == 3 && whole->back() == command,
                  "any command without NUL can be handed to sh");
    return 0;
}
