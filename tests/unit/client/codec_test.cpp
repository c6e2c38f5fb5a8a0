#include "sekali/codec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sekali/job.hpp"

namespace {

struct Line {
    std::string sku;
    std::uint32_t count = 0;
    bool operator==(const Line&) const = default;
    static constexpr auto kFields =
        sekali::fields(sekali::field("sku", &Line::sku), sekali::field("count", &Line::count));
};

struct Money {
    std::int64_t cents = 0;
    bool operator==(const Money&) const = default;
};

struct Order {
    std::string id;
    std::int64_t total = 0;
    bool paid = false;
    double rate = 0;
    std::optional<std::string> note;
    std::vector<Line> lines;
    std::map<std::string, std::int8_t> stock;
    Money shipping;
    bool operator==(const Order&) const = default;
    static constexpr auto kFields = sekali::fields(
        sekali::field("id", &Order::id), sekali::field("total", &Order::total),
        sekali::field("paid", &Order::paid), sekali::field("rate", &Order::rate),
        sekali::field("note", &Order::note), sekali::field("lines", &Order::lines),
        sekali::field("stock", &Order::stock), sekali::field("shipping", &Order::shipping));
};

}  // namespace

template <>
struct sekali::Codec<Money> {
    static std::string encode(const Money& money) { return std::to_string(money.cents) + " "; }
    static Money decode(std::string_view json) {
        if (json.front() == '-') throw std::invalid_argument("money is never negative");
        return {std::stoll(std::string(json))};
    }
};

namespace {

const std::string kOrder =
    R"({"id":"a\"\u0001é","total":-9223372036854775808,"paid":true,"rate":0.1,"note":null,)"
    R"("lines":[{"sku":"x","count":4294967295},{"sku":"","count":0}],"stock":{"":-1,"b":2},)"
    R"("shipping":500})";

Order order() {
    return {.id = "a\"\x01é",
            .total = std::numeric_limits<std::int64_t>::min(),
            .paid = true,
            .rate = 0.1,
            .note = std::nullopt,
            .lines = {{"x", 4294967295}, {"", 0}},
            .stock = {{"b", std::int8_t{2}}, {"", std::int8_t{-1}}},
            .shipping = {500}};
}

template <typename T>
std::string refusal(std::string_view json) {
    const auto decoded = sekali::decode<T>(json);
    if (decoded.ok()) return "accepted";
    EXPECT_EQ(decoded.error().code, sekali::ErrorCode::kUsage);
    return decoded.error().message;
}

std::string with(std::string_view from, std::string_view to) {
    std::string text = kOrder;
    return text.replace(text.find(from), from.size(), to);
}

TEST(Codec, WritesDeclaredOrderWithoutSpace) {
    EXPECT_EQ(sekali::encode(order()).value(), kOrder);
    EXPECT_EQ(sekali::encode(order()).value(), sekali::encode(order()).value());
}

TEST(Codec, ReadsBackWhatItWrote) {
    EXPECT_EQ(sekali::decode<Order>(kOrder).value(), order());
}

TEST(Codec, ReadsFieldsInAnyOrderAndWithSpace) {
    const auto line = sekali::decode<Line>(" { \"count\" : 7 ,\n\"sku\" : \"\\u0073\" }\n");
    EXPECT_EQ(line.value(), (Line{"s", 7}));
}

TEST(Codec, RefusesUnknownMissingAndRepeatedFields) {
    EXPECT_EQ(refusal<Line>(R"({"sku":"x","count":1,"colour":2})"), R"(field "colour" is unknown)");
    EXPECT_EQ(refusal<Line>(R"({"sku":"x"})"), R"(field "count" is missing)");
    EXPECT_NE(refusal<Line>(R"({"sku":"x","sku":"y","count":1})").find("twice"), std::string::npos)
        << refusal<Line>(R"({"sku":"x","sku":"y","count":1})");
    EXPECT_NE(refusal<Line>(R"({"sku":"x","count":1} x)"), "accepted");
}

TEST(Codec, OnlyOptionalMembersMayBeMissing) {
    const auto decoded = sekali::decode<Order>(with("\"note\":null,", ""));
    EXPECT_EQ(decoded.value(), order());
}

TEST(Codec, NamesThePlaceOfAWrongType) {
    EXPECT_EQ(
        refusal<Order>(with("\"count\":0", "\"count\":0.5")),
        R"(field "lines[1].count" must be an integer from 0 to 4294967295, not the number 0.5)");
    EXPECT_EQ(refusal<Order>(with("\"b\":2", "\"b\":128")),
              R"(field "stock.b" must be an integer from -128 to 127, not the number 128)");
    EXPECT_EQ(refusal<Order>(with("true", "1")),
              R"(field "paid" must be a boolean, not the number 1)");
    EXPECT_EQ(refusal<Order>(with("\"shipping\":500", "\"shipping\":-5")),
              R"(field "shipping" cannot be decoded: money is never negative)");
    EXPECT_EQ(refusal<Order>("[]"), "the JSON value must be an object, not an array");
    EXPECT_EQ(refusal<std::string>("null"), "the JSON value must be text, not null");
}

TEST(Codec, IntegersNeverWrapOrRound) {
    EXPECT_NE(refusal<std::int64_t>("9223372036854775808"), "accepted");
    EXPECT_NE(refusal<std::uint64_t>("-1"), "accepted");
    EXPECT_NE(refusal<std::int64_t>("1e3"), "accepted");
    EXPECT_NE(refusal<std::int64_t>("1.0"), "accepted");
    EXPECT_EQ(sekali::decode<std::uint64_t>("18446744073709551615").value(),
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_NE(refusal<double>("1e999"), "accepted");
}

TEST(Codec, RefusesWhatHasNoJsonForm) {
    EXPECT_FALSE(sekali::encode(std::nan("")).ok());
    EXPECT_FALSE(sekali::encode(std::numeric_limits<double>::infinity()).ok());
    EXPECT_FALSE(sekali::encode(std::string("\xff")).ok());
    EXPECT_FALSE(sekali::encode(Line{"\xc3", 1}).ok());
}

TEST(Codec, FloatingPointReadsBackExactly) {
    for (const double number : {0.1 + 0.2, -0.0, 1e-320, 1.7976931348623157e308, 3.0}) {
        const double back = sekali::decode<double>(sekali::encode(number).value()).value();
        EXPECT_EQ(std::signbit(back), std::signbit(number));
        EXPECT_EQ(back, number);
    }
}

struct Charge {
    std::string order_id;
    static constexpr std::string_view kKind = "payment.charge";
    sekali::EnqueueOptions options() const { return {.key = sekali::key("payment", order_id)}; }
};
struct Foreign {
    int id = 0;
};

}  // namespace

template <>
struct sekali::JobTraits<Foreign> {
    static constexpr std::string_view kind() { return "foreign"; }
    static EnqueueOptions options(const Foreign&) { return {.priority = 3}; }
};

namespace {

static_assert(sekali::Job<Charge>);
static_assert(sekali::Job<Foreign>);
static_assert(!sekali::Job<Line>);

TEST(JobTraits, KindAndOptionsComeFromTheTypeOrFromTraits) {
    EXPECT_EQ(sekali::JobTraits<Charge>::kind(), "payment.charge");
    EXPECT_EQ(sekali::JobTraits<Charge>::options({"a:b"}).key, "payment:a%3Ab");
    EXPECT_EQ(sekali::JobTraits<Foreign>::options({}).priority, 3);
}

}  // namespace
