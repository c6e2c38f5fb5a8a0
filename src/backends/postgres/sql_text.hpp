#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/fields.hpp"
#include "backends/postgres/sql.hpp"

// Parts that statements are made of; for the files that make them only.
namespace sekali::postgres {

/// Gives the statements of a schema their names.
class Statements::Maker {
 public:
    explicit Maker(std::string_view schema) : schema_(schema) {}

    [[nodiscard]] Sql operator()(const std::string& text, const std::string& doing) {
        return {"sekali_" + std::to_string(++count_), in_schema(text, schema_), doing};
    }
    [[nodiscard]] LockingSql operator()(const std::string& text, const std::string& lock,
                                        const std::string& doing) {
        return {(*this)(text, doing), (*this)(text + " " + lock, doing)};
    }

 private:
    std::string schema_;
    int count_ = 0;
};

namespace sqltext {

struct Column {
    std::string name;
    PgType type;
    bool is_nullable = false;
};
using Columns = std::vector<Column>;

template <typename Row>
Columns columns_of(std::span<const Field<Row>> fields) {
    Columns columns;
    for (const Field<Row>& field : fields)
        columns.push_back({std::string(field.column), field.type, field.is_nullable});
    return columns;
}

[[nodiscard]] Columns operator+(Columns a, const Columns& b);
[[nodiscard]] Columns from(std::size_t first, const Columns& columns);
[[nodiscard]] Columns up_to(std::size_t count, const Columns& columns);
[[nodiscard]] std::string list(const Columns& columns, std::string_view prefix = {});
/// The arguments from `$1` on, as rows named `n`.
[[nodiscard]] std::string rows_of(const Columns& columns);
/// That rows `t` and `n` agree in all of these.
[[nodiscard]] std::string same(const Columns& columns);

// Defined here, because statements are made of them while the program still starts.
inline const Columns kFrozen = columns_of(frozen_fields());
inline const Columns kMoving = columns_of(moving_fields());
inline const Columns kFinishedAt{{"finished_at", PgType::kInt8}};
inline const Columns kRecord = columns_of(record_fields());
inline const Columns kStep = columns_of(step_fields());
inline const Columns kLock = columns_of(lock_fields());
inline const Columns kAttempt = columns_of(attempt_fields());
inline const Columns kEvent = columns_of(event_fields());
inline const Columns kWorker = columns_of(worker_fields());

}  // namespace sqltext
}  // namespace sekali::postgres
