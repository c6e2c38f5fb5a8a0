#include "cli/arguments.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sekali/result.hpp"

namespace sekali::cli {
namespace {

using std::chrono::milliseconds;

constexpr OptionSpec kGlobals[] = {
    {.name = "namespace",
     .value = "NS",
     .help = "",
     .kind = ValueKind::kName,
     .origin = Origin::kSetting},
};
constexpr OptionSpec kOptions[] = {
    {.name = "queues",
     .value = "A,B",
     .help = "",
     .kind = ValueKind::kNames,
     .origin = Origin::kSetting},
    {.name = "lease",
     .value = "D",
     .help = "",
     .kind = ValueKind::kDuration,
     .origin = Origin::kSetting,
     .min = 500},
    {.name = "priority",
     .value = "0..9",
     .help = "larger first",
     .kind = ValueKind::kInteger,
     .origin = Origin::kFile,
     .min = 0,
     .max = 9},
    {.name = "key", .value = "K", .help = "", .kind = ValueKind::kKey},
    {.name = "wait", .value = "D", .help = "", .kind = ValueKind::kDurationOrZero},
    {.name = "until",
     .value = "WHEN",
     .help = "",
     .kind = ValueKind::kChoice,
     .choices = "start|end"},
    {.name = "factor", .value = "X", .help = "", .kind = ValueKind::kDecimal, .min = 1, .max = 100},
    {.name = "exec", .value = "CMD", .help = "", .origin = Origin::kSetting, .repeated = true},
    {.name = "drain", .help = "", .kind = ValueKind::kFlag, .origin = Origin::kSetting},
};
constexpr PositionalSpec kPositionals[] = {
    {.name = "KIND", .help = "what to do", .kind = ValueKind::kName},
    {.name = "PAYLOAD", .help = "", .required = false},
};
constexpr CommandSpec kCommand{
    .name = "try", .summary = "", .positionals = kPositionals, .options = kOptions};
constexpr CommandSpec kWrapper{.name = "wrap", .summary = "", .tail = Tail::kCommand};

struct Sources {
    std::map<std::string_view, std::vector<std::string>> flags{};
    std::map<std::string, std::string> environment{};
    ConfigFile config{};
    std::vector<std::string> positionals{"payment.charge"};
    std::vector<std::string> tail{};
};

Arguments resolve(const Sources& sources, const CommandSpec& command = kCommand) {
    ParsedLine line;
    line.flags = sources.flags;
    line.positionals = sources.positionals;
    return {command,
            kGlobals,
            line,
            sources.tail,
            sources.config,
            [&](const std::string& name) -> std::optional<std::string> {
                const auto found = sources.environment.find(name);
                if (found == sources.environment.end()) return std::nullopt;
                return found->second;
            }};
}

std::string refusal(const Sources& sources, const CommandSpec& command = kCommand) {
    try {
        static_cast<void>(resolve(sources, command));
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.error().code, ErrorCode::kUsage);
        return failure.error().message;
    }
    return "";
}

TEST(Arguments, FlagBeatsEnvironmentBeatsFile) {
    Sources sources;
    sources.config.path = "s.toml";
    sources.config.settings["lease"] = {"5s"};
    EXPECT_EQ(resolve(sources).duration("lease"), milliseconds(5000));
    sources.environment["SEKALI_LEASE"] = "6s";
    EXPECT_EQ(resolve(sources).duration("lease"), milliseconds(6000));
    sources.flags["lease"] = {"7s"};
    EXPECT_EQ(resolve(sources).duration("lease"), milliseconds(7000));
    EXPECT_TRUE(resolve(sources).from_call("lease"));
}

TEST(Arguments, WhatIsFrozenAtEnqueueComesFromNoEnvironment) {
    Sources sources;
    sources.environment = {{"SEKALI_PRIORITY", "9"}, {"SEKALI_KEY", "inherited"}};
    EXPECT_FALSE(resolve(sources).has("priority"));
    EXPECT_FALSE(resolve(sources).has("key"));
    sources.config.settings["priority"] = {"3"};
    EXPECT_EQ(resolve(sources).integer("priority"), 3U);
}

TEST(Arguments, NamesTheSourceOfABadValue) {
    Sources sources;
    sources.config.path = "s.toml";
    sources.config.settings["lease"] = {"soon"};
    EXPECT_NE(refusal(sources).find("s.toml: lease"), std::string::npos);
    sources.environment["SEKALI_LEASE"] = "1";
    EXPECT_NE(refusal(sources).find("SEKALI_LEASE"), std::string::npos);
    sources.flags["lease"] = {"0s"};
    EXPECT_NE(refusal(sources).find("--lease"), std::string::npos);
}

TEST(Arguments, ChecksEveryKindOfValue) {
    EXPECT_EQ(refusal({.flags = {{"priority", {"10"}}}}),
              "--priority must be a whole number from 0 to 9, not \"10\"");
    EXPECT_EQ(refusal({.flags = {{"lease", {"499ms"}}}}),
              "--lease is 499ms, and must be at least 500ms");
    EXPECT_NE(refusal({.flags = {{"key", {""}}}}), "");
    EXPECT_NE(refusal({.flags = {{"key", {"a\nb"}}}}), "");
    EXPECT_NE(refusal({.flags = {{"wait", {"-1s"}}}}), "");
    EXPECT_EQ(refusal({.flags = {{"wait", {"0s"}}}}), "");
    EXPECT_EQ(refusal({.flags = {{"until", {"later"}}}}),
              "--until must be one of start, end, not \"later\"");
    EXPECT_EQ(refusal({.flags = {{"factor", {"0.5"}}}}),
              "--factor must be a number from 1 to 100, not \"0.5\"");
    EXPECT_NE(refusal({.flags = {{"factor", {"nan"}}}}), "");
    EXPECT_NE(refusal({.flags = {{"queues", {"a,,b"}}}}), "");
    EXPECT_NE(refusal({.flags = {{"namespace", {"a/b"}}}}), "");
    EXPECT_NE(refusal({.environment = {{"SEKALI_DRAIN", "perhaps"}}}), "");
}

TEST(Arguments, RefusesASecondValueByName) {
    EXPECT_EQ(refusal({.flags = {{"key", {"a", "b"}}}}),
              "--key is given 2 times, and takes one value");
    EXPECT_EQ(refusal({.flags = {{"exec", {"a", "b"}}}}), "");
}

TEST(Arguments, SwitchesMayBeSwitchedOffByTheEnvironment) {
    EXPECT_TRUE(resolve({.environment = {{"SEKALI_DRAIN", "1"}}}).flag("drain"));
    EXPECT_FALSE(resolve({.environment = {{"SEKALI_DRAIN", "false"}}}).flag("drain"));
}

TEST(Arguments, ReadsListsFromTheFile) {
    Sources sources;
    sources.config.settings["queues"] = {"a", "b"};
    EXPECT_EQ(resolve(sources).names("queues"), (std::vector<std::string>{"a", "b"}));
}

TEST(Arguments, CountsPositionals) {
    EXPECT_EQ(refusal({.positionals = {}}), "KIND is missing: what to do");
    EXPECT_EQ(refusal({.positionals = {"k", "{}", "x"}}),
              "try does not take \"x\": it is one word too many");
    EXPECT_EQ(resolve({.positionals = {"k"}, .tail = {"-x"}}).positional(1), "-x");
    EXPECT_EQ(resolve({.positionals = {"k"}}).positional(1), std::nullopt);
}

TEST(Arguments, AWrapperNeedsACommand) {
    EXPECT_EQ(refusal({.positionals = {}}, kWrapper), "wrap needs a command to run");
    const Arguments args = resolve({.positionals = {}, .tail = {"echo", "--", "-n"}}, kWrapper);
    EXPECT_EQ(args.tail(), (std::vector<std::string>{"echo", "--", "-n"}));
}

TEST(CheckConfig, RefusesWhatNoFlagTakes) {
    const auto refusal_of = [](const ConfigFile& config) {
        std::vector<const OptionSpec*> known;
        for (const OptionSpec& option : kOptions)
            known.push_back(&option);
        try {
            check_config(config, known);
        } catch (const Failure& failure) {
            return failure.error().message + " | " + failure.error().hint;
        }
        return std::string();
    };
    ConfigFile config;
    config.path = "s.toml";
    config.settings["leese"] = {"5s"};
    EXPECT_EQ(refusal_of(config), "s.toml: leese is no setting | did you mean `lease`?");
    config.settings = {{"lease", {"5s", "6s"}}};
    EXPECT_EQ(refusal_of(config), "s.toml: lease takes one value, not a list | ");
    config.settings = {{"lease", {"5s"}}, {"exec", {"a", "b"}}};
    EXPECT_EQ(refusal_of(config), "");
    config.kinds["payment.charge"]["time_out"] = {"5s"};
    EXPECT_NE(refusal_of(config).find("kinds.\"payment.charge\".time_out is no setting"),
              std::string::npos);
    config.kinds = {{"payment.charge", {{"timeout", {"5m"}}, {"lock_ttl", {"1s"}}}}};
    EXPECT_EQ(refusal_of(config), "");
    config.kinds = {{"payment.charge", {{"lock_ttl", {"1ms"}}}}};
    EXPECT_NE(refusal_of(config).find("at least 500ms"), std::string::npos);
    config.kinds = {{"not a kind", {}}};
    EXPECT_NE(refusal_of(config), "");
}

TEST(Names, FollowTheFlag) {
    EXPECT_EQ(env_name("lock-ttl"), "SEKALI_LOCK_TTL");
    EXPECT_EQ(file_key("lock-ttl"), "lock_ttl");
}

}  // namespace
}  // namespace sekali::cli
