#include "base/json_slice.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/json_check.hpp"
#include "base/limits.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

TEST(ReadObject, GivesEachValueByteForByte) {
    const std::string line =
        R"( {"kind":"a.b", "payload" : { "x" : 1.0 , "y":[ ]} ,"k\u0065y":"p:\u0031","n": null } )";
    const auto fields = read_object(line);
    ASSERT_TRUE(fields.ok());
    ASSERT_EQ(fields->size(), 4U);
    EXPECT_EQ((*fields)[0].name, "kind");
    EXPECT_EQ((*fields)[0].slice, "\"a.b\"");
    EXPECT_EQ((*fields)[1].name, "payload");
    EXPECT_EQ((*fields)[1].slice, R"({ "x" : 1.0 , "y":[ ]})");
    EXPECT_EQ((*fields)[2].name, "key");
    EXPECT_EQ((*fields)[2].slice, R"("p:\u0031")");
    EXPECT_EQ((*fields)[3].name, "n");
    EXPECT_EQ((*fields)[3].slice, "null");
}

TEST(ReadObject, RefusesWhatIsNotOneObject) {
    for (const std::string_view line : {"", "[]", "1", "{", "{}x", "{}{}", R"({"a":1,"a":2})",
                                        R"({"a":1,"b":{"c":1,"\u0063":2}})", "\xEF\xBB\xBF{}"}) {
        EXPECT_FALSE(read_object(line).ok()) << line;
    }
    EXPECT_TRUE(read_object("{}").ok());
}

TEST(ReadObject, AValueMayBeAsDeepAsAPayload) {
    const auto line = [](std::size_t depth) {
        return "{\"payload\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    EXPECT_TRUE(read_object(line(kMaxJsonDepth)).ok());
    EXPECT_FALSE(read_object(line(kMaxJsonDepth + 1)).ok());
}

TEST(DecodeJsonString, Decodes) {
    EXPECT_EQ(decode_json_string("\"\"").value(), "");
    EXPECT_EQ(decode_json_string(R"("a\"b\\c\/\b\f\n\r\té")").value(), "a\"b\\c/\b\f\n\r\té");
    EXPECT_EQ(decode_json_string(R"("\u0041\u00e9\u6f22\ud83d\ude42")").value(), "Aé漢🙂");
    EXPECT_EQ(decode_json_string(R"("\u0000")").value(), std::string(1, '\0'));
    EXPECT_EQ(decode_json_string(R"("ends with \\")").value(), "ends with \\");
    EXPECT_EQ(decode_json_string(R"("ends with \"")").value(), "ends with \"");
}

TEST(DecodeJsonString, RefusesOtherSlices) {
    for (const std::string_view slice :
         {"", "a", "1", "null", "{}", "\"", "\"a", "\"a\"b", "\"\\ud800\"", "\"\\", "\"\xFF\""}) {
        EXPECT_FALSE(decode_json_string(slice).ok()) << slice;
    }
}

TEST(FindPointer, FollowsTheExamplesOfTheRfc) {
    // RFC 6901, section 5.
    const std::string json = R"({ "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3,
                                  "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8 })";
    EXPECT_EQ(find_pointer(json, ""), json);
    EXPECT_EQ(find_pointer(json, "/foo"), R"(["bar", "baz"])");
    EXPECT_EQ(find_pointer(json, "/foo/0"), "\"bar\"");
    EXPECT_EQ(find_pointer(json, "/foo/1"), "\"baz\"");
    EXPECT_EQ(find_pointer(json, "/"), "0");
    EXPECT_EQ(find_pointer(json, "/a~1b"), "1");
    EXPECT_EQ(find_pointer(json, "/c%d"), "2");
    EXPECT_EQ(find_pointer(json, "/e^f"), "3");
    EXPECT_EQ(find_pointer(json, "/g|h"), "4");
    EXPECT_EQ(find_pointer(json, "/i\\j"), "5");
    EXPECT_EQ(find_pointer(json, "/k\"l"), "6");
    EXPECT_EQ(find_pointer(json, "/ "), "7");
    EXPECT_EQ(find_pointer(json, "/m~0n"), "8");
}

TEST(FindPointer, FindsNothing) {
    const std::string_view json = R"({"a":{"b":[1,2]},"s":"x","~1":0})";
    for (const std::string_view pointer :
         {"/b", "/a/c", "/a/b/2", "/a/b/-", "/a/b/01", "/a/b/+1", "/a/b/", "/a/b/0/x", "/s/0", "a",
          "a/b", "/a/", "/~", "/~2", "/a~", "/a/b/99999999999999999999"}) {
        EXPECT_FALSE(find_pointer(json, pointer)) << pointer;
    }
    EXPECT_EQ(find_pointer(json, "/~01"), "0");
    EXPECT_EQ(find_pointer("  1 ", ""), "1");
}

TEST(FindPointer, IsSafeOnTextThatWasNeverChecked) {
    for (const std::string_view json :
         {"", " ", "{", "{\"a\"", "{\"a\":", "{\"a\":[1,", "[1,2", "]", "{\"a\":\"\\"}) {
        for (const std::string_view pointer : {"", "/a", "/a/0", "/0"}) {
            EXPECT_FALSE(find_pointer(json, pointer)) << json << " " << pointer;
        }
    }
}

RC_GTEST_PROP(JsonSliceProperty, FieldsAreWhatAnotherParserReads, ()) {
    nlohmann::json value = testing::random_json(3);
    if (!value.is_object()) value = {{"wrapped", value}};
    const std::string line = value.dump(*rc::gen::inRange(-1, 3), ' ', *rc::gen::arbitrary<bool>());
    const auto fields = read_object(line);
    RC_ASSERT(fields.ok());
    nlohmann::json rebuilt = nlohmann::json::object();
    for (const JsonField& field : *fields) {
        RC_ASSERT(field.slice.data() >= line.data());
        RC_ASSERT(field.slice.data() + field.slice.size() <= line.data() + line.size());
        rebuilt[field.name] = nlohmann::json::parse(field.slice);
    }
    RC_ASSERT(rebuilt == value);
}

RC_GTEST_PROP(JsonSliceProperty, EveryPointerFindsItsValue, ()) {
    const nlohmann::json value = {{"v", testing::random_json(4)}};
    const std::string text = value.dump(*rc::gen::inRange(-1, 3), ' ', *rc::gen::arbitrary<bool>());
    const nlohmann::json flat = value.flatten();
    for (const auto& [pointer, leaf] : flat.items()) {
        const auto slice = find_pointer(text, pointer);
        RC_LOG() << text << " at " << pointer;
        RC_ASSERT(slice.has_value());
        RC_ASSERT(nlohmann::json::parse(*slice) == value.at(nlohmann::json::json_pointer(pointer)));
    }
}

RC_GTEST_PROP(JsonSliceProperty, StringsComeBack, ()) {
    const std::string text = *testing::utf8_text();
    const std::string slice = nlohmann::json(text).dump(-1, ' ', *rc::gen::arbitrary<bool>());
    RC_ASSERT(decode_json_string(slice).value() == text);
}

}  // namespace
}  // namespace sekali::base
