#include "sekali/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace {

struct Money {
    std::int64_t cents = 0;
    std::string currency;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Money, cents, currency)
};

struct Invoice {
    std::string number;
    Money total;
    nlohmann::ordered_json extra;
    static constexpr auto kFields = sekali::fields(sekali::field("number", &Invoice::number),
                                                   sekali::field("total", &Invoice::total),
                                                   sekali::field("extra", &Invoice::extra));
};

}  // namespace

template <>
struct sekali::Codec<Money> : sekali::NlohmannCodec<Money> {};

namespace {

TEST(Json, TypesOfNlohmannAreMembersLikeOthers) {
    const std::string text =
        R"({"number":"7","total":{"cents":500,"currency":"EUR"},"extra":{"b":1,"a":[null]}})";
    const auto invoice = sekali::decode<Invoice>(text).value();
    EXPECT_EQ(invoice.total.cents, 500);
    EXPECT_TRUE(invoice.extra["a"][0].is_null());
    EXPECT_EQ(sekali::encode(invoice).value(), text);
}

TEST(Json, WhatTheyThrowBecomesAnError) {
    const auto refused =
        sekali::decode<Invoice>(R"({"number":"7","total":{"cents":"x","currency":""},"extra":0})");
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(refused.error().message.starts_with("field \"total\" cannot be decoded: "))
        << refused.error().message;
    const auto no_text = sekali::encode(Money{1, "\xff"});
    ASSERT_FALSE(no_text.ok());
    EXPECT_EQ(no_text.error().code, sekali::ErrorCode::kUsage);
}

}  // namespace
