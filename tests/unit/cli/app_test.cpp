#include "cli/app.hpp"

#include <gtest/gtest.h>

#include <set>

#include "cli/commands.hpp"
#include "cli/help.hpp"

namespace sekali::cli {
namespace {

// What children of a worker find in their environment (DESIGN section 6).
constexpr std::string_view kChildVariables[] = {
    "SEKALI_JOB_ID",      "SEKALI_KIND",       "SEKALI_QUEUE",     "SEKALI_KEY",
    "SEKALI_ATTEMPT",     "SEKALI_LOCK_KEY",   "SEKALI_EPOCH",     "SEKALI_STEP_KEY_PREFIX",
    "SEKALI_DEADLINE_MS", "SEKALI_CONTROL_FD", "SEKALI_ATTEMPT_ID"};

std::vector<const OptionSpec*> all_options() {
    std::vector<const OptionSpec*> options;
    for (const OptionSpec& option : global_options())
        options.push_back(&option);
    for (const CommandSpec* command : sekali_app().commands) {
        for (const OptionSpec& option : command->options)
            options.push_back(&option);
    }
    return options;
}

TEST(CommandTable, NoSettingIsReadFromWhatChildrenInherit) {
    for (const OptionSpec* option : all_options()) {
        if (option->origin != Origin::kSetting) continue;
        for (const std::string_view variable : kChildVariables)
            EXPECT_NE(env_name(option->name), variable);
    }
}

TEST(CommandTable, EverythingIsNamedExplainedAndUnique) {
    std::set<std::string_view> names;
    for (const CommandSpec* command : sekali_app().commands) {
        EXPECT_TRUE(names.insert(command->name).second) << command->name;
        EXPECT_FALSE(command->summary.empty()) << command->name;
        EXPECT_NE(command->run, nullptr) << command->name;
        std::set<std::string_view> flags;
        for (const OptionSpec& option : global_options())
            flags.insert(option.name);
        for (const OptionSpec& option : command->options) {
            EXPECT_TRUE(flags.insert(option.name).second) << command->name << " " << option.name;
            EXPECT_FALSE(option.help.empty()) << command->name << " " << option.name;
            EXPECT_EQ(option.value.empty(), option.kind == ValueKind::kFlag) << option.name;
            EXPECT_EQ(option.choices.empty(), option.kind != ValueKind::kChoice) << option.name;
        }
    }
}

TEST(CommandTable, ASettingMeansTheSameInEveryCommand) {
    for (const OptionSpec* a : all_options()) {
        for (const OptionSpec* b : all_options()) {
            if (a->name != b->name || a->origin == Origin::kCall || b->origin == Origin::kCall) {
                continue;
            }
            EXPECT_EQ(a->kind, b->kind) << a->name;
            EXPECT_EQ(a->repeated, b->repeated) << a->name;
        }
    }
}

TEST(Help, FitsATerminal) {
    const auto longest_line = [](std::string_view text) {
        std::size_t longest = 0;
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            longest = std::max(longest, end);
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        return longest;
    };
    EXPECT_LE(longest_line(app_help(sekali_app())), 100U);
    for (const CommandSpec* command : sekali_app().commands)
        EXPECT_LE(longest_line(command_help(*command)), 110U) << command->name;
}

}  // namespace
}  // namespace sekali::cli
