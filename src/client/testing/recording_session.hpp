#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sekali/testing.hpp"

namespace sekali::testing {

using Rows = std::vector<std::vector<SqlValue>>;
using AnswerQueries = std::function<Rows(const Statement&)>;

/// A session that keeps SQL instead of executing it; enqueues go to a real transaction.
class RecordingSession final : public internal::SqlSession {
 public:
    /// Both must outlive the session.
    RecordingSession(engine::Tables& tables, const AnswerQueries& answer)
        : tables_(tables), answer_(answer) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override;
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override;
    engine::Tables& tables() override { return tables_; }

    [[nodiscard]] const std::vector<Statement>& statements() const { return statements_; }

 private:
    engine::Tables& tables_;
    const AnswerQueries& answer_;
    std::vector<Statement> statements_;
};

}  // namespace sekali::testing
