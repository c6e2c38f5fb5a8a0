#include "cli/output.hpp"

#include <gtest/gtest.h>

namespace sekali::cli {
namespace {

TEST(TextTable, AlignsColumnsAndLeavesEmptyOnesOut) {
    TextTable table({"ID", "NOTE", "STATE"});
    table.add({"1", "", "ready"});
    table.add({"22", "", "é"});
    EXPECT_EQ(table.render(), "ID  STATE\n1   ready\n22  é\n");
}

TEST(TextTable, ShowsHostileBytesWithoutObeyingThem) {
    TextTable table({"KEY"});
    table.add({"a\nb\x1b[2J\xff"});
    EXPECT_EQ(table.render(), "KEY\na\\u{a}b\\u{1b}[2J\\x{ff}\n");
}

TEST(ExitStatus, FollowsTheContract) {
    EXPECT_EQ(exit_status(ErrorCode::kUsage), 2);
    EXPECT_EQ(exit_status(ErrorCode::kUnreachable), 3);
    EXPECT_EQ(exit_status(ErrorCode::kRefused), 3);
    EXPECT_EQ(exit_status(ErrorCode::kNotFound), 4);
    EXPECT_EQ(exit_status(ErrorCode::kConflict), 5);
    EXPECT_EQ(exit_status(ErrorCode::kCancelled), 1);
    EXPECT_EQ(exit_status(ErrorCode::kInternal), 1);
}

}  // namespace
}  // namespace sekali::cli
