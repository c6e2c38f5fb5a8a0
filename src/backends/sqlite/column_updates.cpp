#include "backends/sqlite/column_updates.hpp"

#include "base/assert.hpp"

namespace sekali::sqlite {
namespace {

/// The protocol has some twenty kinds of change.
constexpr std::size_t kPrepared = 64;
constexpr std::string_view kComma = ", ";
constexpr std::size_t kMostColumns = 31;

std::vector<std::string_view> split(std::string_view list) {
    std::vector<std::string_view> names;
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(kComma, begin), list.size());
        names.push_back(list.substr(begin, end - begin));
        begin = end + kComma.size();
    }
    return names;
}

}  // namespace

ColumnUpdates::ColumnUpdates(Connection& connection, const UpdateText& text)
    : connection_(connection), text_(text), columns_(split(text.columns)) {
    SEKALI_ASSERT(columns_.size() <= kMostColumns, "a table has more columns than a set");
}

sqlite3_stmt* ColumnUpdates::use(ColumnSet columns) {
    if (const auto found = prepared_.find(columns); found != prepared_.end()) {
        return found->second.get();
    }
    if (prepared_.size() >= kPrepared) prepared_.clear();
    StatementPtr statement = connection_.prepare(text_for(columns), true);
    return prepared_.emplace(columns, std::move(statement)).first->second.get();
}

std::string ColumnUpdates::text_for(ColumnSet columns) const {
    std::string text = "UPDATE ";
    text.append(text_.table);
    int placeholder = text_.key_columns;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if ((columns >> i & 1) == 0) continue;
        text.append(placeholder == text_.key_columns ? " SET " : kComma);
        text.append(columns_[i]).append(" = ?").append(std::to_string(++placeholder));
    }
    return text.append(" WHERE ").append(text_.key);
}

}  // namespace sekali::sqlite
