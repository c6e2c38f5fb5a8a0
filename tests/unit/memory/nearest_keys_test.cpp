#include "backends/rows/nearest_keys.hpp"

#include <gtest/gtest.h>

namespace sekali::rows {
namespace {

using Names = std::vector<std::string>;

TEST(NearestKeys, SlipsComeFirstInTheOrderOfTheirDistance) {
    const Names keys{"order:1001", "order:1002", "order:2002", "invoice:77"};
    EXPECT_EQ(nearest("order:1O01", keys, 2), (Names{"order:1001", "order:1002"}));
    EXPECT_EQ(nearest("ordr:1001", keys, 1), (Names{"order:1001"}));
}

TEST(NearestKeys, APartOfAKeyIsNearIt) {
    EXPECT_EQ(nearest("1001", {"payment:order:1001:eu", "payment:order:1002:eu"}, 5),
              (Names{"payment:order:1001:eu"}));
    EXPECT_EQ(nearest("payment:order:1001:eu:west", {"payment:order:1001"}, 5),
              (Names{"payment:order:1001"}));
}

TEST(NearestKeys, WhatIsFarAwayIsNotOffered) {
    EXPECT_TRUE(nearest("order:1001", {"something quite different"}, 5).empty());
    EXPECT_TRUE(nearest("order:1001", {}, 5).empty());
    EXPECT_TRUE(nearest("order", {"order"}, 0).empty());
}

TEST(NearestKeys, LongKeysAreCompared) {
    const std::string base(500, 'x');
    EXPECT_EQ(nearest(base + "abc", {base + "abd", base + "zzzzzzzzzzzz"}, 5),
              (Names{base + "abd"}));
}

}  // namespace
}  // namespace sekali::rows
