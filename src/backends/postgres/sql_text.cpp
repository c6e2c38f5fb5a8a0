#include "backends/postgres/sql_text.hpp"

namespace sekali::postgres::sqltext {

Columns operator+(Columns a, const Columns& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Columns from(std::size_t first, const Columns& columns) {
    return {columns.begin() + static_cast<std::ptrdiff_t>(first), columns.end()};
}
Columns up_to(std::size_t count, const Columns& columns) {
    return {columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::string list(const Columns& columns, std::string_view prefix) {
    std::string text;
    for (const Column& column : columns) {
        text += text.empty() ? "" : ", ";
        text += prefix;
        text += column.name;
    }
    return text;
}

std::string rows_of(const Columns& columns) {
    std::string text = "unnest(";
    for (std::size_t i = 0; i < columns.size(); ++i) {
        text += i == 0 ? "$" : ", $";
        text += std::to_string(i + 1) + "::" + std::string(name_of(columns[i].type)) + "[]";
    }
    return text + ") AS n(" + list(columns) + ")";
}

std::string same(const Columns& columns) {
    std::string text;
    for (const Column& column : columns) {
        text += text.empty() ? "t." : " AND t.";
        text += column.name + " = n." + column.name;
    }
    return text;
}

}  // namespace sekali::postgres::sqltext
