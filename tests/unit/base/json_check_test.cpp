#include "base/json_check.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/limits.hpp"
#include "fuzz/json_oracle.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

using testing::ask_json_oracle;
using testing::OracleVerdict;

Result<void> check(std::string_view text) {
    return check_json(text, kDefaultMaxPayloadBytes, kMaxJsonDepth);
}

void expect_refused_at(std::string_view text, std::size_t offset) {
    const Result<void> result = check(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    const std::string place = "at byte " + std::to_string(offset) + ":";
    EXPECT_NE(result.error().message.find(place), std::string::npos)
        << text << " → " << result.error().message;
}

std::string nested(std::size_t depth, char open, char close) {
    return std::string(depth, open) + std::string(depth, close);
}

TEST(CheckJson, AcceptsEveryKindOfValue) {
    for (const std::string_view text : {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "-0",
                                        "-0.0",
                                        "1e5",
                                        "1E+5",
                                        "1.25e-300",
                                        "1e999",
                                        "\"\"",
                                        "\"a\"",
                                        "[]",
                                        "{}",
                                        " [ 1 , 2 ] ",
                                        "\t\r\n{ \"a\" : { \"b\" : [ ] } }\n",
                                        "\"\\u0000\"",
                                        "\"\\ud83d\\ude00\"",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                        "\"\x7f\"",
                                        "\"é漢\xF0\x9F\x99\x82\"",
                                        "{\"\":1}",
                                        "123456789012345678901234567890"}) {
        EXPECT_TRUE(check(text).ok()) << text;
    }
}

TEST(CheckJson, NamesTheByteOfTheFirstFault) {
    expect_refused_at("", 0);
    expect_refused_at("  ", 2);
    expect_refused_at("nul", 0);
    expect_refused_at("nulll", 4);
    expect_refused_at("NaN", 0);
    expect_refused_at("[1,Infinity]", 3);
    expect_refused_at("[1,-Infinity]", 3);
    expect_refused_at("[1,]", 3);
    expect_refused_at("[1 2]", 3);
    expect_refused_at("[,1]", 1);
    expect_refused_at("[1", 2);
    expect_refused_at("{\"a\":1,}", 7);
    expect_refused_at("{\"a\" 1}", 5);
    expect_refused_at("{\"a\":}", 5);
    expect_refused_at("{a:1}", 1);
    expect_refused_at("{'a':1}", 1);
    expect_refused_at("{\"a\":1", 6);
    expect_refused_at("01", 0);
    expect_refused_at("-", 0);
    expect_refused_at("+1", 0);
    expect_refused_at(".5", 0);
    expect_refused_at("1.", 2);
    expect_refused_at("1e", 2);
    expect_refused_at("1e+", 3);
    expect_refused_at("0x10", 1);
    expect_refused_at("1 //", 2);
    expect_refused_at("\"abc", 0);
    expect_refused_at("\"a\nb\"", 2);
    expect_refused_at("\"\\x41\"", 1);
    expect_refused_at("\"\\u12g4\"", 1);
    expect_refused_at("\"\\", 1);
    expect_refused_at("\"\\u12", 1);
    expect_refused_at("{} {}", 3);
    expect_refused_at("]", 0);
}

TEST(CheckJson, FindsFaultsAtEveryPositionOfAWord) {
    for (std::size_t before = 0; before < 20; ++before) {
        const std::string plain(before, 'x');
        expect_refused_at("\"" + plain + "\n" + "yyyyyyyyyyyyyyyy\"", before + 1);
        expect_refused_at("\"" + plain + "\xFF" + "yyyyyyyyyyyyyyyy\"", before + 1);
        expect_refused_at("\"" + plain + "\\q" + "yyyyyyyyyyyyyyyy\"", before + 1);
        EXPECT_TRUE(check("\"" + plain + "\\n" + plain + "é" + plain + "\"").ok());
    }
}

TEST(CheckJson, RefusesInvalidUtf8) {
    for (const std::string_view bytes :
         {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3", "\xE2\x82",
          "\xF0\x9F\x98"}) {
        expect_refused_at("\"" + std::string(bytes) + "\"", 1);
    }
}

TEST(CheckJson, DepthIsCountedInLevels) {
    EXPECT_TRUE(check(nested(kMaxJsonDepth, '[', ']')).ok());
    expect_refused_at(nested(kMaxJsonDepth + 1, '[', ']'), kMaxJsonDepth);
    EXPECT_TRUE(check_json("[[1]]", 100, 2).ok());
    EXPECT_FALSE(check_json("[[[1]]]", 100, 2).ok());
    EXPECT_FALSE(check_json("[]", 100, 0).ok());
    EXPECT_TRUE(check_json("1", 100, 0).ok());
    // No caller can ask for more, because the walk is recursive.
    EXPECT_FALSE(check_json(nested(100000, '[', ']'), 1000000, 1000000).ok());
    EXPECT_FALSE(check(std::string(500000, '[')).ok());
}

TEST(CheckJson, RefusesRepeatedFieldsByTheirDecodedNames) {
    expect_refused_at(R"({"amount":1,"amount":100})", 12);
    expect_refused_at(R"({"a":1,"\u0061":2})", 7);
    expect_refused_at(R"({"\ud83d\ude00":1,"😀":2})", 18);
    expect_refused_at(R"({"a\/b":1,"a/b":2})", 10);
    expect_refused_at(R"([{"x":{"a":1,"b":2,"a":3}}])", 19);
    expect_refused_at(R"({"":1,"":2})", 6);
}

TEST(CheckJson, TheSameNameInDifferentObjectsIsFine) {
    EXPECT_TRUE(check(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]})").ok());
    EXPECT_TRUE(check(R"({"a":1,"A":2,"a ":3,"a\u0000":4,"\\u0061":5})").ok());
    EXPECT_TRUE(check("{\"é\":1,\"e\xCC\x81\":2}").ok());
}

std::string large_object(std::size_t fields) {
    std::string text = "{";
    for (std::size_t i = 0; i < fields; ++i)
        text += "\"f" + std::to_string(i) + "\":0,";
    text.back() = '}';
    return text;
}

TEST(CheckJson, FindsTheRepeatedFieldInALargeObject) {
    for (const std::size_t fields : {15U, 16U, 17U, 127U, 128U, 129U, 5000U}) {
        std::string text = large_object(fields);
        EXPECT_TRUE(check(text).ok()) << fields;
        text.pop_back();
        const std::size_t offset = text.size() + 1;
        expect_refused_at(text + ",\"f\\u0033\":1,\"f5\":1}", offset);
        expect_refused_at("[{\"f3\":0}," + text + ",\"f3\":1}]", offset + 10);
    }
}

TEST(CheckJson, LargeObjectsAreNotQuadratic) {
    const std::string text = large_object(300'000);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(check_json(text, text.size(), kMaxJsonDepth).ok());
    // Comparing every pair would take minutes; the bound leaves room for sanitizers.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(CheckJson, SizeIsCheckedBeforeAnythingElse) {
    const Result<void> result = check_json("[1,2", 3, kMaxJsonDepth);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "4 bytes of JSON (allowed: up to 3)");
}

RC_GTEST_PROP(CheckJsonProperty, AcceptsWhatAnotherWriterWrites, ()) {
    const nlohmann::json value = testing::random_json(4);
    const int indent = *rc::gen::inRange(-1, 3);
    const std::string text = value.dump(indent, ' ', *rc::gen::arbitrary<bool>());
    const Result<void> result = check(text);
    RC_LOG() << text << (result.ok() ? "" : result.error().message);
    RC_ASSERT(result.ok());
}

RC_GTEST_PROP(CheckJsonProperty, AgreesWithAnotherParserOnDamagedTexts, ()) {
    std::string text = testing::random_json(3).dump();
    const int damages = *rc::gen::inRange(1, 4);
    for (int i = 0; i < damages && !text.empty(); ++i) {
        const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
        switch (*rc::gen::inRange(0, 4)) {
            case 0:
                text.erase(at, 1);
                break;
            case 1:
                text[at] = *rc::gen::arbitrary<char>();
                break;
            case 2:
                text.insert(at, 1,
                            *rc::gen::elementOf(std::string("{}[]\",:\\u0-+.eE 1tfn\x80\xC3")));
                break;
            default:
                text.insert(at, text.substr(0, 12));
                break;
        }
    }
    const OracleVerdict verdict = ask_json_oracle(text, kMaxJsonDepth);
    RC_PRE(verdict != OracleVerdict::kNoOpinion);
    RC_LOG() << text;
    RC_ASSERT(check(text).ok() == (verdict == OracleVerdict::kAccepted));
}

RC_GTEST_PROP(CheckJsonProperty, AgreesWithAnotherParserOnTokenSoup, ()) {
    const auto tokens = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\u0061\"", "1", "-0", "1e5", "0.5",
        "null", "true", " ", "\"\\ud800\"", "\"\xC3\xA9\""));
    std::string text;
    for (const std::string& token : tokens)
        text += token;
    const OracleVerdict verdict = ask_json_oracle(text, kMaxJsonDepth);
    RC_LOG() << text;
    RC_ASSERT(check(text).ok() == (verdict == OracleVerdict::kAccepted));
}

}  // namespace
}  // namespace sekali::base
