#include "backends/postgres/session.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/errors.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

// Users' SQL: text in, text out, so that the server gives types to arguments as it would for psql.
namespace sekali::postgres {
namespace {

// Fixed ids of the types of answers (pg_type.dat) that are no text for C++.
constexpr Oid kBoolOid = 16;
constexpr Oid kByteaOid = 17;
constexpr Oid kInt8Oid = 20;
constexpr Oid kInt2Oid = 21;
constexpr Oid kInt4Oid = 23;
constexpr Oid kOidOid = 26;
constexpr Oid kFloat4Oid = 700;
constexpr Oid kFloat8Oid = 701;
constexpr Oid kNumericOid = 1700;

constexpr std::array<std::string_view, 10> kOfTransactions{
    "begin", "start",   "commit",  "end",       "rollback",
    "abort", "prepare", "release", "savepoint", "copy"};

std::string first_word(std::string_view sql) {
    const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
    const auto begin = std::find_if_not(sql.begin(), sql.end(), is_space);
    const auto end =
        std::find_if_not(begin, sql.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
    std::string word(begin, end);
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return word;
}

void refuse_transaction_control(std::string_view sql) {
    const std::string word = first_word(sql);
    if (std::find(kOfTransactions.begin(), kOfTransactions.end(), word) == kOfTransactions.end()) {
        return;
    }
    Error error =
        base::usage_error("the transaction is sekali's to begin and to end: " + base::quoted(word) +
                          " is refused here");
    error.code = ErrorCode::kRefused;
    throw Failure(std::move(error));
}

Parameters to_parameters(std::span<const SqlValue> arguments) {
    struct Adder {
        Parameters& to;
        void operator()(std::monostate) const { to.add_value(std::nullopt, PgType{0}); }
        void operator()(std::int64_t number) const {
            to.add_value(std::to_string(number), PgType{0});
        }
        void operator()(double number) const {
            // Shortest digits that give the same number again.
            std::array<char, 32> text{};
            const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
            to.add_value(std::string(text.data(), end), PgType{0});
        }
        void operator()(const std::string& text) const {
            if (text.find('\0') != std::string::npos) {
                throw Failure(base::usage_error("text for PostgreSQL cannot hold a NUL byte",
                                                "send it as sekali::Blob"));
            }
            to.add_value(text, PgType{0});
        }
        void operator()(const Blob& blob) const { to.add_bytea(blob.bytes); }
    };
    Parameters made;
    for (const SqlValue& value : arguments)
        std::visit(Adder{made}, value);
    return made;
}

template <typename Number>
SqlValue number_or_text(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::string(text);
    return number;
}

SqlValue column(const PGresult* result, int row, int index) {
    if (PQgetisnull(result, row, index) != 0) return std::monostate{};
    const std::string_view text(PQgetvalue(result, row, index),
                                static_cast<std::size_t>(PQgetlength(result, row, index)));
    switch (PQftype(result, index)) {
        case kBoolOid:
            return std::int64_t{text == "t" ? 1 : 0};
        case kInt2Oid:
        case kInt4Oid:
        case kInt8Oid:
        case kOidOid:
            return number_or_text<std::int64_t>(text);
        case kFloat4Oid:
        case kFloat8Oid:
            return number_or_text<double>(text);
        case kNumericOid:
            // The sum of integers is one; what has a fraction or is longer stays exact as text.
            return number_or_text<std::int64_t>(text);
        case kByteaOid: {
            std::size_t size = 0;
            const std::unique_ptr<unsigned char, decltype(&PQfreemem)> bytes(
                PQunescapeBytea(reinterpret_cast<const unsigned char*>(text.data()), &size),
                &PQfreemem);
            return Blob{std::string(bytes.get(), bytes.get() + size)};
        }
        default:
            return std::string(text);
    }
}

class ResultCursor final : public internal::SqlCursor {
 public:
    explicit ResultCursor(ResultPtr result) : result_(std::move(result)) {}
    bool next() override {
        if (++at_ >= PQntuples(result_.get())) return false;
        row_.clear();
        for (int i = 0; i < PQnfields(result_.get()); ++i)
            row_.push_back(column(result_.get(), at_, i));
        return true;
    }
    [[nodiscard]] std::span<const SqlValue> row() const override { return row_; }

 private:
    ResultPtr result_;
    int at_ = -1;
    std::vector<SqlValue> row_;
};

/// A name may have 63 bytes.
constexpr std::size_t kNameLength = 32;

/// What a statement is prepared under: its text and the types that its arguments came with.
std::string name_of(std::string_view sql, const Parameters& parameters) {
    std::string whole(sql);
    for (const Oid type : parameters.types())
        whole += "," + std::to_string(type);
    return base::sha256_hex(whole).substr(0, kNameLength);
}

bool is_conflict(const SqlFailure& failure) {
    // A user's own unique key is his own business.
    return failure.trouble() == Trouble::kConflict && failure.error().backend_code != "23505";
}

}  // namespace

ResultPtr Session::run(std::string_view sql, std::span<const SqlValue> arguments) {
    refuse_transaction_control(sql);
    const Parameters parameters = to_parameters(arguments);
    const Sql statement{name_of(sql, parameters), std::string(sql), "run a statement", true, true};
    try {
        return channel_.run_one({&statement, parameters});
    } catch (const SqlFailure& failure) {
        if (!conflict_ && is_conflict(failure)) conflict_ = failure.error();
        throw;
    }
}

PGconn* Session::hand_over() {
    if (!tables_.is_alone()) {
        is_to_be_apart_ = true;
        throw Apart{};
    }
    // The transaction begins with the first commands.
    channel_.run({});
    was_handed_over_ = true;
    PQsetnonblocking(channel_.handle(), 0);
    return channel_.handle();
}

std::int64_t Session::execute(std::string_view sql, std::span<const SqlValue> arguments) {
    const ResultPtr result = run(sql, arguments);
    const std::string_view changed = PQcmdTuples(result.get());
    const bool is_query = PQresultStatus(result.get()) == PGRES_TUPLES_OK &&
                          std::string_view(PQcmdStatus(result.get())).starts_with("SELECT");
    std::int64_t count = 0;
    std::from_chars(changed.data(), changed.data() + changed.size(), count);
    return is_query ? 0 : count;
}

std::unique_ptr<internal::SqlCursor> Session::query(std::string_view sql,
                                                    std::span<const SqlValue> arguments) {
    return std::make_unique<ResultCursor>(run(sql, arguments));
}

}  // namespace sekali::postgres
