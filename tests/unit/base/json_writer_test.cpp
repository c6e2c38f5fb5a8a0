#include "base/json_writer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json_check.hpp"
#include "base/limits.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

template <typename Build>
std::string written(Build build) {
    std::string out;
    JsonWriter writer(out);
    build(writer);
    return out;
}

TEST(JsonWriter, NestsAndSeparates) {
    EXPECT_EQ(written([](JsonWriter& w) {
                  w.begin_object().field("id", "a").field("none", nullptr).field("list");
                  w.begin_array().value(1).value(true).begin_object().end_object().begin_array();
                  w.end_array().end_array().field("raw").raw("{ \"x\":1.0 }").field("n", 2);
                  w.end_object();
              }),
              R"({"id":"a","none":null,"list":[1,true,{},[]],"raw":{ "x":1.0 },"n":2})");
}

TEST(JsonWriter, AppendsToWhatIsThere) {
    std::string out = "log ";
    JsonWriter(out).begin_array().end_array();
    EXPECT_EQ(out, "log []");
}

TEST(JsonWriter, WritesEveryTypeOfValue) {
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::numeric_limits<std::uint64_t>::max()); }),
              "18446744073709551615");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::numeric_limits<std::int64_t>::min()); }),
              "-9223372036854775808");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(false); }), "false");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::string("s")); }), "\"s\"");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::optional<std::string>("s")); }), "\"s\"");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::optional<int>()); }), "null");
}

TEST(JsonWriter, EscapesWhatBreaksALineOrATerminal) {
    EXPECT_EQ(written([](JsonWriter& w) { w.value("\"\\/\b\f\n\r\t\x01\x1b\x7f"); }),
              R"("\"\\/\b\f\n\r\t\u0001\u001b\u007f")");
    EXPECT_EQ(written([](JsonWriter& w) { w.value(std::string_view("a\0b", 3)); }),
              R"("a\u0000b")");
    EXPECT_EQ(written([](JsonWriter& w) { w.value("\xC2\x9B"); }), R"("\u009b")");
    EXPECT_EQ(written([](JsonWriter& w) { w.value("é漢"); }), "\"é漢\"");
}

TEST(JsonWriter, ReplacesInvalidUtf8) {
    EXPECT_EQ(written([](JsonWriter& w) {
                  w.value(
                      "a\xFF\xFE"
                      "b\xC3");
              }),
              "\"a\xEF\xBF\xBD\xEF\xBF\xBD"
              "b\xEF\xBF\xBD\"");
}

RC_GTEST_PROP(JsonWriterProperty, AnyBytesGiveOneValidLine,
              (const std::string& name, const std::string& text)) {
    const std::string out =
        written([&](JsonWriter& w) { w.begin_object().field(name, text).end_object(); });
    RC_ASSERT(check_json(out, out.size(), kMaxJsonDepth).ok());
    RC_ASSERT(out.find_first_of("\n\r\x1b") == std::string::npos);
}

RC_GTEST_PROP(JsonWriterProperty, TextComesBack, ()) {
    const std::vector<std::string> texts =
        *rc::gen::container<std::vector<std::string>>(testing::utf8_text());
    const std::string out = written([&](JsonWriter& w) {
        w.begin_array();
        for (const std::string& text : texts)
            w.value(text);
        w.end_array();
    });
    RC_ASSERT(nlohmann::json::parse(out) == nlohmann::json(texts));
}

}  // namespace
}  // namespace sekali::base
