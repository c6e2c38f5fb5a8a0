#include "base/fingerprint.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/sha256.hpp"
#include "unit/base/random_json.hpp"

namespace sekali::base {
namespace {

struct Vector {
    std::size_t count;
    std::string_view digest;
};

TEST(Sha256, MatchesPublishedVectors) {
    // FIPS 180-4 examples of NIST.
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsAroundTheBlockSize) {
    // Made with sha256sum of GNU coreutils.
    for (const auto& [count, digest] : {
             Vector{55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
             Vector{56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
             Vector{63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
             Vector{64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
             Vector{65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
             Vector{119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
             Vector{120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
         }) {
        EXPECT_EQ(sha256_hex(std::string(count, 'a')), digest) << count;
    }
}

RC_GTEST_PROP(Sha256Property, PiecesGiveTheDigestOfTheWhole,
              (const std::vector<std::string>& pieces)) {
    Sha256 hash;
    std::string whole;
    for (const std::string& piece : pieces) {
        hash.update(piece);
        whole += piece;
    }
    RC_ASSERT(hash.finish_hex() == sha256_hex(whole));
}

std::string print(std::string_view payload, std::string_view rule) {
    return fingerprint(payload, rule).value();
}

TEST(Fingerprint, TheDefaultRuleHashesTheBytes) {
    EXPECT_EQ(print("abc", ""), sha256_hex("abc"));
    EXPECT_NE(print("{\"a\":1}", ""), print("{\"a\": 1}", ""));
}

TEST(Fingerprint, NoneIsEmpty) {
    EXPECT_EQ(print("{\"a\":1}", "none"), "");
}

TEST(Fingerprint, FieldsIgnoreEverythingElse) {
    const std::string_view rule = "fields:/order,/amount/cents";
    const std::string first = print(R"({"order":"o1","amount":{"cents":5},"trace":"x"})", rule);
    EXPECT_EQ(first.size(), 64U);
    EXPECT_EQ(first, print(R"({"trace":"y","amount":{"eur":1,"cents": 5 }, "order":"o1"})", rule));
    EXPECT_NE(first, print(R"({"order":"o2","amount":{"cents":5}})", rule));
    EXPECT_NE(first, print(R"({"order":"o1","amount":{"cents":6}})", rule));
}

TEST(Fingerprint, AbsentDiffersFromNullAndFromEmpty) {
    const std::string_view rule = "fields:/a,/b";
    const std::string absent = print("{}", rule);
    EXPECT_NE(absent, print(R"({"a":null})", rule));
    EXPECT_NE(absent, print(R"({"a":""})", rule));
    EXPECT_NE(print(R"({"a":null})", rule), print(R"({"b":null})", rule));
    EXPECT_NE(print(R"({"a":""})", rule), print(R"({"a":null})", rule));
}

TEST(Fingerprint, ValuesCannotRunIntoEachOther) {
    const std::string_view rule = "fields:/a,/b";
    EXPECT_NE(print(R"({"a":1,"b":23})", rule), print(R"({"a":12,"b":3})", rule));
    EXPECT_NE(print(R"({"a":"x","b":"y"})", rule), print(R"({"a":"y","b":"x"})", rule));
    EXPECT_NE(print(R"({"a":"+1:2"})", "fields:/a"), print(R"({"a":"+1:2"})", "fields:/a,/b"));
}

TEST(Fingerprint, L03_OnlyWhiteSpaceBetweenTokensDoesNotCount) {
    const std::string_view rule = "fields:/v";
    EXPECT_EQ(print("{\"v\":{\"a\":[1,2]}}", rule),
              print("{ \"v\" : {\n\"a\" : [ 1,\t2 ] } }", rule));
    EXPECT_NE(print(R"({"v":"a b"})", rule), print(R"({"v":"ab"})", rule));
    EXPECT_NE(print(R"({"v":"\" "})", rule), print(R"({"v":"\""})", rule));
    EXPECT_NE(print(R"({"v":{"a":1,"b":2}})", rule), print(R"({"v":{"b":2,"a":1}})", rule));
    EXPECT_NE(print(R"({"v":1})", rule), print(R"({"v":1.0})", rule));
    EXPECT_NE(print(R"({"v":"\u0061"})", rule), print(R"({"v":"a"})", rule));
}

TEST(Fingerprint, TheFormatStaysWhatRecordsHold) {
    // Records keep their fingerprint for weeks; a change here would refuse their repeats as other
    // work.
    EXPECT_EQ(print(R"({"a": {"x": 1}, "c": 2})", "fields:/a,/b"),
              sha256_hex("2:/a+7:{\"x\":1}2:/b-"));
}

TEST(Fingerprint, RefusesUnknownRulesAndBrokenPayloads) {
    for (const std::string_view rule : {"None", "fields", "fields:", "fields:a", "fields:/a,",
                                        "fields:/a,b", "fields:/~x", "sha1", " none"}) {
        EXPECT_FALSE(check_fingerprint_rule(rule).ok()) << rule;
        EXPECT_FALSE(fingerprint("{}", rule).ok()) << rule;
    }
    std::string many = "fields:/a";
    for (int i = 0; i < 32; ++i)
        many += ",/a";
    EXPECT_FALSE(check_fingerprint_rule(many).ok());
    EXPECT_FALSE(fingerprint("{", "fields:/a").ok());
    EXPECT_FALSE(fingerprint(R"({"a":1,"a":2})", "fields:/a").ok());
}

RC_GTEST_PROP(FingerprintProperty, IndentationNeverCounts, ()) {
    const nlohmann::json value = {{"v", testing::random_json(3)}};
    RC_ASSERT(print(value.dump(), "fields:/v") == print(value.dump(3), "fields:/v"));
}

}  // namespace
}  // namespace sekali::base
