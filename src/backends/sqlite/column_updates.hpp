#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/sqlite/connection.hpp"

namespace sekali::sqlite {

/// Which of a table's changing columns; bit 0 is the first.
using ColumnSet = std::uint32_t;

/// How an UPDATE of one row is written.
struct UpdateText {
    std::string_view table;
    std::string_view key;      ///< The condition on the row, in the first placeholders.
    int key_columns = 0;       ///< How many placeholders that are.
    std::string_view columns;  ///< All that may change, separated by ", ".
};

/// The UPDATEs of one table by the columns that they set, each prepared when it is first used: an
/// index whose columns are not set is left alone.
class ColumnUpdates {
 public:
    ColumnUpdates(Connection& connection, const UpdateText& text);

    /// Placeholders: the key, then the columns of the set in their order.
    [[nodiscard]] sqlite3_stmt* use(ColumnSet columns);
    [[nodiscard]] ColumnSet all() const { return (ColumnSet{1} << columns_.size()) - 1; }

 private:
    [[nodiscard]] std::string text_for(ColumnSet columns) const;

    Connection& connection_;
    const UpdateText text_;
    std::vector<std::string_view> columns_;
    std::unordered_map<ColumnSet, StatementPtr> prepared_;
};

}  // namespace sekali::sqlite
