#include "bench/figures.hpp"

#include <gtest/gtest.h>

namespace sekali::bench {
namespace {

TEST(Figures, MedianIsTheMiddleWhateverTheOrder) {
    EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
    EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
    EXPECT_DOUBLE_EQ(median({7}), 7);
    EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Figures, PercentileIsTheNearestRank) {
    const std::vector<double> values{10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    EXPECT_DOUBLE_EQ(percentile(values, 0.5), 5);
    EXPECT_DOUBLE_EQ(percentile(values, 0.9), 9);
    EXPECT_DOUBLE_EQ(percentile(values, 0.99), 10);
    EXPECT_DOUBLE_EQ(percentile(values, 1), 10);
    EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
    EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace sekali::bench
