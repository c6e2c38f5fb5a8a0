#include "cli/bulk_line.hpp"

#include <gtest/gtest.h>

#include "sekali/result.hpp"

namespace sekali::cli {
namespace {

std::string refusal(std::string_view line) {
    try {
        static_cast<void>(parse_bulk_line(line));
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.error().code, ErrorCode::kUsage);
        return failure.error().message;
    }
    return "";
}

TEST(BulkLine, TakesThePayloadAsItIsWritten) {
    EXPECT_EQ(parse_bulk_line(R"({"kind":"k","payload": { "b":1.0 , "a":[] } })").payload,
              R"({ "b":1.0 , "a":[] })");
    EXPECT_EQ(parse_bulk_line(R"({"kind":"k"})").payload, "null");
    EXPECT_EQ(parse_bulk_line(R"({"kind":"k","payload":null})").payload, "null");
    EXPECT_EQ(parse_bulk_line(R"({"kind":"k","payload":"x"})").payload, R"("x")");
}

TEST(BulkLine, NamesFieldsLikeFlagsWithEitherSign) {
    const JobDraft draft =
        parse_bulk_line(R"({"unique_for":"1h","max-attempts":3,"kind":"k","lock":"l"})");
    EXPECT_EQ(draft.kind, "k");
    EXPECT_EQ(draft.at(JobField::kUniqueFor), "1h");
    EXPECT_EQ(draft.at(JobField::kMaxAttempts), "3");
    EXPECT_EQ(draft.at(JobField::kLock), "l");
    EXPECT_FALSE(draft.at(JobField::kKey));
}

TEST(BulkLine, DecodesNamesAndValues) {
    EXPECT_EQ(parse_bulk_line(R"({"\u006bind":"\u006b"})").kind, "k");
}

TEST(BulkLine, NullIsAbsent) {
    EXPECT_FALSE(parse_bulk_line(R"({"kind":"k","key":null})").at(JobField::kKey));
}

TEST(BulkLine, RefusesByName) {
    EXPECT_NE(refusal(R"({"kind":"k","kye":1})").find("\"kye\""), std::string::npos);
    EXPECT_NE(refusal(R"({"kind":"k","kind":"k"})").find("\"kind\""), std::string::npos);
    EXPECT_NE(refusal(R"({"kind":"k","unique-for":"1h","unique_for":"1h"})").find("unique_for"),
              std::string::npos);
    EXPECT_NE(refusal(R"({"payload":1})").find("kind"), std::string::npos);
    EXPECT_NE(refusal(R"({"kind":null})").find("kind"), std::string::npos);
    EXPECT_NE(refusal(R"({"kind":"k","priority":true})").find("priority"), std::string::npos);
    EXPECT_NE(refusal(R"({"kind":"k","key":["a"]})").find("key"), std::string::npos);
    for (const char* line : {"", "[]", "null", "{", "{} x",
                             R"({"kind":"k"})"
                             "x",
                             "\"kind\""})
        EXPECT_NE(refusal(line), "") << line;
}

}  // namespace
}  // namespace sekali::cli
