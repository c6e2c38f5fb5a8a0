#include "cli/parser.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "cli/nearest.hpp"

namespace sekali::cli {
namespace {

using Options = std::vector<const OptionSpec*>;

bool is_flag(std::string_view word) {
    // `-` is standard input, and `-5` is a number, which is a payload.
    return word.size() > 1 && word.front() == '-' &&
           std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

const OptionSpec* find_option(const Options& options, std::string_view word) {
    const auto found = std::find_if(options.begin(), options.end(), [&](const OptionSpec* option) {
        return word.starts_with("--") && word.substr(2) == option->name;
    });
    return found == options.end() ? nullptr : *found;
}

[[noreturn]] void refuse_unknown(std::string_view word, const Options& options) {
    std::vector<std::string_view> names{"help"};
    for (const OptionSpec* option : options)
        names.push_back(option->name);
    const std::string_view bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    const std::string hint = did_you_mean(bare, names, "--");
    throw Failure(base::usage_error(
        fmt::format("unknown flag {}", base::quoted(word)),
        hint.empty() ? "--help lists the flags; what begins with - and is none comes behind --"
                     : hint));
}

/// Sorts the words: those that are neither flags nor values are positionals. `--name=value` becomes
/// two words, because CLI11 takes the next word when the value behind `=` is empty.
std::vector<std::string> take_flags(const std::vector<std::string>& words, const Options& options,
                                    std::vector<std::string>& positionals) {
    std::vector<std::string> flags;
    const OptionSpec* open = nullptr;
    for (const std::string& word : words) {
        if (open != nullptr || !is_flag(word)) {
            (open != nullptr ? flags : positionals).push_back(word);
            open = nullptr;
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const OptionSpec* option = find_option(options, name);
        const bool help = name == "-h" || name == "--help";
        if (option == nullptr && !help) refuse_unknown(name, options);
        flags.push_back(name);
        const bool takes_value = !help && option->kind != ValueKind::kFlag;
        if (equals == std::string::npos) {
            open = takes_value ? option : nullptr;
        } else if (takes_value) {
            flags.push_back(word.substr(equals + 1));
        } else {
            throw Failure(base::usage_error(fmt::format("{} takes no value", name)));
        }
    }
    if (open != nullptr) {
        throw Failure(base::usage_error(fmt::format("--{} has no value", open->name),
                                        fmt::format("write --{} {}", open->name, open->value)));
    }
    return flags;
}

}  // namespace

ParsedLine parse_words(const std::vector<std::string>& words, const Options& options) {
    ParsedLine line;
    std::vector<std::string> flags = take_flags(words, options, line.positionals);
    CLI::App app;
    app.set_help_flag("");
    const CLI::Option* help = app.add_flag("-h,--help");
    std::vector<CLI::Option*> added;
    for (const OptionSpec* option : options) {
        const std::string name = fmt::format("--{}", option->name);
        if (option->kind == ValueKind::kFlag) {
            added.push_back(app.add_flag(name));
        } else {
            added.push_back(app.add_option(name, [](const CLI::results_t&) { return true; }));
            added.back()->expected(1)->allow_extra_args(false);
        }
        added.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    std::reverse(flags.begin(), flags.end());
    try {
        app.parse(std::move(flags));
    } catch (const CLI::ParseError& error) {
        throw Failure(base::usage_error(error.what()));
    }
    line.help = help->count() > 0;
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (added[i]->count() > 0) line.flags[options[i]->name] = added[i]->results();
    }
    return line;
}

}  // namespace sekali::cli
