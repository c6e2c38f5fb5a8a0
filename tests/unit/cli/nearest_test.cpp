#include "cli/nearest.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sekali::cli {
namespace {

constexpr std::array<std::string_view, 6> kNames{"enqueue", "explain", "lock",
                                                 "locks",   "queue",   "backoff"};

TEST(Nearest, FindsTypingErrors) {
    EXPECT_EQ(nearest("enqueu", kNames).front(), "enqueue");
    EXPECT_EQ(nearest("enquue", kNames).front(), "enqueue");
    EXPECT_EQ(nearest("xeplain", kNames), std::vector<std::string>{"explain"});
    EXPECT_EQ(nearest("lokc", kNames).front(), "lock");
}

TEST(Nearest, FindsBeginnings) {
    EXPECT_EQ(nearest("exp", kNames), std::vector<std::string>{"explain"});
}

TEST(Nearest, GuessesNothingWhenAllAreFar) {
    EXPECT_TRUE(nearest("payments", kNames).empty());
    EXPECT_TRUE(nearest("", kNames).empty());
    EXPECT_TRUE(nearest(std::string(100'000, 'q'), kNames).empty());
}

TEST(DidYouMean, ReadsAsASentence) {
    constexpr std::array<std::string_view, 3> kClose{"aa1", "aa2", "aa3"};
    EXPECT_EQ(did_you_mean("aa0", kClose, "--"), "did you mean `--aa1`, `--aa2` or `--aa3`?");
    EXPECT_EQ(did_you_mean("zzz", kClose), "");
}

}  // namespace
}  // namespace sekali::cli
