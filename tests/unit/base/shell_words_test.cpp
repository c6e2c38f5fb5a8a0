#include "base/shell_words.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sekali::base {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view command) {
    return split_command(command).value();
}

TEST(SplitCommand, FollowsPosixQuoting) {
    EXPECT_EQ(words("./charge.sh"), (Words{"./charge.sh"}));
    EXPECT_EQ(words("  a \t b  "), (Words{"a", "b"}));
    EXPECT_EQ(words("a 'b c' \"d e\" f\\ g"), (Words{"a", "b c", "d e", "f g"}));
    EXPECT_EQ(words("a'b'\"c\"d"), (Words{"abcd"}));
    EXPECT_EQ(words("a '' \"\""), (Words{"a", "", ""}));
    EXPECT_EQ(words(R"(a '\' "\"" "\\" "\a" \')"), (Words{"a", "\\", "\"", "\\", "\\a", "'"}));
    EXPECT_EQ(words("a '$x `y` | * \n'"), (Words{"a", "$x `y` | * \n"}));
    EXPECT_EQ(words("a \"| & ; < > * ? ( ) [ ] { } ~ #\""),
              (Words{"a", "| & ; < > * ? ( ) [ ] { } ~ #"}));
    EXPECT_EQ(words(R"(a \| \$x "\$x" "\`")"), (Words{"a", "|", "$x", "$x", "`"}));
    EXPECT_EQ(words("a b\\\nc \"d\\\ne\""), (Words{"a", "bc", "de"}));
    EXPECT_EQ(words("sh -c 'a | b > c'"), (Words{"sh", "-c", "a | b > c"}));
    EXPECT_EQ(words("a k=v --x=y,z @%+-:/_!^"), (Words{"a", "k=v", "--x=y,z", "@%+-:/_!^"}));
    EXPECT_EQ(words("a \xFF é"), (Words{"a", "\xFF", "é"}));
}

TEST(SplitCommand, RefusesEveryShellOperator) {
    for (const char c : std::string_view("|&;<>$*?()[]{}~#`\n")) {
        const auto result = split_command(std::string("a b") + c + "c");
        ASSERT_FALSE(result.ok()) << c;
        EXPECT_EQ(result.error().code, ErrorCode::kUsage);
        EXPECT_NE(result.error().hint.find("sh -c '"), std::string::npos);
    }
}

TEST(SplitCommand, WhatIsInDoubleQuotesIsText) {
    EXPECT_EQ(words(R"(sh -c "kill $$; `id`")"), (Words{"sh", "-c", "kill $$; `id`"}));
}

TEST(SplitCommand, HintsAtTheFormToWrite) {
    const auto result = split_command("cat 'a b' | wc -l");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(
        result.error().message,
        "command \"cat 'a b' | wc -l\": \"|\" needs a shell, and commands are run without one");
    EXPECT_EQ(result.error().hint,
              R"(write: sh -c 'cat '\''a b'\'' | wc -l' (or quote it, if it is meant as text))");
    const std::string shown = result.error().hint.substr(7, result.error().hint.find(" (or") - 7);
    EXPECT_EQ(words(shown), (Words{"sh", "-c", "cat 'a b' | wc -l"}));
}

TEST(SplitCommand, HintsHoldNoControlBytes) {
    EXPECT_TRUE(split_command("a\nb").error().hint.starts_with("write: sh -c '…' "));
    EXPECT_TRUE(split_command("a | \x1b[31m").error().hint.starts_with("write: sh -c '…' "));
    EXPECT_EQ(split_command("a\nb").error().message.find('\n'), std::string::npos);
}

TEST(SplitCommand, RefusesWhatIsNoCommand) {
    for (const std::string_view command :
         {"", "  ", "''", "\"\" a", "a 'b", "a \"b", "a \"b\\\"", "a\\", "\\\n"}) {
        EXPECT_FALSE(split_command(command).ok()) << command;
    }
    EXPECT_EQ(split_command("a 'b").error().message,
              "command \"a 'b\": the single quote at byte 2 is not closed");
    for (const std::string_view command :
         {std::string_view("a\0b", 3), std::string_view("a '\0'", 5),
          std::string_view("a \"\0\"", 5), std::string_view("a \\\0", 4)}) {
        EXPECT_FALSE(split_command(command).ok());
    }
}

std::string single_quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

RC_GTEST_PROP(SplitCommandProperty, QuotedWordsComeBack, ()) {
    const auto byte = rc::gen::inRange<int>(1, 256);
    const auto word =
        rc::gen::map(rc::gen::container<std::vector<int>>(byte),
                     [](const auto& bytes) { return std::string(bytes.begin(), bytes.end()); });
    Words expected = {"program"};
    for (const std::string& one : *rc::gen::container<Words>(word))
        expected.push_back(one);
    std::string command;
    for (const std::string& one : expected)
        command += single_quoted(one) + " ";
    RC_ASSERT(words(command) == expected);
}

/// The words that the system's shell makes of an operand list, each ended by a newline.
std::string words_of_sh(const std::string& operands) {
    const std::string script = "set -- " + operands + "\nprintf '<%s>' \"$@\"";
    const std::string command = "sh -c " + single_quoted(script);
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
    std::string text;
    for (int c = 0; (c = std::fgetc(output.get())) != EOF;)
        text += static_cast<char>(c);
    return text;
}

RC_GTEST_PROP(SplitCommandProperty, AgreesWithTheShellOnWhatItAccepts, ()) {
    const auto piece =
        rc::gen::element<std::string>("a", "b", " ", "'", "\"", "\\", "\\\n", "é", "=", "%s");
    std::string command = "x";
    for (const auto& one : *rc::gen::container<Words>(piece))
        command += one;
    const auto split = split_command(command);
    RC_PRE(split.ok());
    std::string expected;
    for (const std::string& word : *split)
        expected += "<" + word + ">";
    RC_LOG() << command;
    RC_ASSERT(words_of_sh(command) == expected);
}

}  // namespace
}  // namespace sekali::base
