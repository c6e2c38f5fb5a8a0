#include "cli/once_result.hpp"

#include <gtest/gtest.h>

#include "base/limits.hpp"

namespace sekali::cli {
namespace {

OnceAnswer round_trip(int status, std::string_view output) {
    const std::string stored = encode_answer(status, output);
    EXPECT_LE(stored.size(), base::kMaxResultBytes);
    return decode_answer(stored);
}

TEST(OnceResult, ASuccessIsItsOutputAsItIs) {
    EXPECT_EQ(encode_answer(0, "out\n"), "out\n");
    EXPECT_EQ(encode_answer(0, ""), "");
    EXPECT_EQ(encode_answer(0, R"({"a":1})"), R"({"a":1})");
}

TEST(OnceResult, AStatusComesBackWithItsOutput) {
    for (const int status : {1, 3, 137, 255}) {
        const OnceAnswer answer = round_trip(status, "a\"b\\\n\x1b");
        EXPECT_EQ(answer.status, status);
        EXPECT_EQ(answer.output, "a\"b\\\n\x1b");
    }
}

TEST(OnceResult, AnOutputThatLooksLikeAnAnswerIsNotTakenForOne) {
    const std::string tricky = encode_answer(3, "inner");
    const OnceAnswer answer = round_trip(0, tricky);
    EXPECT_EQ(answer.status, 0);
    EXPECT_EQ(answer.output, tricky);
}

TEST(OnceResult, WhatIsNoAnswerIsAnOutput) {
    for (const char* text : {R"({"exit_status":3})", R"({"exit_status":300,"stdout":""})",
                             R"({"exit_status":3,"stdout":1})", R"({"exit_status":3,"out":""})",
                             R"({"exit_status":)", "by hand"}) {
        EXPECT_EQ(decode_answer(text).status, 0) << text;
        EXPECT_EQ(decode_answer(text).output, text);
    }
}

TEST(OnceResult, IsCutToTheLimitWhateverItIsMadeOf) {
    for (const char filler : {'x', '"', '\x01', '\xff', '\0'}) {
        const std::string long_output(300'000, filler);
        EXPECT_EQ(round_trip(0, long_output).status, 0);
        EXPECT_EQ(round_trip(3, long_output).status, 3);
    }
}

}  // namespace
}  // namespace sekali::cli
