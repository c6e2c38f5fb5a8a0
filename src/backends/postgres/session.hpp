#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/tables.hpp"
#include "sekali/sql.hpp"

namespace sekali::postgres {

/// Users' SQL in the transaction that is open on a channel. Everything given must outlive it.
class Session final : public internal::SqlSession {
 public:
    Session(Channel& channel, PostgresTables& tables) : channel_(channel), tables_(tables) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override;
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override;
    engine::Tables& tables() override { return tables_; }

    /// How another transaction was in the way, whatever the user made of the failure.
    [[nodiscard]] const std::optional<Error>& conflict() const { return conflict_; }

 private:
    ResultPtr run(std::string_view sql, std::span<const SqlValue> arguments);

    Channel& channel_;
    PostgresTables& tables_;
    std::optional<Error> conflict_;
};

}  // namespace sekali::postgres
