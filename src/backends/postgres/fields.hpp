#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/postgres/wire.hpp"
#include "engine/model.hpp"

// How the rows of the model lie in columns: each list is the one place that says so; statements,
// arguments and results follow from it.
namespace sekali::postgres {

template <typename Row>
struct Field {
    std::string_view column;
    PgType type;
    void (*put)(Encoder& to, const Row& row);
    void (*take)(Cursor& from, Row& row);
    bool (*same)(const Row& a, const Row& b) = nullptr;  ///< Of columns that may change.
    bool is_nullable = false;
};

/// Some of a list of fields: bit 0 is the first.
using ColumnSet = std::uint32_t;

/// In which columns two rows differ.
template <typename Row>
[[nodiscard]] ColumnSet different_columns(std::span<const Field<Row>> fields, const Row& a,
                                          const Row& b) {
    ColumnSet columns = 0;
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (!fields[i].same(a, b)) columns |= ColumnSet{1} << i;
    return columns;
}

/// The members of a list that are in the set.
template <typename List>
[[nodiscard]] auto chosen(const List& list, ColumnSet columns) {
    std::vector<std::remove_cvref_t<decltype(list[0])>> some;
    for (std::size_t i = 0; i < list.size(); ++i)
        if ((columns >> i & 1U) != 0) some.push_back(list[i]);
    return some;
}

/// A column that holds the member at the end of `Path`.
template <typename Row, auto... Path>
[[nodiscard]] constexpr Field<Row> field(std::string_view column) {
    using Value = std::remove_cvref_t<decltype((std::declval<Row&>().*....*Path))>;
    return {column,
            type_for<Value>(),
            [](Encoder& to, const Row& row) { to.put((row.*....*Path)); },
            [](Cursor& from, Row& row) { from.take_into((row.*....*Path)); },
            [](const Row& a, const Row& b) { return (a.*....*Path) == (b.*....*Path); },
            kIsOptional<Value>};
}

/// Text that anybody may have made, kept as bytes.
template <typename Row, auto... Path>
[[nodiscard]] constexpr Field<Row> bytes_field(std::string_view column) {
    Field<Row> made = field<Row, Path...>(column);
    made.type = PgType::kBytea;
    return made;
}

/// Columns of a job that never change; the first is `seq`.
[[nodiscard]] std::span<const Field<engine::JobRow>> frozen_fields();
/// The others that live and final jobs share.
[[nodiscard]] std::span<const Field<engine::JobRow>> moving_fields();
[[nodiscard]] Field<engine::JobRow> finished_at_field();
/// The first three are its key.
[[nodiscard]] std::span<const Field<engine::RecordRow>> record_fields();
/// The first four are its key.
[[nodiscard]] std::span<const Field<engine::StepRow>> step_fields();
/// The first two are its key.
[[nodiscard]] std::span<const Field<engine::LockRow>> lock_fields();
[[nodiscard]] std::span<const Field<engine::AttemptRow>> attempt_fields();
[[nodiscard]] std::span<const Field<engine::EventRow>> event_fields();
/// The first is its key.
[[nodiscard]] std::span<const Field<engine::WorkerRow>> worker_fields();

[[nodiscard]] engine::JobRow take_job(Cursor& from);
/// With `finished_at`.
[[nodiscard]] engine::JobRow take_final_job(Cursor& from);

template <typename Row>
[[nodiscard]] Row take_row(Cursor& from, std::span<const Field<Row>> fields) {
    Row row;
    for (const Field<Row>& one : fields)
        one.take(from, row);
    return row;
}

template <typename Row>
[[nodiscard]] std::vector<Row> all_rows(const PGresult* result,
                                        std::span<const Field<Row>> fields) {
    std::vector<Row> rows;
    for (int row = 0; row < PQntuples(result); ++row) {
        Cursor cursor(result, row);
        rows.push_back(take_row(cursor, fields));
    }
    return rows;
}

}  // namespace sekali::postgres
