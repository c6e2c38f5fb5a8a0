#include "cli/parser.hpp"

#include <gtest/gtest.h>

#include "sekali/result.hpp"

namespace sekali::cli {
namespace {

constexpr OptionSpec kKey{.name = "key", .value = "K", .help = ""};
constexpr OptionSpec kAttempt{.name = "attempt", .value = "N", .help = "", .repeated = true};
constexpr OptionSpec kJson{.name = "json", .help = "", .kind = ValueKind::kFlag};

ParsedLine parse(const std::vector<std::string>& words) {
    return parse_words(words, {&kKey, &kAttempt, &kJson});
}

std::string refusal(const std::vector<std::string>& words) {
    try {
        static_cast<void>(parse(words));
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.error().code, ErrorCode::kUsage);
        return failure.error().message + " | " + failure.error().hint;
    }
    return "";
}

TEST(ParseWords, SortsFlagsValuesAndPositionals) {
    const ParsedLine line =
        parse({"one", "--key", "a", "two", "--json", "--attempt=1", "--attempt", "2", "three"});
    EXPECT_EQ(line.positionals, (std::vector<std::string>{"one", "two", "three"}));
    EXPECT_EQ(line.flags.at("key"), std::vector<std::string>{"a"});
    EXPECT_EQ(line.flags.at("attempt"), (std::vector<std::string>{"1", "2"}));
    EXPECT_TRUE(line.flags.contains("json"));
    EXPECT_FALSE(line.help);
}

TEST(ParseWords, TakesAValueByteForByte) {
    for (const std::string value : {"", "-", "--json", "-x", "a=b", "[a,b]", "{}", "\n", "a b"}) {
        EXPECT_EQ(parse({"--key", value}).flags.at("key").front(), value);
        EXPECT_EQ(parse({"--key=" + value}).flags.at("key").front(), value);
    }
}

TEST(ParseWords, KeepsRepeatedValuesForTheCallerToJudge) {
    EXPECT_EQ(parse({"--key", "a", "--key", "b"}).flags.at("key").size(), 2U);
}

TEST(ParseWords, ReadsStandardInputAndNumbersAsPositionals) {
    EXPECT_EQ(parse({"-", "-5", "++"}).positionals, (std::vector<std::string>{"-", "-5", "++"}));
}

TEST(ParseWords, FindsHelpAnywhere) {
    EXPECT_TRUE(parse({"x", "--help"}).help);
    EXPECT_TRUE(parse({"-h", "x"}).help);
    EXPECT_FALSE(parse({"--key", "--help"}).help);
}

TEST(ParseWords, RefusesUnknownFlagsByNameAndNamesTheNearest) {
    EXPECT_EQ(refusal({"--kye", "x"}), "unknown flag \"--kye\" | did you mean `--key`?");
    EXPECT_NE(refusal({"-k"}).find("unknown flag \"-k\""), std::string::npos);
    EXPECT_NE(refusal({"--\x1b[31m"}).find("\\u{1b}"), std::string::npos);
}

TEST(ParseWords, RefusesAFlagWithoutItsValue) {
    EXPECT_EQ(refusal({"--json", "--key"}), "--key has no value | write --key K");
}

TEST(ParseWords, RefusesAValueForASwitch) {
    EXPECT_EQ(refusal({"--json=yes"}), "--json takes no value | ");
}

}  // namespace
}  // namespace sekali::cli
