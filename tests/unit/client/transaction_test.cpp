#include "sekali/transaction.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using sekali::Blob;
using sekali::SqlValue;

class FakeCursor final : public sekali::internal::SqlCursor {
 public:
    explicit FakeCursor(std::vector<std::vector<SqlValue>> rows) : rows_(std::move(rows)) {}
    bool next() override { return ++at_ <= rows_.size(); }
    [[nodiscard]] std::span<const SqlValue> row() const override { return rows_[at_ - 1]; }

 private:
    std::vector<std::vector<SqlValue>> rows_;
    std::size_t at_ = 0;
};

class FakeSession final : public sekali::internal::SqlSession {
 public:
    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override {
        last_sql = sql;
        last_arguments.assign(arguments.begin(), arguments.end());
        return 1;
    }
    std::unique_ptr<sekali::internal::SqlCursor> query(
        std::string_view sql, std::span<const SqlValue> arguments) override {
        execute(sql, arguments);
        return std::make_unique<FakeCursor>(rows);
    }
    sekali::engine::Tables& tables() override { throw std::logic_error("not asked for here"); }

    std::string last_sql;
    std::vector<SqlValue> last_arguments;
    std::vector<std::vector<SqlValue>> rows;
};

TEST(Transaction, PassesArgumentsOfEveryType) {
    FakeSession session;
    sekali::Transaction tx(session);
    const std::string text = "text";
    EXPECT_EQ(tx.execute("insert", text, "literal", 7U, true, -1, 0.5F, nullptr,
                         std::optional<int>(), std::optional<std::string>("x"), Blob{"\xff"}),
              1);
    const std::vector<SqlValue> wanted{std::string("text"), std::string("literal"),
                                       std::int64_t{7},     std::int64_t{1},
                                       std::int64_t{-1},    0.5,
                                       std::monostate{},    std::monostate{},
                                       std::string("x"),    Blob{"\xff"}};
    EXPECT_EQ(session.last_arguments, wanted);
    EXPECT_EQ(session.last_sql, "insert");
}

TEST(Transaction, RefusesIntegersThatSqlCannotHold) {
    FakeSession session;
    sekali::Transaction tx(session);
    EXPECT_THROW(tx.execute("insert", std::numeric_limits<std::uint64_t>::max()), sekali::Failure);
}

TEST(Transaction, ReadsRowsAsTuples) {
    FakeSession session;
    session.rows = {{std::string("a"), std::int64_t{3}, std::monostate{}},
                    {std::string("b"), std::int64_t{4}, 2.5}};
    sekali::Transaction tx(session);
    std::string seen;
    for (auto [id, sum, rate] :
         tx.query<std::string, std::int64_t, std::optional<double>>("select", 1)) {
        seen += id + std::to_string(sum) + (rate ? "r" : "-");
    }
    EXPECT_EQ(seen, "a3-b4r");
}

TEST(Transaction, NamesTheColumnThatDoesNotFit) {
    FakeSession session;
    session.rows = {{std::string("a"), std::int64_t{300}}};
    sekali::Transaction tx(session);
    const auto message = [](auto&& read) {
        try {
            read();
        } catch (const sekali::Failure& failure) {
            return failure.error().message;
        }
        return std::string("accepted");
    };
    const auto first = [&tx]<typename... Columns>() {
        for (const auto& row : tx.query<Columns...>("select"))
            static_cast<void>(row);
    };
    EXPECT_EQ(message([&] { first.operator()<std::string, std::int8_t>(); }),
              "column 2 of a query holds an integer where an integer of that size was asked for");
    EXPECT_EQ(message([&] { first.operator()<std::int64_t, std::int64_t>(); }),
              "column 1 of a query holds text where an integer of that size was asked for");
    EXPECT_EQ(message([&] { first.operator()<std::string>(); }),
              "a query gives 2 columns where 1 were asked for");
    EXPECT_EQ(message([&] { first.operator()<std::string, bool>(); }),
              "column 2 of a query holds an integer where a boolean was asked for");
}

}  // namespace
